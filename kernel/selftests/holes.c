// SPDX-License-Identifier: GPL-2.0
/*
 * Random gathered sends from memory in which pages are missing: the same return
 * values, the same errors and the same bytes, hinted or not.  How many of each
 * family is up to NTCOPY_SELFTEST_HOLES.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "identical.h"

#define AREA_PAGES	96
#define AREA		(AREA_PAGES * PAGE)
#define SEGMENTS	24
#define MOST_HOLES	3
#define CASES		100	/* unless the environment says otherwise */
#define A_SOCKET	50	/* cases that are sent through it */

FIXTURE(holes) {};
FIXTURE_SETUP(holes) {}
FIXTURE_TEARDOWN(holes) {}

FIXTURE_VARIANT(holes) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(holes, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(holes, unix_dgram_obeyed) { VARIANT(unix_dgram, obeyed) };
FIXTURE_VARIANT_ADD(holes, unix_seqpacket_obeyed) { VARIANT(unix_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(holes, tcp_obeyed) { VARIANT(tcp, obeyed) };
FIXTURE_VARIANT_ADD(holes, tcp6_obeyed) { VARIANT(tcp6, obeyed) };
FIXTURE_VARIANT_ADD(holes, udp_obeyed) { VARIANT(udp, obeyed) };
FIXTURE_VARIANT_ADD(holes, udp6_obeyed) { VARIANT(udp6, obeyed) };
FIXTURE_VARIANT_ADD(holes, udp_gso_obeyed) { VARIANT(udp_gso, obeyed) };
FIXTURE_VARIANT_ADD(holes, mptcp_obeyed) { VARIANT(mptcp, obeyed) };
FIXTURE_VARIANT_ADD(holes, sctp_stream_obeyed) { VARIANT(sctp_stream, obeyed) };
FIXTURE_VARIANT_ADD(holes, sctp_seqpacket_obeyed) { VARIANT(sctp_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(holes, vsock_stream_obeyed) { VARIANT(vsock_stream, obeyed) };
FIXTURE_VARIANT_ADD(holes, raw_obeyed) { VARIANT(raw, obeyed) };
FIXTURE_VARIANT_ADD(holes, raw_hdrincl_obeyed) { VARIANT(raw_hdrincl, obeyed) };
FIXTURE_VARIANT_ADD(holes, ping_obeyed) { VARIANT(ping, obeyed) };
FIXTURE_VARIANT_ADD(holes, packet_dgram_obeyed) { VARIANT(packet_dgram, obeyed) };
FIXTURE_VARIANT_ADD(holes, tls_obeyed) { VARIANT(tls, obeyed) };
FIXTURE_VARIANT_ADD(holes, netlink_obeyed) { VARIANT(netlink, obeyed) };

static unsigned long cases(void)
{
	const char *text = getenv("NTCOPY_SELFTEST_HOLES");
	unsigned long count = text ? strtoul(text, NULL, 10) : 0;

	return count ? count : CASES;
}

/* What is sent, a page or another of which is missing, and all of it. */
struct area {
	int fd;
	unsigned char *data, *whole, *flat;
	size_t holes[MOST_HOLES], count;
};

static void open_area(struct scene *scene, struct area *area)
{
	area->fd = memfd_create("area", MFD_CLOEXEC);
	if (area->fd < 0 || ftruncate(area->fd, AREA) < 0)
		fatal(scene, "a file");
	area->whole = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_SHARED, area->fd, 0);
	area->data = mmap(NULL, AREA, PROT_READ, MAP_SHARED, area->fd, 0);
	area->flat = pages(SEGMENTS * AREA_PAGES / 4);
	if (area->whole == MAP_FAILED || area->data == MAP_FAILED)
		fatal(scene, "mmap");
	fill(area->whole, AREA, 83);
	area->count = 0;
}

/* Beyond the end of a file, or nothing at all. */
static void take_pages(struct scene *scene, struct area *area)
{
	size_t i;

	area->count = any(scene, MOST_HOLES + 1);
	for (i = 0; i < area->count; i++) {
		area->holes[i] = any(scene, AREA_PAGES);
		if (any(scene, 2))
			make_hole(area->data + area->holes[i] * PAGE);
		else
			munmap(area->data + area->holes[i] * PAGE, PAGE);
	}
}

static void give_back(struct scene *scene, struct area *area)
{
	size_t at;

	while (area->count) {
		at = area->holes[--area->count] * PAGE;
		if (mmap(area->data + at, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, area->fd, at) ==
		    MAP_FAILED)
			fatal(scene, "mmap");
	}
}

/* Short ones, ones about a page long, and some that copies go through in turns. */
static size_t any_segment(struct scene *scene)
{
	switch (any(scene, 4)) {
	case 0:
		return any(scene, 200);
	case 1:
		return PAGE - 40 + any(scene, 80);
	case 2:
		return PAGE + any(scene, 2000);
	default:
		return any(scene, 12 * PAGE);
	}
}

/* Return: how many bytes there are before the first one that is missing. */
static size_t gather(struct scene *scene, struct area *area, struct iovec *iov, size_t count)
{
	size_t max = scene_max(scene, 20 * PAGE), used = 0, missing = (size_t)-1, i, h, len, at;

	for (i = 0; i < count; i++) {
		len = any_segment(scene);
		if (len > max - used)
			len = max - used;
		at = any(scene, AREA - len);
		if (!any(scene, 3))
			at -= at % PAGE;
		iov[i].iov_base = area->data + at;
		iov[i].iov_len = len;
		memcpy(area->flat + used, area->whole + at, len);
		for (h = 0; h < area->count; h++) {
			size_t hole = area->holes[h] * PAGE;
			size_t first = hole > at ? hole : at;

			if (first < at + len && first < hole + PAGE && used + first - at < missing)
				missing = used + first - at;
		}
		used += len;
	}
	return missing < used ? missing : used;
}

/*
 * Where TCP and MPTCP go on in a page is up to timing, and with it how much they
 * take of what precedes a hole, and whether that is nothing.
 */
static long send_gathered(struct scene *scene, const struct iovec *iov, size_t count)
{
	struct transcript *transcript = scene->transcript;
	struct msghdr msg = { .msg_iov = (void *)iov, .msg_iovlen = count };
	long ret;

	if (!is_any_amount(scene->family))
		return scene_sendv(scene, iov, count, 0);
	transcript->uneven = true;
	ret = sendmsg(scene->pair.tx, &msg, scene->mode->flag | MSG_NOSIGNAL);
	transcript->accepted += ret > 0 ? ret : 0;
	if (ret < 0 && errno != EFAULT)
		note(scene, "an error that is none of a hole: %d", errno);
	return ret;
}

static void one_case(struct scene *scene, struct area *area)
{
	size_t count = 1 + any(scene, SEGMENTS), preceding;
	struct iovec iov[SEGMENTS], whole = { area->whole, 5000 };
	long ret, next;

	take_pages(scene, area);
	preceding = gather(scene, area, iov, count);
	ret = send_gathered(scene, iov, count);
	if (ret > (long)preceding)
		note(scene, "accepted what is not there");
	/* What it took may be kept back until a send is whole. */
	next = send_gathered(scene, &whole, 1);
	if (is_any_amount(scene->family)) {
		if (ret > 0 && scene_receive(scene, area->flat, ret) != (size_t)ret)
			note(scene, "something else came");
		if (next > 0 && scene_receive(scene, area->whole, next) != (size_t)next)
			note(scene, "something else came after it");
	} else {
		scene_expect(scene, area->flat, ret);
		scene_expect(scene, area->whole, next);
	}
	give_back(scene, area);
}

static void scene_cases(struct scene *scene)
{
	unsigned long i, count = cases();
	struct area area;

	open_area(scene, &area);
	for (i = 0; i < count; i++) {
		if (i % A_SOCKET == 0) {
			scene_close(scene);
			scene_open(scene);
		}
		/* What they are does not depend on what was sent before. */
		scene->random = i * 1000003;
		one_case(scene, &area);
	}
	note(scene, "cases: %lu", count);
}

TEST_F_TIMEOUT(holes, of_gathered_sends, 3600)
{
	if (cases() != CASES)
		ksft_print_msg("%lu cases, not %d\n", cases(), CASES);
	identical(_metadata, scene_cases, variant->family, variant->mode);
}

int main(int argc, char **argv)
{
	return ntcopy_main(argc, argv);
}
