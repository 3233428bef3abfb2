// SPDX-License-Identifier: GPL-2.0
/* The caches of the host's CPU, of which UML has no cacheinfo. */

#include <linux/nontemporal.h>
#include <linux/sizes.h>

static void cpuid_leaf(u32 leaf, u32 index, u32 reg[4])
{
	asm volatile("cpuid" : "=a" (reg[0]), "=b" (reg[1]), "=c" (reg[2]), "=d" (reg[3])
			     : "a" (leaf), "c" (index));
}

/* X86_FEATURE_ZEN4, which neither UML nor each stock kernel has, by the models of amd.c. */
static bool is_zen4(void)
{
	u32 reg[4], model;

	cpuid_leaf(1, 0, reg);
	if ((reg[0] >> 8 & 0xf) + (reg[0] >> 20 & 0xff) != 0x19)
		return false;
	model = (reg[0] >> 4 & 0xf) | (reg[0] >> 12 & 0xf0);
	return (model >= 0x10 && model <= 0x1f) || (model >= 0x60 && model <= 0xaf);
}

unsigned long nontemporal_private_bytes(int cpu)
{
	u32 reg[4], leaf = 4, level = 2, index;

	cpuid_leaf(0, 0, reg);
	if (reg[1] == 0x68747541 /* "Auth" */) {
		leaf = 0x8000001d;
		level = is_zen4() ? 3 : 2;
	}
	for (index = 0; index < 8; index++) {
		cpuid_leaf(leaf, index, reg);
		if ((reg[0] >> 5 & 7) == level)
			return (unsigned long)((reg[1] >> 22) + 1) *
			       ((reg[1] >> 12 & 0x3ff) + 1) * ((reg[1] & 0xfff) + 1) *
			       (reg[2] + 1) / ((reg[0] >> 14 & 0xfff) + 1);
	}
	return SZ_1M;
}
