// SPDX-License-Identifier: GPL-2.0
/* The rule of the series, as it is, in a module. */

#include "compat.h"
#include "nontemporal.c"

#ifndef CONFIG_X86_64
/* Not asked, as no send is hinted there. */
unsigned long nontemporal_private_bytes(int cpu)
{
	return SZ_1M;
}
#endif
