/* SPDX-License-Identifier: GPL-2.0 */
/* An io_uring for one request at a time. */
#ifndef NTCOPY_RING_H
#define NTCOPY_RING_H

#include <linux/io_uring.h>
#include <stddef.h>
#include <sys/uio.h>

/*
 * Submits a request and waits for it.  One buffer is registered first, for requests
 * that name it by its index 0; several become the group 0, to select from.
 * Return: its result, or a negative error; -ENOSYS where there is no io_uring.
 */
int ring_submit(const struct io_uring_sqe *request, const struct iovec *buffers, size_t count);

#endif /* NTCOPY_RING_H */
