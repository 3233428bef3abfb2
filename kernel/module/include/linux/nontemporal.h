/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_NONTEMPORAL_H
#define _LINUX_NONTEMPORAL_H

#include <linux/types.h>

struct iov_iter;

extern unsigned long nontemporal_cache_bytes;

void nontemporal_init(void);
bool nontemporal_pays(const void *to, const struct iov_iter *from, size_t bytes);
unsigned long nontemporal_own_share(int cpu);

/**
 * nontemporal_share - what a CPU may expect of the caches
 * @private: Its part of the largest cache below the third level, in bytes
 * @llc: Its part of the last-level cache, or 0
 *
 * Half of its part of the last-level cache is left to what else runs there.  A
 * guest may be told of the whole cache of a socket, with nobody to share it: a
 * part that no CPU has counts for no more than the private cache.
 */
static inline unsigned long nontemporal_share(unsigned long private,
					      unsigned long llc)
{
	return private + (llc > 16 * private ? private : llc / 2);
}

#endif /* _LINUX_NONTEMPORAL_H */
