/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Clear and copy pages with non-temporal stores.
 *
 * They go to memory through the write combining buffers: no line is read for
 * ownership first, and none is left in a cache. That pays where the bytes would
 * not have stayed in the caches anyway, and costs where they are read
 * soon. Who calls decides that; this file doesn't.
 *
 * A function a kind of store, for the CPU to be asked which it has:
 *
 *  movnti	8 bytes; every x86-64 CPU
 *  movdir64b	64 bytes, from memory to memory
 *
 * Neither needs the FPU. MOVDIR64B could clear as well, from a line of zeros, but
 * was no faster at that than MOVNTI on the first CPU that it was tried on. Nor
 * was AMD's CLZERO on a Zen 4.
 *
 * The stores are ordered with nothing, not even with those of this CPU that
 * follow: the caller executes SFENCE before anybody may learn of the pages.
 *
 * This is also built outside the kernel, by the programs that measure it; they
 * bring their own linkage.h and asm.h.
 */

#include <linux/linkage.h>
#include <asm/asm.h>

/*
 * How far ahead of itself a copy with MOVNTI prefetches. The hardware's own
 * prefetcher starts anew at each page, and the copy is faster than that.
 * MOVDIR64B doesn't need it.
 */
#define AHEAD	1024

/*
 * Clear pages.
 * %rdi	- start, page aligned
 * %rsi	- length in bytes: whole pages, at least one
 *
 * Clobbers %rax, %rdi, %rsi.
 */
SYM_FUNC_START(clear_pages_movnti)
	xorl	%eax, %eax
	.p2align 4
.Lclear_movnti:
	movnti	%rax, 0x00(%rdi)
	movnti	%rax, 0x08(%rdi)
	movnti	%rax, 0x10(%rdi)
	movnti	%rax, 0x18(%rdi)
	movnti	%rax, 0x20(%rdi)
	movnti	%rax, 0x28(%rdi)
	movnti	%rax, 0x30(%rdi)
	movnti	%rax, 0x38(%rdi)
	addq	$64, %rdi
	subq	$64, %rsi
	jnz	.Lclear_movnti
	RET
SYM_FUNC_END(clear_pages_movnti)

/*
 * Copy pages.
 * %rdi	- to, page aligned
 * %rsi	- from, page aligned
 * %rdx	- length in bytes: whole pages, at least one
 *
 * Returns in %rax the bytes that were not copied: 0, or what was left when a
 * load met memory that the hardware reports as lost.
 *
 * Clobbers %rdi, %rsi, %r8, %r9, %r10, %r11.
 */
SYM_FUNC_START(copy_pages_movnti)
	movq	%rdx, %rax
	.p2align 4
.Lcopy_movnti:
	cmpq	$AHEAD, %rax
	jbe	10f
	prefetcht0 AHEAD(%rsi)
10:	movq	0x00(%rsi), %r8
11:	movq	0x08(%rsi), %r9
12:	movq	0x10(%rsi), %r10
13:	movq	0x18(%rsi), %r11
	movnti	%r8, 0x00(%rdi)
	movnti	%r9, 0x08(%rdi)
	movnti	%r10, 0x10(%rdi)
	movnti	%r11, 0x18(%rdi)
14:	movq	0x20(%rsi), %r8
15:	movq	0x28(%rsi), %r9
16:	movq	0x30(%rsi), %r10
17:	movq	0x38(%rsi), %r11
	movnti	%r8, 0x20(%rdi)
	movnti	%r9, 0x28(%rdi)
	movnti	%r10, 0x30(%rdi)
	movnti	%r11, 0x38(%rdi)
	addq	$64, %rsi
	addq	$64, %rdi
	subq	$64, %rax
	jnz	.Lcopy_movnti
.Lcopy_movnti_done:
	RET

	_ASM_EXTABLE_TYPE(10b, .Lcopy_movnti_done, EX_TYPE_DEFAULT_MCE_SAFE)
	_ASM_EXTABLE_TYPE(11b, .Lcopy_movnti_done, EX_TYPE_DEFAULT_MCE_SAFE)
	_ASM_EXTABLE_TYPE(12b, .Lcopy_movnti_done, EX_TYPE_DEFAULT_MCE_SAFE)
	_ASM_EXTABLE_TYPE(13b, .Lcopy_movnti_done, EX_TYPE_DEFAULT_MCE_SAFE)
	_ASM_EXTABLE_TYPE(14b, .Lcopy_movnti_done, EX_TYPE_DEFAULT_MCE_SAFE)
	_ASM_EXTABLE_TYPE(15b, .Lcopy_movnti_done, EX_TYPE_DEFAULT_MCE_SAFE)
	_ASM_EXTABLE_TYPE(16b, .Lcopy_movnti_done, EX_TYPE_DEFAULT_MCE_SAFE)
	_ASM_EXTABLE_TYPE(17b, .Lcopy_movnti_done, EX_TYPE_DEFAULT_MCE_SAFE)
SYM_FUNC_END(copy_pages_movnti)

SYM_FUNC_START(copy_pages_movdir64b)
	movq	%rdx, %rax
	.p2align 4
.Lcopy_movdir64b:
	/* movdir64b (%rsi), %rdi; binutils know it from 2.31 on */
20:	.byte	0x66, 0x0f, 0x38, 0xf8, 0x3e
	addq	$64, %rsi
	addq	$64, %rdi
	subq	$64, %rax
	jnz	.Lcopy_movdir64b
.Lcopy_movdir64b_done:
	RET

	_ASM_EXTABLE_TYPE(20b, .Lcopy_movdir64b_done, EX_TYPE_DEFAULT_MCE_SAFE)
SYM_FUNC_END(copy_pages_movdir64b)
