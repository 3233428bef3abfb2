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

/* Like alloc_skb_with_frags(), and without a retry. */
static gfp_t large_gfp(gfp_t gfp)
{
	return (gfp & ~__GFP_DIRECT_RECLAIM) | __GFP_COMP | __GFP_NOWARN | __GFP_NORETRY;
}

/* The largest page of which these bytes leave no more than a ninth empty. */
static unsigned int order_for(size_t bytes)
{
	unsigned int order = NTCOPY_PAGE_ORDER;

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

static void drop_pages(struct ntcopy_pages *pages)
{
	while (pages->count)
		put_page(pages->bv[--pages->count].bv_page);
}

/* Pages of order 0 need not be neighbours. */
static void look_on(const struct ntcopy_pages *pages, u8 sender)
{
	unsigned int i;

	for (i = 0; i < pages->count; i++)
		nontemporal_look_on(page_address(pages->bv[i].bv_page), pages->bv[i].bv_len, sender);
}

static enum ntcopy_fate fill(struct ntcopy_pages *pages, const struct ntcopy_send *send,
			     size_t bytes)
{
	struct iov_iter from = send->msg->msg_iter;
	gfp_t gfp = send->sock->sk->sk_allocation;
	struct bio_vec *bv = pages->bv;
	size_t left = bytes;
	unsigned int i;

	for (; left >= PAGE_SIZE; left -= bv++->bv_len, pages->count++)
		if (!take_page(gfp, bv, left))
			return NTCOPY_NOT_SUPPORTED;
	look_on(pages, send->sender);
	if (!send->bypass)
		return NTCOPY_FITS_CACHE;
	if (left) {
		if (!take_part(gfp, bv, left))
			return NTCOPY_NOT_SUPPORTED;
		pages->count++;
	}
	for (i = 0; i < pages->count; i++) {
		bv = &pages->bv[i];
		if (!ntcopy_copy(page_address(bv->bv_page) + bv->bv_offset, &from,
				 bv->bv_len, pages))
			return NTCOPY_NOT_SUPPORTED;
	}
	return NTCOPY_NONTEMPORAL;
}

/**
 * ntcopy_fill - copy bytes of a send to fresh pages, if that pays
 * @pages: The pages
 * @send: The send; its iterator stays where it is
 * @bytes: How many: a page at least, and no more than fit NTCOPY_PAGES_MAX pages
 *
 * The allocator hands out first what it got back last, so that the pages which it
 * gives now are those that a plain copy would go to.
 *
 * Return: NTCOPY_NONTEMPORAL, or why the original is to copy them.
 */
enum ntcopy_fate ntcopy_fill(struct ntcopy_pages *pages, const struct ntcopy_send *send,
			     size_t bytes)
{
	enum ntcopy_fate fate;

	pages->count = 0;
	pages->nontemporal = 0;
	fate = fill(pages, send, bytes);
	/* Before anybody else may learn of the copy. */
	wmb();
	if (fate != NTCOPY_NONTEMPORAL)
		drop_pages(pages);
	return fate;
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
	/* Only this module writes to them: what would copy them for that need not. */
	msg.msg_flags |= flags | MSG_SPLICE_PAGES | MSG_NO_SHARED_FRAGS;
	ret = send->kind->orig->sendmsg(send->sock, &msg, bytes);
	drop_pages(pages);
	if (ret > 0) {
		/* sendmmsg() looks at what is left of it. */
		iov_iter_advance(&send->msg->msg_iter, ret);
		nontemporal = min_t(size_t, ret, pages->nontemporal);
		send->bytes[NTCOPY_NONTEMPORAL] += nontemporal;
		send->bytes[NTCOPY_TOO_SMALL] += ret - nontemporal;
	}
	return ret;
}
