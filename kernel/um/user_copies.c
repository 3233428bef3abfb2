// SPDX-License-Identifier: GPL-2.0
/* Copies between the kernel and user space, of as many pages at once as follow each other. */

#include <linux/init.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>
#include <asm/nontemporal.h>
#include "uaccess.h"

#ifdef CONFIG_64BIT
/* Copies as on a CPU without fast strings, to see what those change. */
static bool unrolled_copies;
core_param(unrolled_copies, unrolled_copies, bool, 0644);

/*
 * x86's copy_user_generic() chooses by patching code at boot, which UML does
 * not do.  Make the same choice at run time: the branches are predicted, and a
 * user copy in UML looks up a page table entry for each page anyway.
 */
static void copy_user(void *to, const void *from, unsigned long len)
{
	if (!READ_ONCE(unrolled_copies) &&
	    (boot_cpu_has(X86_FEATURE_FSRM) ||
	     (boot_cpu_has(X86_FEATURE_ERMS) && len >= 64)))
		asm volatile("rep movsb"
			     : "+c" (len), "+D" (to), "+S" (from)
			     : : "memory");
	else
		asm volatile("call rep_movs_alternative"
			     : "+c" (len), "+D" (to), "+S" (from),
			       ASM_CALL_CONSTRAINT
			     : : "memory", "rax");
}
#else
#define copy_user(to, from, len) memcpy(to, from, len)
#endif

/* Bytes that are copied at once at most, with preemption off. */
#define MOST_LOCKED	SZ_64K

/*
 * While a page table is locked, nobody unmaps and frees what it maps.  Return: the lock,
 * or NULL where the caller may not wait for it and somebody has it.  @n: becomes how many
 * bytes from @addr on are mapped by this table, or fewer.
 */
static spinlock_t *lock_mapped(unsigned long addr, size_t *n)
{
	spinlock_t *lock = pte_lockptr(current->mm, pmd_off(current->mm, addr));
	bool may_wait = !faulthandler_disabled();

	*n = min3(*n, pmd_addr_end(addr, addr + *n) - addr, MOST_LOCKED);
	pagefault_disable();
	if (may_wait)
		spin_lock(lock);
	else if (!spin_trylock(lock))
		return NULL;
	return lock;
}

static void unlock_mapped(spinlock_t *lock)
{
	if (lock)
		spin_unlock(lock);
	pagefault_enable();
}

/*
 * Copies pages that are mapped and follow each other in the kernel's addresses, as all do
 * in x86's.  Return: how many bytes, 0 if the first page is not mapped.
 */
static size_t copy_run(void *kernel, unsigned long user, size_t n, int is_write)
{
	pte_t *pte = virt_to_pte(current->mm, user);
	void *page, *start = NULL;
	spinlock_t *lock;	/* of the page table */
	size_t len = 0;

	if (!pte)
		return 0;
	lock = lock_mapped(user, &n);
	for (; len < n && is_usable(*pte, is_write); pte++) {
		page = page_address(pte_page(*pte)) + offset_in_page(user + len);
		if (!len)
			start = page;
		else if (page != start + len)
			break;
		len += min(n - len, PAGE_SIZE - offset_in_page(page));
	}
	if (is_write)
		copy_user(start, kernel, len);
	else
		copy_user(kernel, start, len);
	unlock_mapped(lock);
	return len;
}

/* Return: how many bytes are left, from the first page that cannot be mapped. */
static size_t copy_runs(void *kernel, unsigned long user, size_t n, int is_write)
{
	size_t len;

	for (; n; n -= len) {
		len = copy_run(kernel, user, n, is_write);
		if (!len && !maybe_map(user, is_write))
			break;
		kernel += len;
		user += len;
	}
	return n;
}

unsigned long raw_copy_from_user(void *to, const void __user *from, unsigned long n)
{
	return copy_runs(to, (unsigned long)from, n, 0);
}
EXPORT_SYMBOL(raw_copy_from_user);

#ifdef CONFIG_64BIT
size_t copy_to_nontemporal(void *dst, const void *src, size_t size);

static int copy_chunk_from_user_inatomic(unsigned long from, int len, void *arg)
{
	unsigned long *to_ptr = arg, to = *to_ptr;

	copy_to_nontemporal((void *)to, (void *)from, len);
	*to_ptr += len;
	return 0;
}

