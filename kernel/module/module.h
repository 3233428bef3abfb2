/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of ntcopy.ko know of each other. */
#ifndef NTCOPY_MODULE_H
#define NTCOPY_MODULE_H

#include <linux/net.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <linux/uio.h>
#include <net/sock.h>

#include "compat.h"
#include <ntcopy/uapi.h>

#define NTCOPY_VERSION		"0.2.0"
#define NTCOPY_VERSION_CODE	(0 << 16 | 2 << 8 | 0)

/* The number of a socket that only waits to be closed. */
#define NTCOPY_DETACHED		(-1)

/*
 * The operations of an attached socket: a copy of the original ones, in which a
 * few are ours.  All of a socket's state is which of these it points to.
 */
struct ntcopy_ops {
	struct proto_ops	ops;
	int			min_bytes;	/* as SO_NTCOPY has it, or NTCOPY_DETACHED */
};

/* tables.c: tables of operations */

/* Those of an untouched unix stream socket. */
extern const struct proto_ops *ntcopy_orig;

bool ntcopy_can_help(const struct sock *sk);
const struct ntcopy_ops *ntcopy_ops_of(const struct socket *sock);
const struct ntcopy_ops *ntcopy_ops_for(int min_bytes);
int ntcopy_tables_init(void);
void ntcopy_tables_exit(void);

/* attach.c: sockets come and go */
int ntcopy_attach(struct socket *sock, int min_bytes);
int ntcopy_detach(struct socket *sock);
int ntcopy_query(const struct socket *sock, struct ntcopy_socket *arg);
void ntcopy_count_sockets(u64 *attached, u64 *lingering);
int ntcopy_release(struct socket *sock);
int ntcopy_accept(struct socket *sock, struct socket *newsock, struct proto_accept_arg *arg);

/* send.c: what happens to their sends */
int ntcopy_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);

/* pages.c: a piece of a send in pages that its bytes were copied to */

/* The most that an skb of the original holds: UNIX_SKB_FRAGS_SZ beside its head. */
#define NTCOPY_PIECE_BYTES	(SKB_MAX_HEAD(0) + SZ_32K)

bool ntcopy_send_in_pages(struct socket *sock, struct msghdr *msg, size_t bytes, int *ret,
			  bool *bypassed);

/* copy.c: copy_nontemporal.c in a module */
bool ntcopy_copy(void *to, struct iov_iter *from, size_t bytes, bool *bypassed);

/* sysctl.c: the setting of the machine */
extern u8 ntcopy_enabled;

int ntcopy_sysctl_init(void);
void ntcopy_sysctl_exit(void);

/* stat.c: counters of a network namespace */
void ntcopy_count(const struct sock *sk, size_t bytes, bool hinted, bool bypassed);
int ntcopy_stat_init(void);
void ntcopy_stat_exit(void);

#endif /* NTCOPY_MODULE_H */
