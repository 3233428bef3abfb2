/* SPDX-License-Identifier: GPL-2.0 */
/* What uaccess.c and user_copies.c know of each other. */
#ifndef __UM_SKAS_UACCESS_H
#define __UM_SKAS_UACCESS_H

#include <linux/pgtable.h>

/* What the kernel writes to user memory makes a page dirty by nothing but this. */
static inline bool is_usable(pte_t pte, int is_write)
{
	return pte_present(pte) && (!is_write || (pte_write(pte) && pte_dirty(pte)));
}

pte_t *maybe_map(unsigned long virt, int is_write);
long buffer_op(unsigned long addr, int len, int is_write,
	       int (*op)(unsigned long, int, void *), void *arg);

#endif /* __UM_SKAS_UACCESS_H */
