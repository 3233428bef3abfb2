// SPDX-License-Identifier: GPL-2.0
/*
 * The copy of the series, as it is, in a module, and its way through the segments
 * of a send.
 */

#include <linux/fault-inject-usercopy.h>
#include <linux/instrumented.h>
#include <linux/nospec.h>

#include "module.h"

#ifdef NTCOPY_OWN_COPY
#include <asm/processor.h>
/* The series has a bit for Intel's CPUs with AMX. */
#undef cpu_feature_enabled
#define cpu_feature_enabled(bit)	(boot_cpu_data.x86_vendor == X86_VENDOR_INTEL && \
					 boot_cpu_has(X86_FEATURE_AMX_TILE))
#include "copy_nontemporal.c"
#endif

static bool copy_nontemporal(void *to, size_t bytes, struct iov_iter *from)
{
	const void __user *addr = iter_iov_addr(from);
	unsigned long left;

	might_fault();
	if (should_fail_usercopy() || !access_ok(addr, bytes))
		return false;
	/* See copy_from_user_iter(). */
	barrier_nospec();
	instrument_copy_from_user_before(to, addr, bytes);
	left = raw_copy_from_user_nontemporal(to, addr, bytes);
	instrument_copy_from_user_after(to, addr, bytes, left);
	iov_iter_advance(from, bytes);
	return !left;
}

/* Bytes of the segment that comes next, how far ever it has been copied. */
static size_t segment_bytes(const struct iov_iter *from)
{
	return iter_is_ubuf(from) ? from->iov_offset + from->count : iter_iov(from)->iov_len;
}

/**
 * ntcopy_copy - copy bytes of a send non-temporally, but for small segments
 * @to: Where to
 * @from: What is left of the send; it moves on
 * @bytes: How many
 * @bypassed: Set if any of them went past the caches
 *
 * The caller owes a wmb().
 *
 * Return: whether all of them were copied.
 */
bool ntcopy_copy(void *to, struct iov_iter *from, size_t bytes, bool *bypassed)
{
	size_t part;

	for (; bytes; to += part, bytes -= part) {
		part = min(bytes, iov_iter_single_seg_count(from));
		if (!part) {
			/* An empty one: to the next. */
			iov_iter_advance(from, 0);
		} else if (segment_bytes(from) < PAGE_SIZE) {
			if (!copy_from_iter_full(to, part, from))
				return false;
		} else {
			if (!copy_nontemporal(to, part, from))
				return false;
			*bypassed = true;
		}
	}
	return true;
}
