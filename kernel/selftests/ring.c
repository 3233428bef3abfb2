// SPDX-License-Identifier: GPL-2.0
/* An io_uring for one request at a time. */
#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring.h"

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

int ring_submit(const struct io_uring_sqe *request)
{
	struct ring ring;
	int ret = ring_open(&ring);

	if (!ret)
		ret = ring_once(&ring, request);
	if (ring.fd >= 0)
		close(ring.fd);
	return ret;
}
