/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whether a non-temporal copy pays: decided from what recent copies of this
 * CPU touched, and from what they cost.  See lib/nontemporal.c.
 */
#ifndef _LINUX_NONTEMPORAL_H
#define _LINUX_NONTEMPORAL_H

#include <linux/types.h>

struct iov_iter;

/* One copy, between nontemporal_choose() and nontemporal_learn(). */
struct nontemporal_copy {
	u64		start;		/* in ns; 0 if nobody times it */
	unsigned long	switches;	/* of the task, so far */
	u32		run;		/* which run of the same choice it is in */
	int		cpu;
};

extern unsigned long nontemporal_cache_bytes;

void nontemporal_init(void);
bool nontemporal_choose(struct nontemporal_copy *copy, const void *to,
			const struct iov_iter *from, size_t bytes);
void nontemporal_learn_timed(const struct nontemporal_copy *copy, size_t bytes);

/**
 * nontemporal_learn - tell what a copy took
 * @copy: From nontemporal_choose()
 * @bytes: How many bytes were copied
 */
static inline void nontemporal_learn(const struct nontemporal_copy *copy,
				     size_t bytes)
{
	if (copy->start)
		nontemporal_learn_timed(copy, bytes);
}

#endif /* _LINUX_NONTEMPORAL_H */
