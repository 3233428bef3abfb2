/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The loops of a non-temporal copy, shared by the user and the kernel side.
 *
 * A copy of pages that are not in the caches waits for its source.  What fetches
 * the source ahead of the loop is the CPU's prefetcher, and that starts anew at
 * each page.  Two ways keep it busy:
 *
 * - in turn: a run of lines from each of four pages, then the next run of each.
 *   Four streams of the prefetcher run at once.  Intel's CPUs are best so.
 * - ahead: one page after the other, where each line that is copied prefetches
 *   the line one page later.  AMD's are best so; four streams halve their speed.
 */
#ifndef _ASM_X86_NONTEMPORAL_H
#define _ASM_X86_NONTEMPORAL_H

#include <linux/minmax.h>
#include <linux/types.h>
#include <asm/asm.h>
#include <asm/page.h>

#define NT_LINE		64	/* bytes of a store that leaves nothing to read */
#define NT_PAGES	4	/* copied in turn */
#define NT_RUN		128	/* bytes of a page before the next one's turn */

/* Return: false if the source faulted. */
static __always_inline bool nt_line_movnti(void *to, const void *from)
{
	asm goto("1: movq   (%[from]), %%r8\n\t"
		 "2: movq  8(%[from]), %%r9\n\t"
		 "3: movq 16(%[from]), %%r10\n\t"
		 "4: movq 24(%[from]), %%r11\n\t"
		 "movnti %%r8,    (%[to])\n\t"
		 "movnti %%r9,   8(%[to])\n\t"
		 "movnti %%r10, 16(%[to])\n\t"
		 "movnti %%r11, 24(%[to])\n\t"
		 "5: movq 32(%[from]), %%r8\n\t"
		 "6: movq 40(%[from]), %%r9\n\t"
		 "7: movq 48(%[from]), %%r10\n\t"
		 "8: movq 56(%[from]), %%r11\n\t"
		 "movnti %%r8,  32(%[to])\n\t"
		 "movnti %%r9,  40(%[to])\n\t"
		 "movnti %%r10, 48(%[to])\n\t"
		 "movnti %%r11, 56(%[to])\n\t"
		 _ASM_EXTABLE_UA(1b, %l[fault])
		 _ASM_EXTABLE_UA(2b, %l[fault])
		 _ASM_EXTABLE_UA(3b, %l[fault])
		 _ASM_EXTABLE_UA(4b, %l[fault])
		 _ASM_EXTABLE_UA(5b, %l[fault])
		 _ASM_EXTABLE_UA(6b, %l[fault])
		 _ASM_EXTABLE_UA(7b, %l[fault])
		 _ASM_EXTABLE_UA(8b, %l[fault])
		 : : [to] "r" (to), [from] "r" (from)
		 : "memory", "r8", "r9", "r10", "r11"
		 : fault);
	return true;
fault:
	return false;
}

/* The source may have any alignment.  MOVDIR64B (%rdx), %rax */
static __always_inline bool nt_line_movdir64b(void *to, const void *from)
{
	asm goto("1: .byte 0x66, 0x0f, 0x38, 0xf8, 0x02\n\t"
		 _ASM_EXTABLE_UA(1b, %l[fault])
		 : : "a" (to), "d" (from) : "memory" : fault);
	return true;
fault:
	return false;
}

static __always_inline bool nt_line(void *to, const void *from, bool movdir64b)
{
	return movdir64b ? nt_line_movdir64b(to, from) : nt_line_movnti(to, from);
}

static __always_inline bool nt_run(void *to, const void *from, size_t bytes,
				   bool movdir64b)
{
	size_t i;

	for (i = 0; i < bytes; i += NT_LINE)
		if (!nt_line(to + i, from + i, movdir64b))
			return false;
	return true;
}

/*
 * Bytes @start to @end of each of NT_PAGES pages, whose destinations follow each
 * other.  The sources are read in order, a page apart or in pages of their own.
 */
static __always_inline bool nt_pages_in_turn(void *to, const void *from0,
					     const void *from1, const void *from2,
					     const void *from3, size_t start,
					     size_t end, bool movdir64b)
{
	size_t i, run;

	for (i = start; i < end; i += run) {
		run = min(end - i, (size_t)NT_RUN);
		if (!nt_run(to + i, from0 + i, run, movdir64b) ||
		    !nt_run(to + PAGE_SIZE + i, from1 + i, run, movdir64b) ||
		    !nt_run(to + 2 * PAGE_SIZE + i, from2 + i, run, movdir64b) ||
		    !nt_run(to + 3 * PAGE_SIZE + i, from3 + i, run, movdir64b))
			return false;
	}
	return true;
}

/*
 * Lines that follow each other, while those @ahead are prefetched.
 *
 * Return: how many bytes were copied, up to the first line of which a byte
 * faulted.
 */
static __always_inline size_t nt_lines(void *to, const void *from, size_t bytes,
				       const void *ahead, size_t ahead_bytes,
				       bool movdir64b)
{
	size_t done;

	for (done = 0; done < bytes; done += NT_LINE) {
		if (done < ahead_bytes)
			__builtin_prefetch(ahead + done);
		if (!nt_line(to + done, from + done, movdir64b))
			break;
	}
	return done;
}

/*
 * Pages in turn as long as there are four, and what is left in lines.
 *
 * Return: how many bytes were copied, up to the first line or the first four
 * pages of which a byte faulted.
 */
static __always_inline size_t nt_in_turn(void *to, const void *from, size_t bytes,
					 bool movdir64b)
{
	size_t done;

	for (done = 0; bytes - done >= NT_PAGES * PAGE_SIZE;
	     done += NT_PAGES * PAGE_SIZE)
		if (!nt_pages_in_turn(to + done, from + done,
				      from + done + PAGE_SIZE,
				      from + done + 2 * PAGE_SIZE,
				      from + done + 3 * PAGE_SIZE, 0, PAGE_SIZE,
				      movdir64b))
			return done;
	return done + nt_lines(to + done, from + done, bytes - done, NULL, 0,
			       movdir64b);
}

static __always_inline size_t nt_ahead(void *to, const void *from, size_t bytes)
{
	return nt_lines(to, from, bytes, from + PAGE_SIZE,
			bytes > PAGE_SIZE ? bytes - PAGE_SIZE : 0, false);
}

#endif /* _ASM_X86_NONTEMPORAL_H */
