// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets that are let go.
 *
 * They have their own operations back, but somebody may have read ours, and be
 * about to call through them: until the socket is closed.  Nobody calls our
 * release() then, so this looks after them, and puts the reference that such a
 * socket holds to the module.
 */

#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/sock.h>

#include "module.h"

struct lost {
	struct list_head	list;
	struct sock		*sk;
};

/* Guarded by ntcopy_mutex. */
static LIST_HEAD(all_lost);

static void look_after(struct work_struct *work);
static DECLARE_DELAYED_WORK(looking_after, look_after);

/*
 * A socket is dead as soon as the last reference to its file is gone, and with
 * it the last system call that came through it.
 */
static void look_after(struct work_struct *work)
{
	struct lost *lost, *next;

	mutex_lock(&ntcopy_mutex);
	list_for_each_entry_safe(lost, next, &all_lost, list) {
		if (!sock_flag(lost->sk, SOCK_DEAD))
			continue;
		list_del(&lost->list);
		sock_put(lost->sk);
		kfree(lost);
		atomic64_dec(ntcopy_counter(NTCOPY_SOCK_DETACHED));
		/* ntcopy_drop_lost() waits until this has returned. */
		module_put(THIS_MODULE);
	}
	if (!list_empty(&all_lost))
		schedule_delayed_work(&looking_after, HZ);
	mutex_unlock(&ntcopy_mutex);
}

/**
 * ntcopy_let_go - give a socket its own operations back
 * @sock: The socket, which counts as attached no more, but as detached.  The
 *	caller holds ntcopy_mutex.
 * @orig: The operations
 *
 * The socket's reference to this module stays until it is closed.
 */
void ntcopy_let_go(struct socket *sock, const struct proto_ops *orig)
{
	struct lost *lost = kmalloc(sizeof(*lost), GFP_KERNEL);

	/* Paired with READ_ONCE() in ntcopy_ops_of() */
	smp_store_release(&sock->ops, orig);
	atomic64_inc(ntcopy_counter(NTCOPY_SOCK_DETACHED));
	if (!lost) {
		pr_warn_once("ntcopy: no memory to look after a socket: the module stays for good\n");
		return;
	}
	sock_hold(sock->sk);
	lost->sk = sock->sk;
	list_add(&lost->list, &all_lost);
	schedule_delayed_work(&looking_after, HZ);
}

/* The module goes: there is none left, but whoever saw to that may be at it. */
void ntcopy_drop_lost(void)
{
	cancel_delayed_work_sync(&looking_after);
}
