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

#define NTCOPY_VERSION		"0.1.0"
#define NTCOPY_VERSION_CODE	(0 << 16 | 1 << 8 | 0)

/* A mode of a socket beside NTCOPY_SOCK_*: it only waits to be closed. */
#define NTCOPY_SOCK_DETACHED	(NTCOPY_SOCK_OBEY + 1)
#define NTCOPY_SOCK_MODES	(NTCOPY_SOCK_DETACHED + 1)

/* How the bytes of a socket can be copied non-temporally. */
enum ntcopy_path {
	NTCOPY_PATH_UNIX,
	NTCOPY_PATH_TCP,
	NTCOPY_PATH_UDP,
};

struct ntcopy_set;

/*
 * The operations of an attached socket: a copy of the original ones, in which a
 * few are ours.  All of a socket's state is which of these it points to.
 */
struct ntcopy_ops {
	struct proto_ops		ops;
	const struct ntcopy_set		*set;
	u8				mode;
};

/* The tables that were made of one original, one for each mode. */
struct ntcopy_set {
	struct list_head		list;
	const struct proto_ops		*orig;
	struct module			*pinned;	/* orig is in its memory */
	enum ntcopy_path		path;
	/* Of the protocol: if the socket has another one, somebody is between. */
	int (*sendmsg)(struct sock *sk, struct msghdr *msg, size_t len);
	struct ntcopy_ops		tables[NTCOPY_SOCK_MODES];
};

/* What became of the bytes that hinted sends accepted, see ntcopy.h. */
enum ntcopy_fate {
	NTCOPY_NONTEMPORAL,
	NTCOPY_FITS_CACHE,
	NTCOPY_TOO_SMALL,
	NTCOPY_CHECKSUMMED,
	NTCOPY_SOFTWARE_TLS,
	NTCOPY_NOT_SUPPORTED,
	NTCOPY_FATES
};

/* A hinted send under way. */
struct ntcopy_send {
	struct socket			*sock;
	const struct ntcopy_set		*set;
	struct msghdr			*msg;
	bool				adaptive;	/* only where it pays */
	bool				timed;		/* its time is taken, to learn where */
	bool				small;		/* no copy is too small */
	size_t				bytes[NTCOPY_FATES];
};

/* adopt.c: tables of operations */
extern struct mutex ntcopy_mutex;

const struct ntcopy_ops *ntcopy_ops_of(const struct socket *sock);
const struct ntcopy_set *ntcopy_adopt(const struct socket *sock, struct module *pinned);
const struct proto_ops *ntcopy_genuine_ops(const struct sock *sk);
void ntcopy_drop_sets(void);

/* attach.c: sockets come and go */
int ntcopy_attach(struct socket *sock, int fd, u32 mode);
int ntcopy_detach(struct socket *sock, int fd);
int ntcopy_query(struct socket *sock, struct ntcopy_socket *arg);
atomic64_t *ntcopy_counter(u8 mode);
void ntcopy_count_sockets(u64 *attached, u64 *lingering);
int ntcopy_release(struct socket *sock);
int ntcopy_accept(struct socket *sock, struct socket *newsock, NTCOPY_ACCEPT_PARAMS);

/* replace.c: others who replace the operations of a socket */
bool ntcopy_is_replacing(const struct socket *sock);
bool ntcopy_is_tcp(const struct sock *sk);
bool ntcopy_sole_user(const struct file *file, long own, unsigned int fd);
void ntcopy_set_ops(struct socket *sock, const struct ntcopy_set *set, u8 mode);
int ntcopy_setsockopt(struct socket *sock, int level, int optname, sockptr_t optval,
		      unsigned int optlen);

/* lost.c: sockets that have their own operations back before they are closed */
void ntcopy_let_go(struct socket *sock, const struct proto_ops *orig);
void ntcopy_drop_lost(void);

/* send.c, send_*.c: what happens to their sends */
int ntcopy_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
int ntcopy_send_plain(struct ntcopy_send *send, struct msghdr *msg, size_t len,
		      enum ntcopy_fate fate);
int ntcopy_send_unix(struct ntcopy_send *send, size_t len);
int ntcopy_send_tcp(struct ntcopy_send *send, size_t len);
int ntcopy_send_udp(struct ntcopy_send *send, size_t len);

/* pages.c: the pages that bytes are copied to */

/* An order-3 page, which is what a stream socket's buffers are made of. */
#define NTCOPY_PAGE_ORDER	3
/* A datagram of 64 KiB in pages of order 0. */
#define NTCOPY_PAGES_MAX	16

struct ntcopy_pages {
	unsigned int			count;
	size_t				nontemporal;	/* bytes; the others come last */
	struct bio_vec			bv[NTCOPY_PAGES_MAX];
};

bool ntcopy_pays(const struct ntcopy_send *send, const void *to, size_t bytes);
void ntcopy_copied(const struct ntcopy_send *send, int ret);
bool ntcopy_fill(struct ntcopy_pages *pages, const struct ntcopy_send *send, size_t bytes);
int ntcopy_send_pages(struct ntcopy_send *send, struct ntcopy_pages *pages, size_t bytes,
		      unsigned int flags);
void ntcopy_free_pages(struct ntcopy_pages *pages);

/* adaptive.c: nontemporal.c in a module */
void ntcopy_adaptive_exit(void);

/* stat.c, sysctl.c: counters and settings of a network namespace */

/*
 * Default of net.core.ntcopy_min_bytes.  A send below a page goes to the linear
 * part of an skb, next to headers that are written right after it.
 */
#define NTCOPY_MIN_BYTES	4096

struct ntcopy_stat;
struct ctl_table_header;

struct ntcopy_net {
	u8				mode;
	unsigned int			min_bytes;
	struct ntcopy_stat __percpu	*stat;
	struct ctl_table		*table;
	struct ctl_table_header		*header;
};

struct ntcopy_net *ntcopy_net(const struct net *net);
void ntcopy_count(const struct sock *sk, const size_t bytes[NTCOPY_FATES]);
int ntcopy_sysctl_init(struct net *net, struct ntcopy_net *nt);
void ntcopy_sysctl_exit(struct ntcopy_net *nt);
int ntcopy_stat_init(void);
void ntcopy_stat_exit(void);

#endif /* NTCOPY_MODULE_H */
