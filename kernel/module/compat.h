/* SPDX-License-Identifier: GPL-2.0 */
/* Which kernels this module is for, and what the series adds to them. */
#ifndef NTCOPY_COMPAT_H
#define NTCOPY_COMPAT_H

#include <linux/uaccess.h>
#include <linux/version.h>

/* The suite ran on the first and on the last: dkms.conf builds for these alone. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#error "ntcopy is for Linux 6.12 to 7.3: nothing was tried on an older one"
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 4, 0)
#error "ntcopy is for Linux 6.12 to 7.3: look for a newer version of it"
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
