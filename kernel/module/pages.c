// SPDX-License-Identifier: GPL-2.0
/*
 * Fresh pages that a send's bytes are copied to, to be passed on by reference.
 *
 * The socket is charged for the bytes in them, and its memory cgroup for the
 * pages, if it is for those of plain sends.
 */

#include <linux/cache.h>
#include <linux/mm.h>
#include <linux/nontemporal.h>
#include <linux/sched.h>

#include "module.h"

/* As alloc_skb_with_frags() asks for them. */
static gfp_t large_gfp(gfp_t gfp)
{
	return (gfp & ~__GFP_DIRECT_RECLAIM) | __GFP_COMP | __GFP_NOWARN | __GFP_NORETRY;
}

/* The largest page that so many bytes leave no more than a ninth of empty. */
static unsigned int order_for(size_t bytes)
{
	unsigned int order = NTCOPY_PAGE_ORDER;

	while (order && bytes + bytes / 8 < PAGE_SIZE << order)
		order--;
	return order;
}

/*
 * Where the next bytes of so many would be copied to.  The allocator hands out
 * first what it got back last: the page that it gives now is the one that whoever
 * copies them will get.
 */
static void *next_page(const struct sock *sk, size_t bytes)
{
	gfp_t gfp = large_gfp(sk->sk_allocation) & ~__GFP_ACCOUNT;
	unsigned int order = order_for(bytes);
	struct page *page = alloc_pages(gfp, order);
	void *addr;

	if (!page)
		return NULL;
	addr = page_address(page);
	__free_pages(page, order);
	return addr;
}

/**
 * ntcopy_pays - whether the next bytes of a send are to be copied non-temporally
 * @send: The send
 * @to: Where they go to, or NULL: to the page that the allocator gives next
 * @bytes: How many are copied at once
 */
bool ntcopy_pays(const struct ntcopy_send *send, const void *to, size_t bytes)
{
	if (!send->adaptive)
		return true;
	if (!to)
		to = next_page(send->sock->sk, bytes);
	return nontemporal_choose(send->timed, to, &send->msg->msg_iter, bytes);
}

/**
 * ntcopy_copied - what ntcopy_pays() was asked about is done
 * @send: The send
 * @ret: The bytes that were accepted, or an error
 */
void ntcopy_copied(const struct ntcopy_send *send, int ret)
{
	if (send->timed && ret > 0)
		nontemporal_copied(&send->msg->msg_iter, ret);
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
 * Less than a page: a part of the one that TCP copies to as well, so that a byte
 * does not take a page that nobody is charged for.  It has no end of a page in
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
	return frag->page;
}

/* Its bytes are there: what comes next goes behind them. */
static void keep_part(const struct bio_vec *bv)
{
	struct page_frag *frag = &current->task_frag;

	if (frag->page == bv->bv_page)
		frag->offset = bv->bv_offset + bv->bv_len;
}

void ntcopy_free_pages(struct ntcopy_pages *pages)
{
	while (pages->count)
		put_page(pages->bv[--pages->count].bv_page);
}

/*
 * Less than a page is left to the caches, unless told otherwise: whoever splices
 * what the series puts into an skb's head copies it once more, and the counters
 * shall mean the same here.
 */
static bool copy_some(struct ntcopy_pages *pages, const struct ntcopy_send *send,
		      const struct bio_vec *bv, struct iov_iter *from)
{
	void *to = page_address(bv->bv_page) + bv->bv_offset;

	if (bv->bv_len < PAGE_SIZE && !send->small)
		return copy_from_iter_full(to, bv->bv_len, from);
	if (!copy_from_iter_full_nocache(to, bv->bv_len, from))
		return false;
	pages->nontemporal += bv->bv_len;
	return true;
}

/**
 * ntcopy_fill - copy bytes of a send to fresh pages
 * @pages: The pages, to be freed also if this fails
 * @send: The send; its iterator stays where it is
 * @bytes: How many, no more than fit NTCOPY_PAGES_MAX pages
 *
 * Return: whether all of them are there.
 */
bool ntcopy_fill(struct ntcopy_pages *pages, const struct ntcopy_send *send, size_t bytes)
{
	struct iov_iter from = send->msg->msg_iter;
	gfp_t gfp = send->sock->sk->sk_allocation;
	struct bio_vec *bv;
	bool part;

	pages->count = 0;
	pages->nontemporal = 0;
	while (bytes) {
		bv = &pages->bv[pages->count];
		part = bytes < PAGE_SIZE;
		if (!(part ? take_part(gfp, bv, bytes) : take_page(gfp, bv, bytes)))
			return false;
		pages->count++;
		if (!copy_some(pages, send, bv, &from))
			return false;
		if (part)
			keep_part(bv);
		bytes -= bv->bv_len;
	}
	return true;
}

/**
 * ntcopy_send_pages - pass on what ntcopy_fill() copied, and free the pages
 * @send: The send
 * @pages: The pages; their last reader frees them in the end
 * @bytes: How many
 * @flags: MSG_* beside those of the send
 *
 * Return: the bytes that were accepted, or an error.
 */
int ntcopy_send_pages(struct ntcopy_send *send, struct ntcopy_pages *pages, size_t bytes,
		      unsigned int flags)
{
	struct msghdr msg = *send->msg;
	size_t nontemporal;
	int ret;

	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, pages->bv, pages->count, bytes);
	/* Nobody else writes to them: what would copy them for that need not. */
	msg.msg_flags |= flags | MSG_SPLICE_PAGES | MSG_NO_SHARED_FRAGS;
	ret = send->set->orig->sendmsg(send->sock, &msg, bytes);
	ntcopy_free_pages(pages);
	if (ret > 0) {
		/* sendmmsg() looks at what is left of it. */
		iov_iter_advance(&send->msg->msg_iter, ret);
		nontemporal = min_t(size_t, ret, pages->nontemporal);
		send->bytes[NTCOPY_NONTEMPORAL] += nontemporal;
		send->bytes[NTCOPY_TOO_SMALL] += ret - nontemporal;
	}
	return ret;
}
