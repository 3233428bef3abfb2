/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR MIT OR Apache-2.0) */
/*
 * ntcopy's kernel interface: the one place where its numbers are written down.
 *
 * The kernel patches carry copies of these numbers, since a patch can only use
 * what it adds itself; the Rust crate carries copies, since it has no C
 * compiler to ask. Tests hold both against this file, and the kernel build
 * holds this file against the kernel source that it is about to build.
 */
#ifndef NTCOPY_UAPI_H
#define NTCOPY_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Flag of send(), sendto(), sendmsg() and sendmmsg(): the caller will not look
 * at these bytes again, so they may bypass the CPU caches on their way into
 * the kernel. A hint about caches, never about bytes: data, errno, ordering
 * and partial sends are the same with and without it.
 *
 * It needs SO_NTCOPY: the kernel ignores the flag on a socket that did not opt
 * in, and a kernel that does not know the flag ignores it everywhere.
 */
#define MSG_NTCOPY	0x1000000

/*
 * Socket option at level SOL_SOCKET, an int: from how many bytes on a send of the
 * socket is hinted. 0, the default: none, and MSG_NTCOPY is ignored; NTCOPY_FLAGGED:
 * those with MSG_NTCOPY alone, since no send is as long. 1 to 4095 and what is
 * negative fail with EINVAL; no privilege is needed. A kernel without the option
 * answers ENOPROTOOPT, which makes it the probe, too. What accept() returns has the
 * listener's. Where a hinted send is cut short, the next one continues it, and is
 * hinted whatever its length.
 * The number is 'N' << 8 | 'T': far from the consecutive numbers that
 * asm-generic/socket.h hands out, and free on every architecture.
 */
#define SO_NTCOPY	0x4e54

#define NTCOPY_MIN_BYTES	4096		/* the least that is taken but for 0 */
#define NTCOPY_FLAGGED		0x7fffffff	/* INT_MAX */

/* Values of the sysctl net.core.ntcopy, one setting for the machine. */
#define NTCOPY_SYSCTL_OFF	0	/* ignore hints */
#define NTCOPY_SYSCTL_OBEY	1	/* obey them, the default */
/* Only with the patches of kernel/series/VERSION/test/, which are not posted: */
#define NTCOPY_SYSCTL_ALL	2	/* hint every send */

/*
 * Counters of each network namespace, in the group TcpExt of /proc/net/netstat, of
 * sockets whose SO_NTCOPY is not 0. What is between the first two was below the
 * number; what is between the last two the kernel declined, or never copied.
 */
#define NTCOPY_STAT_PATH	"/proc/net/netstat"
#define NTCOPY_STAT_BYTES	"NtcopyBytes"		/* that were sent */
#define NTCOPY_STAT_HINTED	"NtcopyHintedBytes"	/* in hinted sends */
#define NTCOPY_STAT_BYPASSED	"NtcopyBypassedBytes"	/* in sends with a piece past the caches */
/* The module's: a line each, "<name> <count>\n", in this order. */
#define NTCOPY_MODULE_STAT_PATH	"/proc/net/ntcopy"

/*
 * /dev/ntcopy, of the module ntcopy.ko: the same on a kernel that does not know
 * the flag, for unix streams.  Who may open the device may attach a socket that he
 * holds; from then on the number that is set here, for the socket and for what it
 * accepts, says what SO_NTCOPY says elsewhere. It is rounded up to a power of two
 * from 256 KiB to 1 GiB, or to NTCOPY_FLAGGED; a query says which. No smaller send
 * is hinted, whatever its flag, and none because it continues one. With 0 the
 * socket is attached, and none of its sends is hinted.
 *
 * Errors: EBADF (a closed or O_PATH descriptor), ENOTSOCK, EOPNOTSUPP (no unix
 * stream), EBUSY (its operations belong to other kernel code), EINVAL (a number or
 * a size that there is not; flags or reserved not 0), ENOTTY (no such ioctl), EFAULT.
 */
#define NTCOPY_MODULE_PATH		"/dev/ntcopy"
#define NTCOPY_MODULE_MIN_BYTES		0x40000	/* 256 KiB */

struct ntcopy_socket {
	__s32 fd;		/* a socket of the caller */
	__s32 min_bytes;	/* as SO_NTCOPY's; of a query: the answer */
	__u32 flags;		/* in: 0; a query's answer: NTCOPY_SOCKET_ATTACHED */
	__u32 reserved;		/* 0 */
};

#define NTCOPY_SOCKET_ATTACHED	1

struct ntcopy_module_info {
	__u32 version;		/* of the module: major << 16 | minor << 8 | patch */
	__u32 series;		/* of this interface: 3 */
	__u64 attached;		/* sockets */
	__u64 lingering;	/* sockets that were detached, and are not closed yet */
};

#define NTCOPY_IOC_ATTACH	_IOW('N', 0xc0, struct ntcopy_socket)	/* again: sets the number */
#define NTCOPY_IOC_DETACH	_IOW('N', 0xc1, struct ntcopy_socket)
#define NTCOPY_IOC_QUERY	_IOWR('N', 0xc2, struct ntcopy_socket)
#define NTCOPY_IOC_INFO		_IOR('N', 0xc3, struct ntcopy_module_info)

#endif /* NTCOPY_UAPI_H */
