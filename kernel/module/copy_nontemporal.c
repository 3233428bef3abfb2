// SPDX-License-Identifier: GPL-2.0
/*
 * Copies whose destination nobody will look at soon: see asm/nontemporal.h.
 *
 * Only whole lines of the destination are written non-temporally.  What comes
 * before the first one and after the last one is copied normally, so that no
 * line is written both ways.
 */

#include <linux/export.h>
#include <linux/init.h>
#include <linux/jump_label.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>
#include <asm/nontemporal.h>

static DEFINE_STATIC_KEY_FALSE(nt_in_turn_key);

/* @to and @bytes are multiples of a line. */
static __always_inline size_t nt_copy(void *to, const void *from, size_t bytes)
{
	if (!static_branch_likely(&nt_in_turn_key))
		return nt_ahead(to, from, bytes);
	if (cpu_feature_enabled(X86_FEATURE_MOVDIR64B))
		return nt_in_turn(to, from, bytes, true);
	return nt_in_turn(to, from, bytes, false);
}

/* Bytes before the first whole line of the destination. */
static size_t nt_lead(const void *to, size_t n)
{
	return min(-(unsigned long)to % NT_LINE, n);
}

/**
 * raw_copy_from_user_nontemporal - copy from user memory, past the caches
 * @to: Destination, in the kernel
 * @from: Source, checked or masked by the caller
 * @n: How many bytes
 *
 * Before anybody else may learn of the copy, the caller has to call
 * nontemporal_fence().
 *
 * Four pages in turn are at most three pages ahead of what is known to be
 * mapped, and are read in order: the guard page above user addresses catches
 * them, like the plain copy.
 *
 * Return: how many bytes were not copied, the same as raw_copy_from_user().
 */
unsigned long raw_copy_from_user_nontemporal(void *to, const void __user *from,
					     unsigned long n)
{
	size_t done = nt_lead(to, n);
	unsigned long left;

	left = raw_copy_from_user(to, from, done);
	if (unlikely(left))
		return n - done + left;

	stac();
	done += nt_copy(to + done, (__force const void *)from + done,
			round_down(n - done, NT_LINE));
	clac();
	if (done == n)
		return 0;
	/* The rest of a line; or what faulted, to find out where. */
	return raw_copy_from_user(to + done, from + done, n - done);
}
EXPORT_SYMBOL_GPL(raw_copy_from_user_nontemporal);

/**
 * memcpy_nontemporal_unfenced - copy within the kernel, past the caches
 * @to: Destination
 * @from: Source
 * @n: How many bytes
 *
 * The caller owes a nontemporal_fence().
 */
void memcpy_nontemporal_unfenced(void *to, const void *from, size_t n)
{
	size_t done = nt_lead(to, n);

	memcpy(to, from, done);
	done += nt_copy(to + done, from + done, round_down(n - done, NT_LINE));
	/* Nothing may fault here: if it does, run into it like memcpy(). */
	memcpy(to + done, from + done, n - done);
}
EXPORT_SYMBOL_GPL(memcpy_nontemporal_unfenced);

static int __init nt_init(void)
{
	if (boot_cpu_data.x86_vendor == X86_VENDOR_INTEL)
		static_branch_enable(&nt_in_turn_key);
	return 0;
}
early_initcall(nt_init);
