/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of /dev/ntcopy share: sockets to try. */
#ifndef NTCOPY_MODULE_H
#define NTCOPY_MODULE_H

#include <unistd.h>

#include "identical.h"
#include "module_calls.h"

static inline long sent(const int *pair, int flags)
{
	static unsigned char data[60000], got[60000];
	long ret = send(pair[0], data, sizeof(data), flags);

	return ret > 0 ? recv(pair[1], got, ret, MSG_WAITALL) : ret;
}

/* These bytes of a send went past the caches, and no others were hinted. */
static inline void expect_sent(struct __test_metadata *_metadata, const int *pair, int flags,
			       long hinted)
{
	struct counts before = read_counts(), counts;

	EXPECT_EQ(sent(pair, flags), 60000);
	counts = counts_since(&before);
	EXPECT_EQ(counts.bytes, number_of(pair[0]) > 0 ? 60000 : 0);
	EXPECT_EQ(counts.hinted, hinted);
	EXPECT_EQ(counts.bypassed, hinted);
}

#define EXPECT_SENT(pair, flags, hinted) \
	expect_sent(_metadata, pair, flags, hinted)

static inline int connect_one(const struct sockaddr_storage *addr, socklen_t len)
{
	int fd = socket(addr->ss_family, SOCK_STREAM, 0);

	if (connect(fd, (void *)addr, len) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Every test ends with as many sockets attached as it began with. */
FIXTURE(module)
{
	struct ntcopy_module_info before;
	long refcnt;
	int pair[2];
};

FIXTURE_SETUP(module)
{
	ASSERT_EQ(set_mode("1"), 0);
	ASSERT_EQ(write_file(FLOOR_PATH, "1"), 0);
	opt_in = false;
	ASSERT_LE(0, module_device());
	self->before = info();
	self->refcnt = refcnt();
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, self->pair), 0);
}

FIXTURE_TEARDOWN(module)
{
	struct ntcopy_module_info after;
	int i;

	close(self->pair[0]);
	close(self->pair[1]);
	/* What is closed may still be on its way out, and what was let go be watched. */
	for (i = 0; i < 500; i++) {
		after = info();
		if (after.attached == self->before.attached &&
		    after.lingering == self->before.lingering && refcnt() == self->refcnt)
			break;
		usleep(20000);
	}
	EXPECT_EQ(after.attached, self->before.attached);
	EXPECT_EQ(after.lingering, self->before.lingering);
	EXPECT_EQ(refcnt(), self->refcnt);
}

/* The main function of a program that is about the module and nothing else. */
static inline int module_main(int argc, char **argv)
{
	if (!via_module()) {
		ksft_print_header();
		ksft_exit_skip("no /dev/ntcopy here, or no need for it\n");
	}
	if (!own_namespace()) {
		ksft_print_header();
		ksft_exit_skip("a network namespace of its own takes root\n");
	}
	return test_harness_run(argc, argv);
}

#endif /* NTCOPY_MODULE_H */
