// SPDX-License-Identifier: GPL-2.0
/* SO_NTCOPY and the sysctl: values, inheritance, namespaces, rights. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "identical.h"

#define MODE_PATH	"/proc/sys/net/core/ntcopy"

static int set_option(int fd, int value)
{
	return own_error(set_hint(fd, value));
}

/* One socket of each family. */
FIXTURE(option)
{
	struct pair pair;
};

FIXTURE_VARIANT(option)
{
	const struct family *family;
};

FIXTURE_VARIANT_ADD(option, unix_stream) { .family = &unix_stream };
FIXTURE_VARIANT_ADD(option, unix_dgram) { .family = &unix_dgram };
FIXTURE_VARIANT_ADD(option, unix_seqpacket) { .family = &unix_seqpacket };
FIXTURE_VARIANT_ADD(option, tcp) { .family = &tcp };
FIXTURE_VARIANT_ADD(option, tcp6) { .family = &tcp6 };
FIXTURE_VARIANT_ADD(option, udp) { .family = &udp };
FIXTURE_VARIANT_ADD(option, udp6) { .family = &udp6 };
FIXTURE_VARIANT_ADD(option, udplite) { .family = &udplite };
FIXTURE_VARIANT_ADD(option, ping) { .family = &ping };
FIXTURE_VARIANT_ADD(option, raw) { .family = &raw };
FIXTURE_VARIANT_ADD(option, raw6) { .family = &raw6 };
FIXTURE_VARIANT_ADD(option, packet_dgram) { .family = &packet_dgram };
FIXTURE_VARIANT_ADD(option, mptcp) { .family = &mptcp };
FIXTURE_VARIANT_ADD(option, sctp_stream) { .family = &sctp_stream };
FIXTURE_VARIANT_ADD(option, sctp_seqpacket) { .family = &sctp_seqpacket };
FIXTURE_VARIANT_ADD(option, vsock_stream) { .family = &vsock_stream };
FIXTURE_VARIANT_ADD(option, vsock_seqpacket) { .family = &vsock_seqpacket };
FIXTURE_VARIANT_ADD(option, tls) { .family = &tls };
FIXTURE_VARIANT_ADD(option, alg_hash) { .family = &alg_hash };
FIXTURE_VARIANT_ADD(option, netlink) { .family = &netlink };

FIXTURE_SETUP(option)
{
	int ret;

	self->pair.tx = -1;
	self->pair.rx = -1;
	opt_in = false;
	ret = variant->family->open(variant->family, &self->pair);
	if (ret < 0)
		SKIP(return, "%s: %s", variant->family->name, strerror(-ret));
	if (!can_be_hinted(variant->family))
		SKIP(return, "the module has no %s", variant->family->name);
}

FIXTURE_TEARDOWN(option)
{
	close_pair(&self->pair);
}

/* From so many bytes on. */
static const int good_values[] = { NTCOPY_FLAGGED, 1 << 30, 256 * KIB, 0 };

TEST_F(option, takes_its_values)
{
	static const int others[] = { NTCOPY_MIN_BYTES, NTCOPY_MIN_BYTES + 1, 65537, 12345678 };
	size_t i;

	EXPECT_EQ(get_hint(self->pair.tx), 0);
	for (i = 0; i < ARRAY_SIZE(good_values); i++) {
		EXPECT_EQ(set_option(self->pair.tx, good_values[i]), 0);
		EXPECT_EQ(get_hint(self->pair.tx), good_values[i]);
	}
	if (via_module())
		return;		/* what it rounds is tried in module.c */
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		EXPECT_EQ(set_option(self->pair.tx, others[i]), 0);
		EXPECT_EQ(get_hint(self->pair.tx), others[i]);
	}
}

TEST_F(option, takes_no_other_values)
{
	static const int bad[] = { -1, 1, 2, 3, 4, 4095, -4096, 1 << 31 };
	long long wide = 256 * KIB;
	size_t i;

	EXPECT_EQ(set_option(self->pair.tx, NTCOPY_FLAGGED), 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(set_option(self->pair.tx, bad[i]), -EINVAL) {
			TH_LOG("%d is taken", bad[i]);
		}
	}
	if (via_module())
		return;		/* its argument is tried in module.c */
	EXPECT_EQ(own_error(setsockopt(self->pair.tx, SOL_SOCKET, SO_NTCOPY, &wide, 1)), -EINVAL);
	EXPECT_EQ(own_error(setsockopt(self->pair.tx, SOL_SOCKET, SO_NTCOPY, &wide, 0)), -EINVAL);
	EXPECT_EQ(own_error(setsockopt(self->pair.tx, SOL_SOCKET, SO_NTCOPY, (void *)8, 4)),
		  -EFAULT);
	EXPECT_EQ(get_hint(self->pair.tx), NTCOPY_FLAGGED);
	/* The same as every integer option: what is longer is cut. */
	EXPECT_EQ(own_error(setsockopt(self->pair.tx, SOL_SOCKET, SO_NTCOPY, &wide, 8)), 0);
	EXPECT_EQ(get_hint(self->pair.tx), 256 * (int)KIB);
}

