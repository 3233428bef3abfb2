/* SPDX-License-Identifier: GPL-2.0 */
/* An io_uring for one request at a time. */
#ifndef NTCOPY_RING_H
#define NTCOPY_RING_H

#include <linux/io_uring.h>

/*
 * Submits a request and waits for it.  Return: its result, or a negative error;
 * -ENOSYS where there is no io_uring.
 */
int ring_submit(const struct io_uring_sqe *request);

#endif /* NTCOPY_RING_H */
