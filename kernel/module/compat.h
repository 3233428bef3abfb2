/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the kernels that this module is for, and what the files of
 * the series expect of a kernel that has it.
 */
#ifndef NTCOPY_COMPAT_H
#define NTCOPY_COMPAT_H

#include <linux/socket.h>
#include <linux/sysctl.h>
#include <linux/uaccess.h>
#include <linux/udp.h>
#include <linux/uio.h>
#include <linux/version.h>

/*
 * The range.  Below 6.5 there is no MSG_SPLICE_PAGES; above 7.3 nothing was tried.
 * BUILD_EXCLUSIVE_KERNEL in dkms.conf says the same.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#error "ntcopy needs Linux 6.5 or later: there is no MSG_SPLICE_PAGES before"
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 4, 0)
#error "ntcopy was written for Linux 6.5 to 7.3: look for a newer version of it"
#endif

/* 6.10 packed the arguments of accept() */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define NTCOPY_ACCEPT_PARAMS	struct proto_accept_arg *arg
#define NTCOPY_ACCEPT_ARGS	arg
#else
#define NTCOPY_ACCEPT_PARAMS	int flags, bool kern
#define NTCOPY_ACCEPT_ARGS	flags, kern
#endif

/* 6.6 wants the length of a table of sysctls; before, it ends with an empty one */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define register_net_sysctl_sz(net, path, table, size) \
	register_net_sysctl(net, path, table)
#endif

/*
 * 6.7 compares unsigned numbers of two sizes; before, the max() of nontemporal.c
 * that does is warned of.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#include <linux/minmax.h>
#undef max
#define max(x, y)		max_t(typeof((x) + (y)), x, y)
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
#include <net/rps.h>
#endif

/* 6.10 moved it */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#include <net/hotdata.h>
#define ntcopy_max_skb_frags()	READ_ONCE(net_hotdata.sysctl_max_skb_frags)
#else
#include <linux/skbuff.h>
#define ntcopy_max_skb_frags()	READ_ONCE(sysctl_max_skb_frags)
#endif

/* 6.7 made a bit of it, and so did later releases of 6.5 and 6.6 */
#ifdef udp_test_bit
#define ntcopy_udp_corked(sk)	udp_test_bit(CORK, sk)
#else
#define ntcopy_udp_corked(sk)	READ_ONCE(udp_sk(sk)->corkflag)
#endif

/*
 * What the series adds to asm/uaccess.h.  The user-mode kernel that is built for
 * this module has it, and the functions, of its own.
 */
#ifdef CONFIG_NONTEMPORAL_COPY
#define NTCOPY_CAN_COPY	true
#elif defined(CONFIG_X86_64) && !defined(CONFIG_UML)
#define NTCOPY_CAN_COPY	true
#define NTCOPY_OWN_COPY
size_t __must_check raw_copy_from_user_nontemporal(void *to, const void __user *from, size_t n);
void memcpy_nontemporal_unfenced(void *to, const void *from, size_t n);
#else
/* Not reached, as no send is hinted there. */
#define NTCOPY_CAN_COPY	false
#define raw_copy_from_user_nontemporal(to, from, n)	raw_copy_from_user(to, from, n)
#endif

#endif /* NTCOPY_COMPAT_H */
