// SPDX-License-Identifier: GPL-2.0
/*
 * A piece of a send in fresh pages, which the original passes on by reference.
 *
 * The socket is charged for the bytes in them, and its memory cgroup for the
 * pages, if it is for those of plain sends.
 */

#include <linux/bvec.h>
#include <linux/cache.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "module.h"

/* An order-3 page, which is what a stream socket's buffers are made of. */
#define PAGE_ORDER	3
/* A piece in pages of order 0: the head of an skb has less than one. */
#define PAGES_MAX	(SZ_32K / PAGE_SIZE + 1)

struct piece {
	unsigned int	count;
	bool		bypassed;
	struct bio_vec	bv[PAGES_MAX];
};

/* Like alloc_skb_with_frags(), and without a retry. */
static gfp_t large_gfp(gfp_t gfp)
{
	return (gfp & ~__GFP_DIRECT_RECLAIM) | __GFP_COMP | __GFP_NOWARN | __GFP_NORETRY;
}

/* The largest page of which these bytes leave no more than a ninth empty. */
static unsigned int order_for(size_t bytes)
{
	unsigned int order = PAGE_ORDER;

	while (order && bytes + bytes / 8 < PAGE_SIZE << order)
		order--;
	return order;
}

/* A whole page, or a larger one. */
static struct page *take_page(gfp_t gfp, struct bio_vec *bv, size_t bytes)
{
	unsigned int order = order_for(bytes);
	struct page *page = NULL;

	for (; order && !page; order--) {
		page = alloc_pages(large_gfp(gfp), order);
		if (page) {
			bvec_set_page(bv, page, min(bytes, PAGE_SIZE << order), 0);
			return page;
		}
	}
	page = alloc_page(gfp);
	if (page)
		bvec_set_page(bv, page, min(bytes, PAGE_SIZE), 0);
	return page;
}

/*
 * Less than a page: a part of the one that TCP copies to, too, so that a byte
 * does not take a page that no socket is charged for.  It has no end of a page in
 * it, which would make two fragments of it, and lines of cache of its own.
 */
static struct page *take_part(gfp_t gfp, struct bio_vec *bv, size_t bytes)
{
	struct page_frag *frag = &current->task_frag;
	unsigned int offset;

	if (!skb_page_frag_refill(bytes + PAGE_SIZE, frag, gfp))
		return NULL;
	offset = ALIGN(frag->offset, L1_CACHE_BYTES);
	if (offset_in_page(offset) + bytes > PAGE_SIZE)
		offset = PAGE_ALIGN(offset);
	get_page(frag->page);
	bvec_set_page(bv, frag->page, bytes, offset);
	frag->offset = offset + bytes;
	return frag->page;
}

static bool take_pages(struct piece *piece, gfp_t gfp, size_t left)
{
	struct bio_vec *bv = piece->bv;
	struct page *page;

	for (; left; left -= bv++->bv_len, piece->count++) {
		page = left < PAGE_SIZE ? take_part(gfp, bv, left) : take_page(gfp, bv, left);
		if (!page)
			return false;
	}
	return true;
}

/* The iterator stays where it is: it is a copy. */
static bool copy_to_pages(struct piece *piece, struct iov_iter from)
{
	const struct bio_vec *bv;

	for (bv = piece->bv; bv < piece->bv + piece->count; bv++)
		if (!ntcopy_copy(page_address(bv->bv_page) + bv->bv_offset, &from, bv->bv_len,
				 &piece->bypassed))
			return false;
	return true;
}

static int pass_on(struct socket *sock, const struct msghdr *from, struct piece *piece,
		   size_t bytes)
{
	struct msghdr msg = *from;

	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, piece->bv, piece->count, bytes);
	/* Only this module writes to them: what would copy them for that need not. */
	msg.msg_flags |= MSG_SPLICE_PAGES | MSG_NO_SHARED_FRAGS;
	return ntcopy_orig->sendmsg(sock, &msg, bytes);
}

/**
 * ntcopy_send_in_pages - copy a piece of a send past the caches, and send it
 * @sock: The socket
 * @msg: What is left of the send; its iterator moves on by what was accepted
 * @bytes: How many: a page at least, and at most NTCOPY_PIECE_BYTES
 * @ret: The bytes that were accepted, or an error
 * @bypassed: Set if any of them went past the caches
 *
 * Return: false, and nothing was sent, if the original is to copy them.
 */
bool ntcopy_send_in_pages(struct socket *sock, struct msghdr *msg, size_t bytes, int *ret,
			  bool *bypassed)
{
	struct piece piece = { };
	bool copied;

	copied = take_pages(&piece, sock->sk->sk_allocation, bytes) &&
		 copy_to_pages(&piece, msg->msg_iter);
	/* Before anybody else may learn of the copy. */
	wmb();
	if (copied) {
		*ret = pass_on(sock, msg, &piece, bytes);
		if (*ret > 0) {
			/* sendmmsg() looks at what is left of it. */
			iov_iter_advance(&msg->msg_iter, *ret);
			*bypassed |= piece.bypassed;
		}
	}
	while (piece.count)
		put_page(piece.bv[--piece.count].bv_page);
	return copied;
}