unsigned long copy_from_user_inatomic_nontemporal(void *to, const void __user *from,
						  unsigned long n)
{
	if (!access_ok(from, n))
		return n;
	return buffer_op((unsigned long)from, n, 0,
			 copy_chunk_from_user_inatomic, &to);
}
EXPORT_SYMBOL(copy_from_user_inatomic_nontemporal);

/*
 * As x86 does: pages in turn on Intel's CPUs with AMX, line after line on others; unless
 * the command line has nontemporal=turns or =lines, so that both can be tried on any CPU.
 */
static bool nt_turns __ro_after_init;
static char *nt_way __initdata;

static int __init nt_setup(char *way)
{
	if (!way || (strcmp(way, "turns") && strcmp(way, "lines")))
		return -EINVAL;
	nt_way = way;
	return 0;
}
early_param("nontemporal", nt_setup);

static bool __init is_intel_with_amx(void)
{
	unsigned int eax = 0, ebx, ecx = 0, edx;

	asm volatile("cpuid" : "+a" (eax), "=b" (ebx), "+c" (ecx), "=d" (edx));
	if (ebx != 0x756e6547 || eax < 7)	/* "Genu" */
		return false;
	eax = 7;
	ecx = 0;
	asm volatile("cpuid" : "+a" (eax), "=b" (ebx), "+c" (ecx), "=d" (edx));
	return edx & BIT(24);
}

static int __init nt_init(void)
{
	nt_turns = nt_way ? *nt_way == 't' : is_intel_with_amx();
	return 0;
}
early_initcall(nt_init);

/* The rest of a page, of which @next is prefetched at the end. */
static void nt_chunk(void *to, const void *from, size_t n, const void *next)
{
	size_t done = min(-(unsigned long)to % NT_LINE, n);
	size_t bytes = round_down(n - done, NT_LINE);
	size_t last = min_t(size_t, bytes, NT_AHEAD);

	memcpy(to, from, done);
	nt_lines(to + done, from + done, from + done + NT_AHEAD, bytes - last);
	done += bytes - last;
	nt_lines(to + done, from + done, next, last);
	done += last;
	memcpy(to + done, from + done, n - done);
}

void memcpy_nontemporal_unfenced(void *to, const void *from, size_t n)
{
	size_t done = min(-(unsigned long)to % NT_LINE, n);
	size_t bytes = round_down(n - done, NT_LINE);

	memcpy(to, from, done);
	if (nt_turns)
		done += nt_in_turn(to + done, from + done, bytes);
	else
		done += nt_lines(to + done, from + done, from + done + NT_AHEAD, bytes);
	memcpy(to + done, from + done, n - done);
}
EXPORT_SYMBOL(memcpy_nontemporal_unfenced);

static int copy_chunk_from_user_nontemporal(unsigned long from, int len, void *arg)
{
	unsigned long *to_ptr = arg, to = *to_ptr;

	nt_chunk((void *)to, (void *)from, len, (void *)from);
	*to_ptr += len;
	return 0;
}

/* The kernel's address of a page that is mapped already, or NULL. */
static const void *nt_page(unsigned long addr)
{
	pte_t *pte = virt_to_pte(current->mm, addr);

	return pte && pte_present(*pte) ? page_address(pte_page(*pte)) : NULL;
}

/* Where a byte of pages that don't follow each other is, or one of the last page. */
static __always_inline const void *nt_at(const void *const *page, size_t pages, size_t at)
{
	return page[min(at / PAGE_SIZE, pages - 1)] + at % PAGE_SIZE;
}

/* Bytes @start to @end of four pages, whose destinations follow each other. */
static __always_inline void nt_pages_in_turn(void *to, const void *const *page, size_t pages,
					     size_t offset, size_t start, size_t end)
{
	size_t i, run, at, ahead;

	for (i = start; i < end; i += run) {
		run = min(end - i, (size_t)NT_RUN);
		ahead = NT_AHEAD + (i + NT_AHEAD < PAGE_SIZE ? 0 : (NT_PAGES - 1) * PAGE_SIZE);
		for (at = i; at < NT_PAGES * PAGE_SIZE; at += PAGE_SIZE)
			nt_lines(to + at, nt_at(page, pages, offset + at),
				 nt_at(page, pages, offset + at + ahead), run);
	}
}

