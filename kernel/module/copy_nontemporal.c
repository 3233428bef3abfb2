// SPDX-License-Identifier: GPL-2.0
/* Copies whose destination is not looked at soon: see asm/nontemporal.h. */

#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>
#include <asm/nontemporal.h>
#include <asm/processor.h>

static __always_inline size_t nt_copy(void *to, const void *from, size_t bytes)
{
	if (boot_cpu_data.x86_vendor == X86_VENDOR_INTEL)
		return nt_in_turn(to, from, bytes);
	if (cpu_feature_enabled(X86_FEATURE_ZEN4))
		return nt_lines(to, from, bytes, NULL, 0);
	return nt_ahead(to, from, bytes, PAGE_SIZE);
}

/*
 * The caller has checked or masked @from, and has to call nontemporal_fence()
 * before it tells anyone of the copy.  Pages in turn are read in order: the guard
 * page above user addresses catches them, like the plain copy.
 *
 * Unlike raw_copy_from_user(), it may have written to @to beyond the first byte that
 * was not copied: @to is memory that is not published yet.
 *
 * Return: how many bytes were not copied, the same as raw_copy_from_user().
 */
unsigned long raw_copy_from_user_nontemporal(void *to, const void __user *from,
					     unsigned long n)
{
	size_t done = min(-(unsigned long)to % NT_LINE, n), lines;
	unsigned long left;

	left = raw_copy_from_user(to, from, done);
	if (unlikely(left))
		return n - done + left;

	lines = round_down(n - done, NT_LINE);
	stac();
	left = lines - nt_copy(to + done, (__force const void *)from + done, lines);
	clac();
	done += lines - left;
	if (done == n)
		return 0;
#ifdef CONFIG_X86_MCE
	/* Poison: a second page that has it would be fatal. */
	if (unlikely(left && current->mce_count))
		return n - done;
#endif
	/* The rest of a line; or what faulted, to find out where. */
	return raw_copy_from_user(to + done, from + done, n - done);
}

/* Within the kernel.  The caller owes a nontemporal_fence(). */
void memcpy_nontemporal_unfenced(void *to, const void *from, size_t n)
{
	size_t done = min(-(unsigned long)to % NT_LINE, n);

	memcpy(to, from, done);
	done += nt_copy(to + done, from + done, round_down(n - done, NT_LINE));
	/* Nothing may fault here: if it does, run into it like memcpy(). */
	memcpy(to + done, from + done, n - done);
}
