// SPDX-License-Identifier: GPL-2.0
/* The caches of the host's CPU, of which UML has no cacheinfo. */

#include <linux/nontemporal.h>
#include <linux/sizes.h>

static void cpuid_leaf(u32 leaf, u32 index, u32 reg[4])
{
	asm volatile("cpuid" : "=a" (reg[0]), "=b" (reg[1]), "=c" (reg[2]), "=d" (reg[3])
			     : "a" (leaf), "c" (index));
}

unsigned long nontemporal_private_bytes(int cpu)
{
	u32 reg[4], leaf, index;

	cpuid_leaf(0, 0, reg);
	leaf = reg[1] == 0x68747541 /* "Auth" */ ? 0x8000001d : 4;
	for (index = 0; index < 8; index++) {
		cpuid_leaf(leaf, index, reg);
		if ((reg[0] >> 5 & 7) == 2)
			return (unsigned long)((reg[1] >> 22) + 1) *
			       ((reg[1] >> 12 & 0x3ff) + 1) * ((reg[1] & 0xfff) + 1) *
			       (reg[2] + 1) / ((reg[0] >> 14 & 0xfff) + 1);
	}
	return SZ_1M;
}
