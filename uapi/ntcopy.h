/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR MIT OR Apache-2.0) */
/*
 * ntcopy's kernel interface: the one place where its numbers are written down.
 *
 * The kernel patches carry copies of these numbers, since a patch can only use
 * what it adds itself; the Rust crate carries copies, since it has no C
 * compiler to ask. Tests hold both against this file, and the kernel build
 * holds this file against the kernel source that it is about to build.
 */
#ifndef NTCOPY_H
#define NTCOPY_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Flag of send(), sendto(), sendmsg() and sendmmsg(): the caller will not look
 * at these bytes again, so they may bypass the CPU caches on their way into
 * the kernel. A hint about caches, never about bytes: data, errno, ordering
 * and partial sends are the same with and without it.
 *
 * A kernel that does not know the flag ignores it without a word. Ask with
 * SO_NTCOPY first.
 */
#define MSG_NTCOPY	0x1000000

/*
 * Socket option at level SOL_SOCKET, an int (values below). A kernel without it
 * answers ENOPROTOOPT, which makes it the probe for MSG_NTCOPY too.
 * Accepted sockets inherit it from their listener: TCP, MPTCP, SCTP, vsock, unix.
 * The number is 'N' << 8 | 'T': far from the consecutive numbers that
 * asm-generic/socket.h hands out, and free on every architecture.
 */
#define SO_NTCOPY	0x4e54

#define NTCOPY_SOCK_NONE	0	/* only sends that carry MSG_NTCOPY are hinted */
#define NTCOPY_SOCK_HINT	1	/* every send of this socket is hinted */
#define NTCOPY_SOCK_OBEY	2	/* ... and obeyed: the rule is not asked */

/* Values of the sysctl net.core.ntcopy, one setting per network namespace. */
#define NTCOPY_SYSCTL_OFF	0	/* ignore hints */
#define NTCOPY_SYSCTL_ADAPTIVE	1	/* the rule decides */
#define NTCOPY_SYSCTL_OBEY	2	/* obey every hint */
#define NTCOPY_SYSCTL_ALL	3	/* treat every send as hinted, and obey */

/*
 * /proc/net/ntcopy_stat, one file per network namespace: a line each,
 * "<name> <count>\n", in this order. Every byte that a hinted send() accepted
 * is counted exactly once, so the sum of the lines is the sum of the return
 * values of the hinted sends.
 */
#define NTCOPY_STAT_PATH		"/proc/net/ntcopy_stat"
#define NTCOPY_STAT_NONTEMPORAL		"nontemporal_bytes"
/* Hinted, but copied normally, because: */
#define NTCOPY_STAT_FITS_CACHE		"fits_cache_bytes"	/* comes round within net.core.ntcopy_cache_bytes */
#define NTCOPY_STAT_TOO_SMALL		"too_small_bytes"	/* in pieces below a page */
#define NTCOPY_STAT_CHECKSUMMED		"checksummed_bytes"	/* checksummed while copied */
#define NTCOPY_STAT_SOFTWARE_TLS	"software_tls_bytes"	/* encrypted right away by the CPU */
#define NTCOPY_STAT_NOT_SUPPORTED	"not_supported_bytes"	/* no such copy on this path or CPU */

/*
 * /dev/ntcopy, of the module ntcopy.ko: the same on a kernel that does not know
 * the flag, for unix streams and UDP.  Who may open the device may attach a socket
 * that he holds; from then on the socket, and what it accepts, honours MSG_NTCOPY
 * and the mode that is set here in place of SO_NTCOPY.
 *
 * Errors: EBADF (a closed or O_PATH descriptor), ENOTSOCK, EOPNOTSUPP (a socket
 * that the module cannot help: TCP, which has tx-nocache-copy of its own; unix
 * datagrams and seqpackets, which take no pages; all others), EBUSY (its operations
 * belong to somebody else), EINVAL (a bad mode or size; flags or reserved not 0),
 * ENOTTY (no such ioctl), EFAULT, ENOMEM.
 */
#define NTCOPY_MODULE_PATH		"/dev/ntcopy"

struct ntcopy_socket {
	__s32 fd;	/* a socket of the caller */
	__u32 mode;	/* NTCOPY_SOCK_*; of a query: the answer */
	__u32 flags;	/* in: 0.  Of a query: NTCOPY_SOCKET_ATTACHED */
	__u32 reserved;	/* 0 */
};

#define NTCOPY_SOCKET_ATTACHED	1

struct ntcopy_module_info {
	__u32 version;		/* of the module: major << 16 | minor << 8 | patch */
	__u32 series;		/* of this interface: 1 */
	__u64 attached;		/* sockets */
	__u64 lingering;	/* sockets that were detached, and are not closed yet */
};

#define NTCOPY_IOC_ATTACH	_IOW('N', 0xc0, struct ntcopy_socket)	/* again: sets the mode */
#define NTCOPY_IOC_DETACH	_IOW('N', 0xc1, struct ntcopy_socket)
#define NTCOPY_IOC_QUERY	_IOWR('N', 0xc2, struct ntcopy_socket)
#define NTCOPY_IOC_INFO		_IOR('N', 0xc3, struct ntcopy_module_info)

#endif /* NTCOPY_H */
