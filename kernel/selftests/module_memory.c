// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of attached sockets: sockets and cgroups are charged for it as they
 * are for that of plain sends.
 */
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "module.h"

#define CGROUPS		"/sys/fs/cgroup"
#define IN_FLIGHT	(4 * MIB)
/* Beyond what sender and reader have anyway: far less than they pass on. */
#define ROOM		(4 * MIB)
#define TRAFFIC		(128 * MIB)
/* Bytes that a socket holds. */
#define NARROW		200000

static unsigned char data[IN_FLIGHT];

static long outq(int fd)
{
	int bytes;

	return ioctl(fd, SIOCOUTQ, &bytes) < 0 ? -errno : bytes;
}

/* One of SK_MEMINFO_*: what a socket is charged for. */
static long meminfo(int fd, int what)
{
	__u32 values[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(values);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, values, &len) < 0)
		return -errno;
	return values[what];
}

static void receive(struct __test_metadata *_metadata, int fd, long bytes)
{
	static unsigned char got[64 * KIB];
	long ret;

	while (bytes > 0) {
		ret = recv(fd, got, sizeof(got), 0);
		ASSERT_LT(0, ret);
		bytes -= ret;
	}
}

/* Percent of a plain send's charge, at least and at most. */
struct bounds {
	long least, most;
};

static void expect_charged(struct __test_metadata *_metadata, const char *what, long bytes,
			   long hinted, long plain, struct bounds bounds)
{
	EXPECT_LE(bytes, hinted);
	EXPECT_LE(plain * bounds.least, hinted * 100);
	EXPECT_LE(hinted * 100, plain * bounds.most) {
		TH_LOG("%s, %ld bytes: charged %ld hinted, %ld plain", what, bytes, hinted, plain);
	}
}

/* Attached, or a socket like any other; and every byte goes that way. */
static void send_as(struct __test_metadata *_metadata, const struct pair *pair, long bytes,
		    bool hinted)
{
	struct counts before = read_counts(), counts;

	if (hinted)
		ASSERT_EQ(attach(pair->tx, NTCOPY_MODULE_MIN_BYTES), 0);
	ASSERT_EQ(send(pair->tx, data, bytes, 0), bytes);
	counts = counts_since(&before);
	EXPECT_EQ(counts.bytes, hinted ? bytes : 0);
	EXPECT_EQ(counts.bypassed, hinted ? bytes : 0);
}

static long unix_charge(struct __test_metadata *_metadata, long bytes, bool hinted)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	long charge;

	ASSERT_EQ(unix_stream.open(&unix_stream, &pair), 0);
	EXPECT_EQ(outq(pair.tx), 0);
	send_as(_metadata, &pair, bytes, hinted);
	charge = outq(pair.tx);
	EXPECT_EQ(charge, meminfo(pair.tx, SK_MEMINFO_WMEM_ALLOC));
	receive(_metadata, pair.rx, bytes);
	EXPECT_EQ(outq(pair.tx), 0);
	close_pair(&pair);
	return charge;
}

/* A plain send rounds up to whole pages, docs/reference/kernel.md says how far that goes. */
TEST_F(module, charges_a_unix_socket_for_what_nobody_has_read)
{
	static const long sizes[] = { 4096, 10000, 36544, 65536, 200000, MIB };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		expect_charged(_metadata, "unix", sizes[i],
			       unix_charge(_metadata, sizes[i], true),
			       unix_charge(_metadata, sizes[i], false), (struct bounds){ 80, 130 });
}

/* Return: 0, or why there is no cgroup of one's own whose memory is counted. */
static int make_cgroup(char *cgroup, size_t size)
{
	char controllers[1024];
	int ret = read_file(CGROUPS "/cgroup.controllers", controllers, sizeof(controllers));

	if (ret < 0)
		return ret;
	if (!strstr(controllers, "memory"))
		return -EOPNOTSUPP;
	ret = write_file(CGROUPS "/cgroup.subtree_control", "+memory");
	if (ret < 0)
		return ret;
	snprintf(cgroup, size, CGROUPS "/ntcopy-%d", getpid());
	return own_error(mkdir(cgroup, 0755));
}

/* Who was in it may still be on the way out. */
static void remove_cgroup(struct __test_metadata *_metadata, const char *cgroup)
{
	int i;

	for (i = 0; i < 500 && rmdir(cgroup) < 0; i++)
		usleep(20000);
	EXPECT_NE(access(cgroup, F_OK), 0);
}

