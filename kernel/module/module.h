/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of ntcopy.ko know of each other. */
#ifndef NTCOPY_MODULE_H
#define NTCOPY_MODULE_H

#include <linux/bvec.h>
#include <linux/gfp.h>
#include <linux/net.h>
#include <linux/nontemporal.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <linux/uio.h>
#include <net/sock.h>

#include "compat.h"
#include "ntcopy.h"

#define NTCOPY_VERSION		"0.2.0"
#define NTCOPY_VERSION_CODE	(0 << 16 | 2 << 8 | 0)

/* Modes of the module's interface of series 2, and its counters. */
#define NTCOPY_SOCK_NONE	0
#define NTCOPY_SOCK_FLAGGED	1
#define NTCOPY_SOCK_EVERY	2
#define NTCOPY_SOCK_OBEY	3
#define NTCOPY_SYSCTL_RULE	1
#define NTCOPY_STAT_NONTEMPORAL	"nontemporal_bytes"
#define NTCOPY_STAT_FITS_CACHE	"fits_cache_bytes"
#define NTCOPY_STAT_TOO_SMALL	"too_small_bytes"
#define NTCOPY_STAT_READ_BY_KERNEL	"read_by_kernel_bytes"
#define NTCOPY_STAT_NOT_SUPPORTED	"not_supported_bytes"

/* A mode of a socket beside NTCOPY_SOCK_*: it only waits to be closed. */
#define NTCOPY_SOCK_DETACHED	(NTCOPY_SOCK_OBEY + 1)
#define NTCOPY_SOCK_MODES	(NTCOPY_SOCK_DETACHED + 1)

/* What can be attached. */
enum { NTCOPY_UNIX_STREAM, NTCOPY_UDP, NTCOPY_UDP6, NTCOPY_KINDS };

struct ntcopy_kind;
struct ntcopy_send;

/*
 * The operations of an attached socket: a copy of the original ones, in which a
 * few are ours.  All of a socket's state is which of these it points to.
 */
struct ntcopy_ops {
	struct proto_ops		ops;
	const struct ntcopy_kind	*kind;
	u8				mode;
};

struct ntcopy_kind {
	int				family;
	int				type;
	int				protocol;
	int (*send)(struct ntcopy_send *send, size_t len);
	/* Those of an untouched socket; NULL if this kernel has none. */
	const struct proto_ops		*orig;
	void (*destruct)(struct sock *sk);
	struct ntcopy_ops		tables[NTCOPY_SOCK_MODES];
};

/* What became of the bytes that hinted sends accepted, see ntcopy.h. */
enum ntcopy_fate {
	NTCOPY_NONTEMPORAL,
	NTCOPY_FITS_CACHE,
	NTCOPY_TOO_SMALL,
	NTCOPY_READ_BY_KERNEL,
	NTCOPY_NOT_SUPPORTED,
	NTCOPY_FATES
};

/* A hinted send under way. */
struct ntcopy_send {
	struct socket			*sock;
	const struct ntcopy_kind	*kind;
	struct msghdr			*msg;
	bool				bypass;		/* by the rule, or to be obeyed */
	u8				sender;		/* as the rule knows it */
	size_t				bytes[NTCOPY_FATES];
};

/* tables.c: tables of operations */
extern struct ntcopy_kind ntcopy_kinds[NTCOPY_KINDS];

const struct ntcopy_kind *ntcopy_kind_of(const struct sock *sk);
const struct ntcopy_ops *ntcopy_ops_of(const struct socket *sock);
int ntcopy_tables_init(void);
void ntcopy_tables_exit(void);

/* attach.c: sockets come and go */
int ntcopy_attach(struct socket *sock, u32 mode);
int ntcopy_detach(struct socket *sock);
int ntcopy_query(const struct socket *sock, struct ntcopy_socket *arg);
void ntcopy_count_sockets(u64 *attached, u64 *lingering);
int ntcopy_release(struct socket *sock);
int ntcopy_accept(struct socket *sock, struct socket *newsock, NTCOPY_ACCEPT_PARAMS);

/* send.c, send_*.c: what happens to their sends */
int ntcopy_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
int ntcopy_send_plain(struct ntcopy_send *send, struct msghdr *msg, size_t len,
		      enum ntcopy_fate fate);
int ntcopy_send_unix(struct ntcopy_send *send, size_t len);
int ntcopy_send_udp(struct ntcopy_send *send, size_t len);

/* pages.c: the pages that bytes are copied to */

/* An order-3 page, which is what a stream socket's buffers are made of. */
#define NTCOPY_PAGE_ORDER	3
/* A datagram of 64 KiB in pages of order 0. */
#define NTCOPY_PAGES_MAX	16

struct ntcopy_pages {
	unsigned int			count;
	size_t				nontemporal;	/* bytes */
	struct bio_vec			bv[NTCOPY_PAGES_MAX];
};

enum ntcopy_fate ntcopy_fill(struct ntcopy_pages *pages, const struct ntcopy_send *send,
			     size_t bytes);
int ntcopy_send_pages(struct ntcopy_send *send, struct ntcopy_pages *pages, size_t bytes,
		      unsigned int flags);

/* copy.c: copy_nontemporal.c in a module */
bool ntcopy_copy(void *to, struct iov_iter *from, size_t bytes, struct ntcopy_pages *pages);

/* sysctl.c: settings of the machine */
extern u8 ntcopy_mode;

int ntcopy_sysctl_init(void);
void ntcopy_sysctl_exit(void);

/* stat.c: counters of a network namespace */
void ntcopy_count(const struct sock *sk, const size_t bytes[NTCOPY_FATES]);
int ntcopy_stat_init(void);
void ntcopy_stat_exit(void);

#endif /* NTCOPY_MODULE_H */