TEST_F(option, is_its_sockets_own)
{
	if (self->pair.rx == self->pair.tx)
		SKIP(return, "one socket is both ends");
	EXPECT_EQ(set_option(self->pair.tx, NTCOPY_FLAGGED), 0);
	EXPECT_EQ(get_hint(self->pair.rx), 0);
}

/* Every socket that accept() returns has what the listening one has. */
FIXTURE(inherited)
{
	struct pair pair;
};

FIXTURE_VARIANT(inherited)
{
	const struct family *family;
	/* that connects, if it is another one */
	const struct family *sender;
};

FIXTURE_VARIANT_ADD(inherited, unix_stream) { .family = &unix_stream };
FIXTURE_VARIANT_ADD(inherited, unix_seqpacket) { .family = &unix_seqpacket };
FIXTURE_VARIANT_ADD(inherited, tcp) { .family = &tcp };
FIXTURE_VARIANT_ADD(inherited, tcp6) { .family = &tcp6 };
FIXTURE_VARIANT_ADD(inherited, mptcp) { .family = &mptcp };
FIXTURE_VARIANT_ADD(inherited, mptcp6) { .family = &mptcp6 };
FIXTURE_VARIANT_ADD(inherited, mptcp_from_tcp) { .family = &mptcp, .sender = &tcp };
FIXTURE_VARIANT_ADD(inherited, mptcp6_from_tcp6) { .family = &mptcp6, .sender = &tcp6 };
FIXTURE_VARIANT_ADD(inherited, sctp_stream) { .family = &sctp_stream };
FIXTURE_VARIANT_ADD(inherited, sctp6_stream) { .family = &sctp6_stream };
FIXTURE_VARIANT_ADD(inherited, vsock_stream) { .family = &vsock_stream };
FIXTURE_VARIANT_ADD(inherited, vsock_seqpacket) { .family = &vsock_seqpacket };

FIXTURE_SETUP(inherited)
{
	opt_in = false;
	self->pair.tx = -1;
	self->pair.rx = -1;
}

FIXTURE_TEARDOWN(inherited)
{
	close_pair(&self->pair);
}

TEST_F(inherited, by_accepted_sockets)
{
	const struct family *sender = variant->sender ?: variant->family;
	struct sockaddr_storage addr;
	socklen_t len;
	size_t i;
	int ret;

	if (!can_be_hinted(variant->family))
		SKIP(return, "the module has no %s", variant->family->name);
	for (i = 0; i < ARRAY_SIZE(good_values); i++) {
		len = listening_address(variant->family, &addr);
		ret = open_listening(variant->family, sender, &addr, len, &self->pair,
				     good_values[i]);
		if (ret == -EPROTONOSUPPORT || ret == -ESOCKTNOSUPPORT || ret == -EAFNOSUPPORT)
			SKIP(return, "%s: %s", variant->family->name, strerror(-ret));
		ASSERT_EQ(ret, 0);
		EXPECT_EQ(get_hint(self->pair.rx), good_values[i]);
		EXPECT_EQ(get_hint(self->pair.tx), 0);
		close_pair(&self->pair);
	}
}

TEST(sysctl_takes_its_values_and_no_others)
{
	static const char * const good[] = { "0", "1" };
	static const char * const bad[] = { "3", "-1", "255", "256", "x", "4294967296" };
	char text[32];
	size_t i;
	int fd = open("/proc/1/ns/net", O_RDONLY);

	ASSERT_LE(0, fd);
	ASSERT_EQ(setns(fd, CLONE_NEWNET), 0);
	close(fd);
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		EXPECT_EQ(set_mode(good[i]), 0) {
			TH_LOG("%s is refused", good[i]);
		}
		read_file(MODE_PATH, text, sizeof(text));
		EXPECT_EQ(text[0], good[i][0]);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(set_mode(bad[i]), -EINVAL) {
			TH_LOG("%s is taken", bad[i]);
		}
		read_file(MODE_PATH, text, sizeof(text));
		EXPECT_EQ(text[0], '1');
	}
}

static long long sent_megabyte(int option, int flags)
{
	static unsigned char data[MIB];
	struct pair pair = { .tx = -1, .rx = -1 };
	struct counts before, counts;
	long ret;

	before = read_counts();
	opt_in = false;
	if (unix_stream.open(&unix_stream, &pair) < 0)
		return -1;
	if (option && set_hint(pair.tx, option) < 0)
		return -1;
	ret = send(pair.tx, data, sizeof(data), flags);
	close_pair(&pair);
	counts = counts_since(&before);
	if (ret != (long)sizeof(data) || counts.hinted != counts.bypassed ||
	    counts.bytes != (option ? ret : 0))
		return -1;
	return counts.bypassed;
}

/* The setting is the machine's, and not to be seen in others. */
TEST(namespaces_begin_with_zeroes)
{
	struct counts counts, zero = { 0 };
	char text[32];

	EXPECT_EQ(set_mode("1"), 0);
	EXPECT_EQ(sent_megabyte(256 * KIB, 0), (long long)MIB);
	ASSERT_EQ(unshare(CLONE_NEWNET), 0);
	counts = read_counts();
	EXPECT_EQ(memcmp(&counts, &zero, sizeof(zero)), 0);
	EXPECT_EQ(read_file(MODE_PATH, text, sizeof(text)), -ENOENT);
}

