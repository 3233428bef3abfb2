/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What page_nt_64.S takes from the kernel's <asm/asm.h>, for a program: nothing.
 * Where a load meets lost memory, a program gets SIGBUS, and needs no table of
 * the loads that may.
 */
#ifndef NTCOPY_SHIM_ASM_H
#define NTCOPY_SHIM_ASM_H

#define _ASM_EXTABLE_TYPE(from, to, type)

#endif