/*
 * What nt_in_turn() does with four pages, where those of the source don't follow
 * each other: before and after the border between them, and the line across.
 */
static void nt_block(void *to, const void *const *page, size_t pages, size_t offset)
{
	size_t border = PAGE_SIZE - offset, whole = round_down(border, NT_LINE);
	char line[NT_LINE] __aligned(NT_LINE);
	int i;

	nt_pages_in_turn(to, page, pages, offset, 0, whole);
	if (!offset)
		return;
	for (i = 0; whole < border && i < NT_PAGES; i++) {
		memcpy(line, page[i] + offset + whole, border - whole);
		memcpy(line + border - whole, page[i + 1], whole + NT_LINE - border);
		nt_lines(to + i * PAGE_SIZE + whole, line, line, NT_LINE);
	}
	nt_pages_in_turn(to, page, pages, offset, round_up(border, NT_LINE), PAGE_SIZE);
}

/* Four pages, or eight.  Return: how many bytes were copied; none if a page is not mapped. */
static size_t nt_blocks(void *to, unsigned long from, size_t n)
{
	const void *page[3 * NT_PAGES + 1];
	size_t offset = from % PAGE_SIZE, pages, done = 0;

	/* The last four are only prefetched: there the next fragment's source begins. */
	n = min(n, 2 * NT_PAGES * PAGE_SIZE);
	for (pages = 0; pages < ARRAY_SIZE(page); pages++) {
		page[pages] = nt_page((from & PAGE_MASK) + pages * PAGE_SIZE);
		if (!page[pages])
			break;
	}
	for (; n - done >= NT_PAGES * PAGE_SIZE; done += NT_PAGES * PAGE_SIZE) {
		size_t first = done / PAGE_SIZE;

		if (pages < first + NT_PAGES + !!offset)
			break;
		nt_block(to + done, page + first, pages - first, offset);
	}
	return done;
}

/* The rest of a page of the source. */
static size_t nt_one(void *to, unsigned long from, size_t n)
{
	size_t len = min(PAGE_SIZE - from % PAGE_SIZE, n);
	const void *page = nt_page(from);

	if (!page)
		return 0;
	nt_chunk(to, page + from % PAGE_SIZE, len, nt_page(from + len) ?: page);
	return len;
}

/* Return: how many bytes were copied, up to the first page that is not mapped. */
static size_t nt_mapped(void *to, unsigned long from, size_t n)
{
	size_t done, step;
	spinlock_t *lock;	/* of the page table */

	if (!virt_to_pte(current->mm, from))
		return 0;
	lock = lock_mapped(from, &n);
	for (done = 0; done < n; done += step) {
		if (!nt_turns || n - done < NT_PAGES * PAGE_SIZE)
			step = nt_one(to + done, from + done, n - done);
		else
			step = nt_blocks(to + done, from + done, n - done);
		if (!step)
			break;
	}
	unlock_mapped(lock);
	return done;
}

unsigned long raw_copy_from_user_nontemporal(void *to, const void __user *from,
					     unsigned long n)
{
	unsigned long addr = (unsigned long)from, step, left;

	if (!access_ok(from, n))
		return n;

	while (n) {
		step = min(-(unsigned long)to % NT_LINE, n);
		left = copy_runs(to, addr, step, 0);
		if (left)
			return n - step + left;
		to += step;
		addr += step;
		n -= step;

		step = nt_mapped(to, addr, n);
		to += step;
		addr += step;
		n -= step;
		if (step || !n)
			continue;
		/* What is not mapped is faulted in, or turns out not to be there. */
		step = min(NT_PAGES * PAGE_SIZE, n);
		left = buffer_op(addr, step, 0, copy_chunk_from_user_nontemporal, &to);
		if (left)
			return n - step + left;
		addr += step;
		n -= step;
	}
	return 0;
}
EXPORT_SYMBOL(raw_copy_from_user_nontemporal);
#endif

unsigned long raw_copy_to_user(void __user *to, const void *from, unsigned long n)
{
	return copy_runs((void *)from, (unsigned long)to, n, 1);
}
EXPORT_SYMBOL(raw_copy_to_user);
