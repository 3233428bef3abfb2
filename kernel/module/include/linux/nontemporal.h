/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whether a non-temporal copy pays: decided from what recent copies of this
 * CPU touched, and from what the sends that they are part of cost.  See
 * lib/nontemporal.c.
 */
#ifndef _LINUX_NONTEMPORAL_H
#define _LINUX_NONTEMPORAL_H

#include <linux/types.h>

struct iov_iter;

extern unsigned long nontemporal_cache_bytes;

void nontemporal_init(void);
bool nontemporal_begin(const struct iov_iter *from);
bool nontemporal_choose(bool timed, const void *to, const struct iov_iter *from,
			size_t bytes);
void nontemporal_copied(const struct iov_iter *from, size_t bytes);
void nontemporal_end(const struct iov_iter *from);

#endif /* _LINUX_NONTEMPORAL_H */
