/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The loops of a non-temporal copy.  Where the prefetcher starts anew at each page, a run
 * of lines from each of four pages keeps it busy.  Prefetches go on beyond the end: there
 * the source of the next fragment begins.
 */
#ifndef _ASM_X86_NONTEMPORAL_H
#define _ASM_X86_NONTEMPORAL_H

#include <linux/types.h>
#include <asm/asm.h>
#include <asm/page.h>

#define NT_LINE		64	/* bytes of a store that leaves nothing to read */
#define NT_PAGES	4	/* copied in turn */
#define NT_RUN		128	/* bytes of a page before the next one's turn */
#define NT_AHEAD	512	/* bytes by which a prefetch is ahead */

/* Half a line.  Return: false if the source faulted. */
static __always_inline bool nt_half(void *to, const void *from)
{
	asm goto("1: movq   (%[from]), %%r8\n\t"
		 "2: movq  8(%[from]), %%r9\n\t"
		 "3: movq 16(%[from]), %%r10\n\t"
		 "4: movq 24(%[from]), %%r11\n\t"
		 "movnti %%r8,    (%[to])\n\t"
		 "movnti %%r9,   8(%[to])\n\t"
		 "movnti %%r10, 16(%[to])\n\t"
		 "movnti %%r11, 24(%[to])\n\t"
		 _ASM_EXTABLE_UA(1b, %l[fault])
		 _ASM_EXTABLE_UA(2b, %l[fault])
		 _ASM_EXTABLE_UA(3b, %l[fault])
		 _ASM_EXTABLE_UA(4b, %l[fault])
		 : : [to] "r" (to), [from] "r" (from)
		 : "memory", "r8", "r9", "r10", "r11"
		 : fault);
	return true;
fault:
	return false;
}

/* Return: how many bytes were copied, up to the first line that faulted. */
static __always_inline size_t nt_lines(void *to, const void *from, const void *ahead,
				       size_t bytes)
{
	size_t done;

	for (done = 0; done < bytes; done += NT_LINE) {
		/* Without SSE, clang leaves __builtin_prefetch() out. */
		asm volatile("prefetcht0 %0" : : "m" (*(const char *)(ahead + done)));
		if (!nt_half(to + done, from + done) ||
		    !nt_half(to + done + NT_LINE / 2, from + done + NT_LINE / 2))
			break;
	}
	return done;
}

static __always_inline size_t nt_in_turn(void *to, const void *from, size_t bytes)
{
	size_t done, run, page, ahead;

	for (done = 0; bytes - done >= NT_PAGES * PAGE_SIZE; done += NT_PAGES * PAGE_SIZE)
		for (run = done; run < done + PAGE_SIZE; run += NT_RUN) {
			ahead = NT_AHEAD + (run + NT_AHEAD < done + PAGE_SIZE ?
					    0 : (NT_PAGES - 1) * PAGE_SIZE);
			for (page = run; page < run + NT_PAGES * PAGE_SIZE; page += PAGE_SIZE)
				if (nt_lines(to + page, from + page, from + page + ahead,
					     NT_RUN) < NT_RUN)
					return done;
		}
	return done + nt_lines(to + done, from + done, from + done + NT_AHEAD, bytes - done);
}

#endif /* _ASM_X86_NONTEMPORAL_H */
