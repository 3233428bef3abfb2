// SPDX-License-Identifier: GPL-2.0
/* Copies whose destination is not looked at soon: see asm/nontemporal.h. */

#include <linux/sched.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>
#include <asm/nontemporal.h>

static __always_inline size_t nt_copy(void *to, const void *from, size_t bytes)
{
	if (cpu_feature_enabled(X86_FEATURE_NT_IN_TURN))
		return nt_in_turn(to, from, bytes);
	return nt_lines(to, from, from + NT_AHEAD, bytes);
}

/*
 * Like raw_copy_from_user(), but the caller owes a wmb() before it tells anyone of the copy,
 * and @to may be written to beyond the first byte that was not copied.  Pages in turn are
 * read in order, so that the guard page above user addresses catches them.
 */
size_t raw_copy_from_user_nontemporal(void *to, const void __user *from, size_t n)
{
	size_t done = min(-(unsigned long)to % NT_LINE, n);
	size_t lines = round_down(n - done, NT_LINE), left;

	left = raw_copy_from_user(to, from, done);
	if (unlikely(left))
		return n - done + left;

	stac();
	left = lines - nt_copy(to + done, (__force const void *)from + done, lines);
	clac();
	done += lines - left;
#ifdef CONFIG_X86_MCE
	/* Poison: a second page that has it would be fatal. */
	if (unlikely(left && current->mce_count))
		return n - done;
#endif
	/* The rest of a line; or what faulted, to find out where. */
	return raw_copy_from_user(to + done, from + done, n - done);
}

/* Within the kernel.  The caller owes a wmb(). */
void memcpy_nontemporal_unfenced(void *to, const void *from, size_t n)
{
	size_t done = min(-(unsigned long)to % NT_LINE, n);

	memcpy(to, from, done);
	done += nt_copy(to + done, from + done, round_down(n - done, NT_LINE));
	/* Nothing may fault here: if it does, run into it like memcpy(). */
	memcpy(to + done, from + done, n - done);
}
