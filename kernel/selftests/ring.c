// SPDX-License-Identifier: GPL-2.0
/* An io_uring for one request at a time. */
#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring.h"

#define RING_GROUP	4	/* buffers, a power of two */

struct ring {
	int fd;
	char *queues;
	struct io_uring_sqe *requests;
	struct io_uring_params params;
};

static int ring_open(struct ring *ring)
{
	size_t len;

	memset(ring, 0, sizeof(*ring));
	ring->fd = syscall(__NR_io_uring_setup, 1, &ring->params);
	if (ring->fd < 0)
		return -errno;
	/* One mapping for both queues: any kernel since 5.4. */
	len = ring->params.cq_off.cqes +
	      ring->params.cq_entries * sizeof(struct io_uring_cqe);
	ring->queues = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			    IORING_OFF_SQ_RING);
	ring->requests = mmap(NULL, sizeof(*ring->requests), PROT_READ | PROT_WRITE, MAP_SHARED,
			      ring->fd, IORING_OFF_SQES);
	if (ring->queues == MAP_FAILED || ring->requests == MAP_FAILED)
		return -errno;
	return 0;
}

/* A notification may come behind the result, which is the first. */
static int ring_once(struct ring *ring, const struct io_uring_sqe *request)
{
	const struct io_sqring_offsets *sq = &ring->params.sq_off;
	struct io_uring_cqe *cqes = (void *)(ring->queues + ring->params.cq_off.cqes);
	unsigned int *array = (void *)(ring->queues + sq->array);
	unsigned int *tail = (void *)(ring->queues + sq->tail);

	*ring->requests = *request;
	array[0] = 0;
	__atomic_store_n(tail, 1, __ATOMIC_RELEASE);
	if (syscall(__NR_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return -errno;
	return cqes[0].res;
}

/* One that IORING_OP_WRITE_FIXED and the like name by its index, 0. */
static int ring_register(struct ring *ring, const struct iovec *buffer)
{
	return syscall(__NR_io_uring_register, ring->fd, IORING_REGISTER_BUFFERS, buffer, 1) < 0 ?
	       -errno : 0;
}

/* A group, 0, of which a send takes what it needs. */
static int ring_provide(struct ring *ring, const struct iovec *buffers, size_t count)
{
	struct io_uring_buf *bufs = mmap(NULL, RING_GROUP * sizeof(*bufs), PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct io_uring_buf_reg group = {
		.ring_addr = (unsigned long)bufs, .ring_entries = RING_GROUP,
	};
	size_t i;

	if (bufs == MAP_FAILED || count > RING_GROUP ||
	    syscall(__NR_io_uring_register, ring->fd, IORING_REGISTER_PBUF_RING, &group, 1) < 0)
		return -errno;
	for (i = 0; i < count; i++) {
		bufs[i].addr = (unsigned long)buffers[i].iov_base;
		bufs[i].len = buffers[i].iov_len;
		bufs[i].bid = i;
	}
	__atomic_store_n(&((struct io_uring_buf_ring *)bufs)->tail, count, __ATOMIC_RELEASE);
	return 0;
}

int ring_submit(const struct io_uring_sqe *request, const struct iovec *buffers, size_t count)
{
	struct ring ring;
	int ret = ring_open(&ring);

	if (!ret && count == 1)
		ret = ring_register(&ring, buffers);
	else if (!ret && count)
		ret = ring_provide(&ring, buffers, count);
	if (!ret)
		ret = ring_once(&ring, request);
	if (ring.fd >= 0)
		close(ring.fd);
	return ret;
}
