/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What page_nt_64.S takes from the kernel's <linux/linkage.h>, for a program:
 * functions that no other object of the process sees, under names of ours.
 */
#ifndef NTCOPY_SHIM_LINKAGE_H
#define NTCOPY_SHIM_LINKAGE_H

#define SYM_FUNC_START(name)		\
	.globl	ntcopy_##name;		\
	.hidden	ntcopy_##name;		\
	.type	ntcopy_##name, @function; \
	.balign	64;			\
	ntcopy_##name:

#define SYM_FUNC_END(name)		\
	.size	ntcopy_##name, . - ntcopy_##name

#define RET ret

#endif