static long cgroup_current(const char *cgroup)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "%s/memory.current", cgroup);
	return read_file(path, text, sizeof(text)) < 0 ? -1 : atol(text);
}

static bool write_to_cgroup(const char *cgroup, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", cgroup, name);
	return !write_file(path, text);
}

/* A process in the cgroup that has touched all that it is going to. */
static bool enter_cgroup(const char *cgroup, bool hinted, struct pair *pair)
{
	if (!write_to_cgroup(cgroup, "cgroup.procs", "0"))
		return false;
	memset(data, 1, sizeof(data));
	return !unix_stream.open(&unix_stream, pair) &&
	       (!hinted || !attach(pair->tx, NTCOPY_MODULE_MIN_BYTES)) &&
	       send(pair->tx, data, 1, 0) == 1 && recv(pair->rx, data, 1, 0) == 1;
}

/* What the cgroup is charged for bytes in flight; -1 if something failed. */
static long cgroup_charge(const char *cgroup, bool hinted)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	long before, charge = -1;
	int ends[2];

	if (pipe(ends) < 0)
		return -1;
	if (!fork()) {
		if (!enter_cgroup(cgroup, hinted, &pair))
			_exit(1);
		before = cgroup_current(cgroup);
		if (send(pair.tx, data, IN_FLIGHT, 0) != (long)IN_FLIGHT)
			_exit(1);
		charge = cgroup_current(cgroup) - before;
		_exit(write(ends[1], &charge, sizeof(charge)) != sizeof(charge));
	}
	close(ends[1]);
	if (read(ends[0], &charge, sizeof(charge)) != sizeof(charge))
		charge = -1;
	close(ends[0]);
	wait(NULL);
	return charge;
}

#define SKIP_WITHOUT_CGROUP(ret) \
	SKIP(return, "no cgroup2 that counts memory here: %s", strerror(-(ret)))

/* Each CPU may have 64 pages in reserve that are charged already. */
TEST_F_TIMEOUT(module, charges_the_cgroup_of_the_sender, TIMEOUT_SECONDS)
{
	char cgroup[64];
	int ret = make_cgroup(cgroup, sizeof(cgroup));
	long hinted, plain;

	if (ret < 0)
		SKIP_WITHOUT_CGROUP(ret);
	hinted = cgroup_charge(cgroup, true);
	plain = cgroup_charge(cgroup, false);
	expect_charged(_metadata, "cgroup", IN_FLIGHT / 10 * 9, hinted, plain,
		       (struct bounds){ 75, 130 });
	remove_cgroup(_metadata, cgroup);
}

static void take_all(int fd)
{
	size_t done;
	long ret;

	for (done = 0; done < TRAFFIC; done += ret) {
		ret = recv(fd, data, 64 * KIB, 0);
		if (ret <= 0)
			_exit(1);
	}
	_exit(0);
}

/* Sends far more than the cgroup may have, to a reader who is in it as well. */
static void send_in_bounds(const char *cgroup, bool hinted)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	int size = NARROW, status;
	char limit[32];
	size_t done;
	pid_t pid;

	if (!enter_cgroup(cgroup, hinted, &pair) ||
	    setsockopt(pair.tx, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)))
		_exit(1);
	pid = fork();
	if (!pid)
		take_all(pair.rx);
	snprintf(limit, sizeof(limit), "%ld", cgroup_current(cgroup) + (long)ROOM);
	if (!write_to_cgroup(cgroup, "memory.max", limit))
		_exit(2);
	for (done = 0; done < TRAFFIC; done += MIB)
		if (send(pair.tx, data, MIB, 0) != (long)MIB)
			_exit(3);
	_exit(waitpid(pid, &status, 0) != pid || status);
}

/* Who took more, or gave it back late, would be killed. */
TEST_F_TIMEOUT(module, keeps_within_the_limit_of_a_cgroup, TIMEOUT_SECONDS)
{
	int hinted, status, ret;
	char cgroup[64];
	pid_t pid;

	for (hinted = 0; hinted < 2; hinted++) {
		ret = make_cgroup(cgroup, sizeof(cgroup));
		if (ret < 0)
			SKIP_WITHOUT_CGROUP(ret);
		pid = fork();
		if (!pid)
			send_in_bounds(cgroup, hinted);
		ASSERT_EQ(waitpid(pid, &status, 0), pid);
		EXPECT_EQ(status, 0) {
			TH_LOG("%s sends end with status %#x", hinted ? "hinted" : "plain", status);
		}
		remove_cgroup(_metadata, cgroup);
	}
}

int main(int argc, char **argv)
{
	return module_main(argc, argv);
}
