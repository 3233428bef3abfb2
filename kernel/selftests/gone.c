// SPDX-License-Identifier: GPL-2.0
/* Sends to a peer that is gone, and from an end that is shut. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "identical.h"

FIXTURE(gone) {};
FIXTURE_SETUP(gone) {}
FIXTURE_TEARDOWN(gone) {}

FIXTURE_VARIANT(gone) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(gone, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(gone, unix_dgram_obeyed) { VARIANT(unix_dgram, obeyed) };
FIXTURE_VARIANT_ADD(gone, unix_seqpacket_obeyed) { VARIANT(unix_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(gone, tcp_obeyed) { VARIANT(tcp, obeyed) };
FIXTURE_VARIANT_ADD(gone, tcp6_obeyed) { VARIANT(tcp6, obeyed) };
FIXTURE_VARIANT_ADD(gone, mptcp_obeyed) { VARIANT(mptcp, obeyed) };
FIXTURE_VARIANT_ADD(gone, sctp_stream_obeyed) { VARIANT(sctp_stream, obeyed) };
FIXTURE_VARIANT_ADD(gone, vsock_stream_obeyed) { VARIANT(vsock_stream, obeyed) };
FIXTURE_VARIANT_ADD(gone, vsock_seqpacket_obeyed) { VARIANT(vsock_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(gone, tls_obeyed) { VARIANT(tls, obeyed) };
FIXTURE_VARIANT_ADD(gone, udp_obeyed) { VARIANT(udp, obeyed) };
FIXTURE_VARIANT_ADD(gone, netlink_obeyed) { VARIANT(netlink, obeyed) };

static int signals;

static void on_pipe(int signal)
{
	(void)signal;
	__atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
}

/*
 * Sends until it fails, but not for ever: the sender of a datagram may never
 * learn that there is no receiver.  How many sends go well before the news arrives is up
 * to timing.
 */
static void scene_peer_gone(struct scene *scene, int flags)
{
	struct sigaction action = { .sa_handler = on_pipe };
	unsigned char *data = pages(5);
	long ret = 0, i;

	fill(data, 5 * 4096, 43);
	sigaction(SIGPIPE, &action, NULL);
	scene_open(scene);
	close(scene->pair.rx);
	scene->pair.rx = scene->pair.tx;
	for (i = 0; i < 100 && ret >= 0; i++) {
		ret = send(scene->pair.tx, data + i, 20000, flags | scene->mode->flag);
		scene->transcript->accepted += ret > 0 ? ret : 0;
		if (ret >= 0)
			poll(NULL, 0, 10);
	}
	note(scene, "in the end: %s, %d signals", ret < 0 ? strerror(errno) : "goes on",
	     __atomic_load_n(&signals, __ATOMIC_RELAXED));
	ret = send(scene->pair.tx, data, 20000, flags | scene->mode->flag);
	scene->transcript->accepted += ret > 0 ? ret : 0;
	note(scene, "once more: %s, %d signals", ret < 0 ? strerror(errno) : "goes well",
	     __atomic_load_n(&signals, __ATOMIC_RELAXED));
	scene->transcript->uneven = true;
}

static void scene_gone_loudly(struct scene *scene)
{
	scene_peer_gone(scene, 0);
}

static void scene_gone_quietly(struct scene *scene)
{
	scene_peer_gone(scene, MSG_NOSIGNAL);
}

TEST_FAMILY(gone, with_sigpipe)
{
	identical(_metadata, scene_gone_loudly, variant->family, variant->mode);
}

TEST_FAMILY(gone, without_sigpipe)
{
	identical(_metadata, scene_gone_quietly, variant->family, variant->mode);
}

static void scene_own_end_shut(struct scene *scene)
{
	unsigned char *data = pages(5);

	fill(data, 5 * 4096, 47);
	scene_open(scene);
	scene_both(scene, data, 20000);
	note(scene, "shutdown: %d", shutdown(scene->pair.tx, SHUT_WR));
	if (scene_send(scene, data, 20000, 0) > 0)
		note(scene, "a send goes well after that");
}

TEST_FAMILY(gone, own_end_shut)
{
	identical(_metadata, scene_own_end_shut, variant->family, variant->mode);
}

int main(int argc, char **argv)
{
	return ntcopy_main(argc, argv);
}