TEST(namespaces_share_the_setting_and_no_counters)
{
	struct counts before, counts, zero = { 0 };
	int status;
	pid_t pid;

	EXPECT_EQ(set_mode("1"), 0);
	before = read_counts();
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (unshare(CLONE_NEWNET) ||
		    sent_megabyte(256 * KIB, 0) != (long long)MIB || set_mode("0") ||
		    sent_megabyte(256 * KIB, MSG_NTCOPY) != 0)
			_exit(1);
		_exit(0);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	counts = counts_since(&before);
	EXPECT_EQ(memcmp(&counts, &zero, sizeof(zero)), 0);
	/* 0 was the machine's. */
	EXPECT_EQ(sent_megabyte(256 * KIB, MSG_NTCOPY), 0);
	EXPECT_EQ(set_mode("1"), 0);
	EXPECT_EQ(sent_megabyte(NTCOPY_FLAGGED, 0), 0);
	EXPECT_EQ(sent_megabyte(NTCOPY_FLAGGED, MSG_NTCOPY), (long long)MIB);
}

/* Whatever other sockets did, and whatever the sysctl says of hints. */
TEST(the_flag_is_ignored_without_the_option)
{
	static const struct family * const families[] = {
		&unix_stream, &unix_dgram, &unix_seqpacket, &tcp, &tcp6, &udp, &udp6,
	};
	static const char * const modes[] = { "0", "1" };
	static unsigned char data[8 * PAGE], received[8 * PAGE];
	struct counts before, counts, zero = { 0 };
	struct pair pair = { .tx = -1, .rx = -1 };
	size_t i, f;

	EXPECT_EQ(set_mode("1"), 0);
	EXPECT_EQ(sent_megabyte(256 * KIB, 0), (long long)MIB);
	fill(data, sizeof(data), 77);
	before = read_counts();
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		ASSERT_EQ(set_mode(modes[i]), 0);
		for (f = 0; f < ARRAY_SIZE(families); f++) {
			ASSERT_EQ(families[f]->open(families[f], &pair), 0);
			EXPECT_EQ(send(pair.tx, data, sizeof(data), MSG_NTCOPY),
				  (long)sizeof(data));
			EXPECT_EQ(recv(pair.rx, received, sizeof(received), MSG_WAITALL),
				  (long)sizeof(received));
			EXPECT_EQ(memcmp(received, data, sizeof(data)), 0);
			counts = counts_since(&before);
			EXPECT_EQ(memcmp(&counts, &zero, sizeof(zero)), 0) {
				TH_LOG("%s, mode %s", families[f]->name, modes[i]);
			}
			close_pair(&pair);
		}
	}
}

/* A socket is its namespace's, wherever its user has gone. */
TEST(a_socket_is_counted_where_it_was_made)
{
	static unsigned char data[MIB];
	struct counts before, counts;
	struct pair pair = { .tx = -1, .rx = -1 };
	int status;
	pid_t pid;

	EXPECT_EQ(set_mode("1"), 0);
	ASSERT_EQ(unix_stream.open(&unix_stream, &pair), 0);
	before = read_counts();
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (unshare(CLONE_NEWNET) ||
		    send(pair.tx, data, sizeof(data), MSG_NTCOPY) != (long)sizeof(data))
			_exit(1);
		counts = read_counts();
		_exit(counts.bytes != 0);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	counts = counts_since(&before);
	EXPECT_EQ(counts.bypassed, (long long)MIB);
	close_pair(&pair);
}

TEST(users_may_hint_but_not_set_sysctls)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	struct counts before, counts;
	static unsigned char data[MIB];
	size_t i;
	int fd;

	EXPECT_EQ(set_mode("1"), 0);
	opt_in = false;
	/* The module's device is root's, and opened by now. */
	ASSERT_TRUE(kernel_has_ntcopy());
	ASSERT_EQ(unix_stream.open(&unix_stream, &pair), 0);
	ASSERT_EQ(setresgid(65534, 65534, 65534), 0);
	ASSERT_EQ(setresuid(65534, 65534, 65534), 0);
	EXPECT_EQ(set_mode("1"), -EACCES);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	for (i = ARRAY_SIZE(good_values); i--;) {
		EXPECT_EQ(set_option(fd, good_values[i]), 0);
		EXPECT_EQ(get_hint(fd), good_values[i]);
		EXPECT_EQ(set_option(pair.tx, good_values[i]), 0);
		EXPECT_EQ(get_hint(pair.tx), good_values[i]);
	}
	close(fd);
	before = read_counts();
	EXPECT_EQ(send(pair.tx, data, sizeof(data), MSG_NTCOPY), (long)sizeof(data));
	counts = counts_since(&before);
	EXPECT_EQ(counts.bypassed, (long long)MIB);
	close_pair(&pair);
}

int main(int argc, char **argv)
{
	return ntcopy_main(argc, argv);
}
