/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_NONTEMPORAL_H
#define _LINUX_NONTEMPORAL_H

#include <linux/types.h>

/**
 * struct nontemporal_copies - what became of a task's hinted copies
 * @outer: What current->nontemporal was before this operation
 * @nontemporal: Bytes that were copied with stores which bypass the caches
 * @too_small: Bytes that were copied normally, in pieces below a page
 * @fits_cache: The same, as the destination comes round within the cache
 * @by_rule: Have nontemporal_pays() decide which those are
 *
 * A source iterator whose .nontemporal is set asks for such stores, because the
 * copy is not looked at soon.  That changes no byte that is copied, no count and no
 * error; behind a fault the destination may be overwritten.  The code that sets it
 * keeps one of these on its stack, in current->nontemporal, while the operation
 * lasts, and has enabled nontemporal_key.  The copying code adds up here what it
 * did.  Code that reads the copy at once clears .nontemporal.
 */
struct nontemporal_copies {
	struct nontemporal_copies *outer;
	size_t nontemporal;
	size_t too_small;
	size_t fits_cache;
	bool by_rule;
};

extern unsigned long nontemporal_cache_bytes;

void nontemporal_init(void);
bool nontemporal_pays(const void *to, size_t bytes);
unsigned long nontemporal_private_bytes(int cpu);

#endif /* _LINUX_NONTEMPORAL_H */
