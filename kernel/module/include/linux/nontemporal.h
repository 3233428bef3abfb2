/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_NONTEMPORAL_H
#define _LINUX_NONTEMPORAL_H

#include <linux/types.h>

#define NONTEMPORAL_SENDER_BITS	5	/* tell senders apart */
extern unsigned long nontemporal_cache_bytes;

bool nontemporal_pays(u8 sender);
void nontemporal_look_on(const void *to, size_t bytes, u8 sender);
unsigned long nontemporal_private_bytes(int cpu);

#endif /* _LINUX_NONTEMPORAL_H */
