// SPDX-License-Identifier: GPL-2.0
/*
 * Every system call that sends.  Those that take no flags are hinted through
 * the socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "identical.h"
#include "ring.h"

#define LENGTH	60000

/* Linux 6.10 */
#ifndef IORING_RECVSEND_BUNDLE
#define IORING_RECVSEND_BUNDLE	0x10
#endif

FIXTURE(calls) {};
FIXTURE_SETUP(calls) {}
FIXTURE_TEARDOWN(calls) {}

FIXTURE_VARIANT(calls) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(calls, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(calls, unix_dgram_obeyed) { VARIANT(unix_dgram, obeyed) };
FIXTURE_VARIANT_ADD(calls, unix_seqpacket_obeyed) { VARIANT(unix_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(calls, tcp_obeyed) { VARIANT(tcp, obeyed) };
FIXTURE_VARIANT_ADD(calls, tcp6_obeyed) { VARIANT(tcp6, obeyed) };
FIXTURE_VARIANT_ADD(calls, udp_obeyed) { VARIANT(udp, obeyed) };
FIXTURE_VARIANT_ADD(calls, udp6_obeyed) { VARIANT(udp6, obeyed) };
FIXTURE_VARIANT_ADD(calls, udplite_obeyed) { VARIANT(udplite, obeyed) };
FIXTURE_VARIANT_ADD(calls, udplite_partial_obeyed) { VARIANT(udplite_partial, obeyed) };
FIXTURE_VARIANT_ADD(calls, mptcp_obeyed) { VARIANT(mptcp, obeyed) };
FIXTURE_VARIANT_ADD(calls, sctp_stream_obeyed) { VARIANT(sctp_stream, obeyed) };
FIXTURE_VARIANT_ADD(calls, vsock_stream_obeyed) { VARIANT(vsock_stream, obeyed) };
FIXTURE_VARIANT_ADD(calls, vsock_seqpacket_obeyed) { VARIANT(vsock_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(calls, tls_obeyed) { VARIANT(tls, obeyed) };
FIXTURE_VARIANT_ADD(calls, unix_stream_socket) { VARIANT(unix_stream, socket) };
FIXTURE_VARIANT_ADD(calls, unix_stream_all) { VARIANT(unix_stream, all) };
FIXTURE_VARIANT_ADD(calls, tcp_socket) { VARIANT(tcp, socket) };
FIXTURE_VARIANT_ADD(calls, tcp_all) { VARIANT(tcp, all) };

static unsigned char *start(struct scene *scene)
{
	unsigned char *data = pages(LENGTH / 4096 + 2);

	fill(data, (LENGTH / 4096 + 2) * 4096, 61);
	scene_open(scene);
	return data;
}

/* A flag for calls that take none. */
static void hint_socket(struct scene *scene)
{
	if (!scene->mode->flag)
		return;
	scene->transcript->by_size = true;
	if (set_hint(scene->pair.tx, NTCOPY_MIN_BYTES) < 0)
		fatal(scene, "SO_NTCOPY");
}

static void scene_write(struct scene *scene)
{
	unsigned char *data = start(scene);
	struct iovec iov[3] = {
		{ data, 100 }, { data + 100, 0 }, { data + 100, LENGTH - 100 },
	};

	hint_socket(scene);
	scene_expect(scene, data, scene_account(scene, "write", LENGTH,
						write(scene->pair.tx, data, LENGTH)));
	scene_expect(scene, data, scene_account(scene, "writev", LENGTH,
						writev(scene->pair.tx, iov, 3)));
}

TEST_FAMILY(calls, write_and_writev)
{
	identical(_metadata, scene_write, variant->family, variant->mode);
}

static void scene_sends(struct scene *scene)
{
	unsigned char *data = start(scene);
	int fd = scene->pair.tx, flag = scene->mode->flag, i;
	struct iovec iov[2] = { { data, 1001 }, { data + 1001, LENGTH - 1001 } };
	struct mmsghdr msgs[3] = {};
	long ret;

	scene_expect(scene, data, scene_account(scene, "send", LENGTH,
						send(fd, data, LENGTH, flag)));
	scene_expect(scene, data, scene_account(scene, "sendto", LENGTH,
						sendto(fd, data, LENGTH, flag, NULL, 0)));
	for (i = 0; i < 3; i++) {
		msgs[i].msg_hdr.msg_iov = iov;
		msgs[i].msg_hdr.msg_iovlen = 2;
	}
	scene_expect(scene, data, scene_account(scene, "sendmsg", LENGTH,
						sendmsg(fd, &msgs[0].msg_hdr, flag)));
	ret = sendmmsg(fd, msgs, 3, flag);
	note(scene, "sendmmsg: %ld", ret);
	for (i = 0; i < ret; i++)
		scene_account(scene, "one of them", LENGTH, msgs[i].msg_len);
	for (i = 0; i < ret; i++)
		scene_expect(scene, data, msgs[i].msg_len);
}

TEST_FAMILY(calls, send_sendto_sendmsg_sendmmsg)
{
	identical(_metadata, scene_sends, variant->family, variant->mode);
}

static void pipe_to_socket(struct scene *scene, const unsigned char *data, int ends[2])
{
	size_t left = LENGTH;
	long ret;

	while (left) {
		ret = scene_account(scene, "splice", left,
				    splice(ends[0], NULL, scene->pair.tx, NULL, left, 0));
		if (ret <= 0)
			break;
		scene_expect(scene, data + LENGTH - left, ret);
		left -= ret;
	}
	close(ends[0]);
	close(ends[1]);
}

static void open_pipe(struct scene *scene, int ends[2])
{
	if (pipe(ends) < 0 || fcntl(ends[0], F_SETPIPE_SZ, MIB) < 0)
		fatal(scene, "a pipe");
}

/* Pages go by reference where the protocol can; where not, they are copied. */
static void scene_splice(struct scene *scene)
{
	unsigned char *data = start(scene);
	struct iovec iov = { data, LENGTH };
	int ends[2];

	scene->transcript->mixed = true;
	hint_socket(scene);
	open_pipe(scene, ends);
	if (write(ends[1], data, LENGTH) != LENGTH)
		fatal(scene, "write to a pipe");
	pipe_to_socket(scene, data, ends);
	open_pipe(scene, ends);
	if (vmsplice(ends[1], &iov, 1, 0) != LENGTH)
		fatal(scene, "vmsplice to a pipe");
	pipe_to_socket(scene, data, ends);
}

TEST_FAMILY(calls, splice_and_vmsplice)
{
	identical(_metadata, scene_splice, variant->family, variant->mode);
}

static void scene_sendfile(struct scene *scene)
{
	unsigned char *data = start(scene);
	int file = memfd_create("data", MFD_CLOEXEC);
	off_t offset = 0;
	long ret;

	scene->transcript->mixed = true;
	hint_socket(scene);
	if (file < 0 || write(file, data, LENGTH) != LENGTH)
		fatal(scene, "a file");
	while (offset < LENGTH) {
		const unsigned char *from = data + offset;

		ret = sendfile(scene->pair.tx, file, &offset, LENGTH - offset);
		if (scene_account(scene, "sendfile", LENGTH, ret) <= 0)
			break;
		/* A record is as long as the file system's chunks. */
		if (!(scene->family->traits & RECORDS))
			scene_expect(scene, from, ret);
	}
}

TEST_FAMILY(calls, sendfile)
{
	identical(_metadata, scene_sendfile, variant->family, variant->mode);
}

/* As of a system call. */
static long own_result(int ret)
{
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

static long ring_request(struct scene *scene, int op, const void *data, size_t len, int flags)
{
	struct io_uring_sqe request = {
		.opcode = op, .fd = scene->pair.tx, .addr = (unsigned long)data, .len = len,
	};

	if (op != IORING_OP_WRITE)
		request.msg_flags = scene->mode->flag | flags;
	return own_result(ring_submit(&request, NULL, 0));
}

static void scene_uring(struct scene *scene)
{
	unsigned char *data = start(scene);
	struct iovec iov[2] = { { data, 1001 }, { data + 1001, LENGTH - 1001 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	long ret;

	ret = ring_request(scene, IORING_OP_SEND, data, LENGTH, 0);
	scene_expect(scene, data, scene_account(scene, "uring send", LENGTH, ret));
	ret = ring_request(scene, IORING_OP_SENDMSG, &msg, 1, 0);
	scene_expect(scene, data, scene_account(scene, "uring sendmsg", LENGTH, ret));
	hint_socket(scene);
	ret = ring_request(scene, IORING_OP_WRITE, data, LENGTH, 0);
	scene_expect(scene, data, scene_account(scene, "uring write", LENGTH, ret));
}

/*
 * Makes no ring: when one is closed the kernel interrupts a call that comes later,
 * and connect() of SCTP or vsock does not start again.  A ring that is not allowed
 * is there.
 */
static bool has_ring(void)
{
	return syscall(__NR_io_uring_setup, 1, NULL) < 0 && (errno == EFAULT || errno == EPERM);
}

TEST_FAMILY(calls, io_uring)
{
	if (!has_ring())
		SKIP(return, "io_uring: not in this kernel");
	identical(_metadata, scene_uring, variant->family, variant->mode);
}

/* A send of data that is not copied. */
static void scene_uring_zerocopy(struct scene *scene)
{
	unsigned char *data = start(scene);
	struct iovec iov[2] = { { data, 1001 }, { data + 1001, LENGTH - 1001 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	long ret;

	scene->transcript->mixed = true;
	ret = ring_request(scene, IORING_OP_SEND_ZC, data, LENGTH, 0);
	scene_expect(scene, data, scene_account(scene, "uring send zc", LENGTH, ret));
	ret = ring_request(scene, IORING_OP_SENDMSG_ZC, &msg, 1, 0);
	scene_expect(scene, data, scene_account(scene, "uring sendmsg zc", LENGTH, ret));
}

TEST_FAMILY(calls, io_uring_zerocopy)
{
	if (!has_ring())
		SKIP(return, "io_uring: not in this kernel");
	identical(_metadata, scene_uring_zerocopy, variant->family, variant->mode);
}

/* The kernel knows its pages already, and they begin anywhere. */
static void scene_uring_fixed(struct scene *scene)
{
	unsigned char *data = start(scene) + 100;
	struct iovec buffer = { data, LENGTH };
	struct io_uring_sqe request = {
		.opcode = IORING_OP_WRITE_FIXED, .fd = scene->pair.tx,
		.addr = (unsigned long)data, .len = LENGTH,
	};
	long ret;

	hint_socket(scene);
	ret = own_result(ring_submit(&request, &buffer, 1));
	scene_expect(scene, data, scene_account(scene, "uring write fixed", LENGTH, ret));
	scene->transcript->mixed = true;
	request.opcode = IORING_OP_SEND_ZC;
	request.ioprio = IORING_RECVSEND_FIXED_BUF;
	request.msg_flags = scene->mode->flag;
	ret = own_result(ring_submit(&request, &buffer, 1));
	scene_expect(scene, data, scene_account(scene, "uring send zc fixed", LENGTH, ret));
}

TEST_FAMILY(calls, io_uring_fixed_buffers)
{
	if (!has_ring())
		SKIP(return, "io_uring: not in this kernel");
	identical(_metadata, scene_uring_fixed, variant->family, variant->mode);
}

/* One send of all that a group of buffers has; of one piece less than a page. */
static void scene_uring_bundle(struct scene *scene)
{
	unsigned char *data = start(scene);
	struct iovec buffers[3] = {
		{ data, 20000 }, { data + 20000, 1001 }, { data + 21001, LENGTH - 21001 },
	};
	struct io_uring_sqe request = {
		.opcode = IORING_OP_SEND, .fd = scene->pair.tx, .flags = IOSQE_BUFFER_SELECT,
		.ioprio = IORING_RECVSEND_BUNDLE, .msg_flags = scene->mode->flag,
	};
	long ret = own_result(ring_submit(&request, buffers, ARRAY_SIZE(buffers)));

	scene_expect(scene, data, scene_account(scene, "uring bundle", LENGTH, ret));
}

TEST_FAMILY(calls, io_uring_bundles)
{
	if (!has_ring())
		SKIP(return, "io_uring: not in this kernel");
	/* It takes no byte of a plain bundle either. */
	if (!strcmp(variant->family->name, "tls"))
		SKIP(return, "takes no bundles: tls");
	identical(_metadata, scene_uring_bundle, variant->family, variant->mode);
}

/* The buffer is the caller's again: what arrives is what it held. */
static void expect_copied(struct scene *scene, unsigned char *data, const unsigned char *held,
			  const char *call, long ret)
{
	scene_account(scene, call, LENGTH, ret);
	memset(data, 0xee, LENGTH);
	scene_expect(scene, held, ret);
	memcpy(data, held, LENGTH);
}

/*
 * Flags that only the kernel may pass, as include/linux/socket.h has them.  The
 * first would hand over the caller's pages, were it not taken out.
 */
static const int kernel_flags[] = {
	0x8000000,	/* MSG_SPLICE_PAGES */
	0x10000,	/* MSG_SENDPAGE_NOPOLICY */
	0x100000,	/* MSG_SENDPAGE_DECRYPTED */
};

static void scene_kernel_flags(struct scene *scene)
{
	unsigned char *data = start(scene), *held = pages(LENGTH / 4096 + 1);
	struct iovec iov = { data, LENGTH };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fd = scene->pair.tx, flags;
	size_t i;

	memcpy(held, data, LENGTH);
	for (i = 0; i < ARRAY_SIZE(kernel_flags); i++) {
		flags = kernel_flags[i];
		note(scene, "flags %#x", flags);
		expect_copied(scene, data, held, "send",
			      send(fd, data, LENGTH, scene->mode->flag | flags));
		expect_copied(scene, data, held, "sendmsg",
			      sendmsg(fd, &msg, scene->mode->flag | flags));
		expect_copied(scene, data, held, "uring send",
			      ring_request(scene, IORING_OP_SEND, data, LENGTH, flags));
		expect_copied(scene, data, held, "uring sendmsg",
			      ring_request(scene, IORING_OP_SENDMSG, &msg, 1, flags));
	}
}

TEST_FAMILY(calls, flags_of_the_kernel)
{
	identical(_metadata, scene_kernel_flags, variant->family, variant->mode);
}

static void scene_aio(struct scene *scene)
{
	unsigned char *data = start(scene);
	struct iocb request = {
		.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = scene->pair.tx,
		.aio_buf = (unsigned long)data, .aio_nbytes = LENGTH,
	};
	struct iocb *requests[] = { &request };
	aio_context_t context = 0;
	struct io_event event;

	hint_socket(scene);
	if (syscall(__NR_io_setup, 1, &context) < 0) {
		note(scene, "io_setup: %s", strerror(errno));
		return;
	}
	if (syscall(__NR_io_submit, context, 1, requests) != 1 ||
	    syscall(__NR_io_getevents, context, 1, 1, &event, NULL) != 1) {
		note(scene, "io_submit: %s", strerror(errno));
		return;
	}
	scene_expect(scene, data, scene_account(scene, "aio write", LENGTH, event.res));
}

TEST_FAMILY(calls, aio)
{
	identical(_metadata, scene_aio, variant->family, variant->mode);
}

int main(int argc, char **argv)
{
	return ntcopy_main(argc, argv);
}
