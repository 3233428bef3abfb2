// SPDX-License-Identifier: GPL-2.0
/*
 * Plain copies between user and kernel, which user-mode Linux makes over several pages at
 * once: over pages that do not follow each other, up to one that is not there, and to
 * pages that must not be written to as they are mapped.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#define PAGE	4096UL
#define COUNT	48UL			/* pages, more than a fragment has */
#define AREA	(COUNT * PAGE)
#define HOLE	21UL			/* the page that is missing */
#define ODD	1234UL			/* bytes into the first page */

static void fill(unsigned char *data, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		data[i] = (i * 2654435761U + seed) >> 11;
}

static unsigned char *anonymous(size_t pages)
{
	unsigned char *data = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return data == MAP_FAILED ? NULL : data;
}

static bool is_all(const unsigned char *data, size_t len, unsigned char byte)
{
	return data[0] == byte && !memcmp(data, data + 1, len - 1);
}

FIXTURE(copies) {
	int tx, rx;
	unsigned char *data;	/* what is copied */
	unsigned char *area;	/* to or from here, each page of it mapped anew */
	int fd;			/* what is mapped there */
	unsigned long order[COUNT];
};

/* Neighbours are mapped in runs of one to eight, the runs in reverse order. */
static int map_area(FIXTURE_DATA(copies) *self)
{
	unsigned long at, run, to = 0;

	for (at = COUNT; at; at -= run) {
		run = 1 + at % 8;
		run = run < at ? run : at;
		if (mmap(self->area + to * PAGE, run * PAGE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED | MAP_POPULATE, self->fd,
			 (at - run) * PAGE) == MAP_FAILED)
			return -1;
		to += run;
	}
	return 0;
}

FIXTURE_SETUP(copies)
{
	int pair[2], size = 4 * AREA;

	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	self->tx = pair[0];
	self->rx = pair[1];
	ASSERT_EQ(setsockopt(self->tx, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)), 0);
	self->fd = memfd_create("area", MFD_CLOEXEC);
	ASSERT_EQ(ftruncate(self->fd, AREA), 0);
	self->data = anonymous(COUNT);
	self->area = anonymous(COUNT + 1);
	ASSERT_NE(self->data, NULL);
	ASSERT_NE(self->area, NULL);
	ASSERT_EQ(map_area(self), 0);
	fill(self->data, AREA, 7);
}

FIXTURE_TEARDOWN(copies)
{
	close(self->tx);
	close(self->rx);
	close(self->fd);
}

TEST_F(copies, from_pages_that_do_not_follow_each_other)
{
	size_t len = AREA - ODD;

	memcpy(self->area + ODD, self->data, len);
	ASSERT_EQ(send(self->tx, self->area + ODD, len, 0), (ssize_t)len);
	memset(self->area, 0, AREA);
	ASSERT_EQ(recv(self->rx, self->data, len, MSG_WAITALL), (ssize_t)len);
	fill(self->area, AREA, 7);
	EXPECT_EQ(memcmp(self->data, self->area, len), 0);
}

TEST_F(copies, to_pages_that_do_not_follow_each_other)
{
	size_t len = AREA - ODD;

	ASSERT_EQ(send(self->tx, self->data, len, 0), (ssize_t)len);
	ASSERT_EQ(recv(self->rx, self->area + ODD, len, MSG_WAITALL), (ssize_t)len);
	EXPECT_EQ(memcmp(self->area + ODD, self->data, len), 0);
	EXPECT_TRUE(is_all(self->area, ODD, 0));
}

/* The kernel copies a page of the one side at a time, which are two of the other. */
static ssize_t copy_both(bool is_write, unsigned char *ours, unsigned char *theirs, size_t len)
{
	struct iovec local = { ours, len }, remote = { theirs, len };

	return is_write ? process_vm_writev(getpid(), &local, 1, &remote, 1, 0) :
			  process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
}

TEST_F(copies, from_before_a_hole)
{
	size_t there = HOLE * PAGE - ODD;
	unsigned char *to = anonymous(COUNT);

	memcpy(self->area, self->data, AREA);
	munmap(self->area + HOLE * PAGE, PAGE);
	EXPECT_EQ(copy_both(true, self->area + ODD, to, AREA - ODD), (ssize_t)there);
	EXPECT_EQ(memcmp(to, self->data + ODD, there), 0);
	EXPECT_TRUE(is_all(to + there, AREA - there, 0));
	EXPECT_EQ(pwrite(self->fd, self->area + ODD, AREA - ODD, AREA), (ssize_t)there);
}

TEST_F(copies, to_before_a_hole)
{
	size_t there = HOLE * PAGE - ODD;

	munmap(self->area + HOLE * PAGE, PAGE);
	EXPECT_EQ(copy_both(false, self->area + ODD, self->data, AREA - ODD), (ssize_t)there);
	EXPECT_EQ(memcmp(self->area + ODD, self->data, there), 0);
	EXPECT_TRUE(is_all(self->area + (HOLE + 1) * PAGE, AREA - (HOLE + 1) * PAGE, 0));
}

TEST_F(copies, from_before_the_end_of_a_mapping)
{
	unsigned char *to = anonymous(COUNT + 1);

	memcpy(self->area, self->data, AREA);
	munmap(self->area + AREA, PAGE);
	EXPECT_EQ(copy_both(true, self->area + ODD, to, AREA), (ssize_t)(AREA - ODD));
	EXPECT_EQ(memcmp(to, self->data + ODD, AREA - ODD), 0);
	EXPECT_EQ(send(self->tx, self->area + AREA - PAGE, 2 * PAGE, 0), -1);
	EXPECT_EQ(errno, EFAULT);
}

TEST_F(copies, to_before_the_end_of_a_mapping)
{
	munmap(self->area + AREA, PAGE);
	EXPECT_EQ(copy_both(false, self->area + ODD, self->data, AREA), (ssize_t)(AREA - ODD));
	EXPECT_EQ(memcmp(self->area + ODD, self->data, AREA - ODD), 0);
}

TEST_F(copies, not_to_a_page_that_is_read_only)
{
	unsigned char *page = self->area + HOLE * PAGE;
	size_t there = HOLE * PAGE - ODD;

	memset(self->area, 1, AREA);
	ASSERT_EQ(mprotect(page, PAGE, PROT_READ), 0);
	EXPECT_EQ(copy_both(false, self->area + ODD, self->data, AREA - ODD), (ssize_t)there);
	EXPECT_EQ(memcmp(self->area + ODD, self->data, there), 0);
	EXPECT_TRUE(is_all(page, AREA - HOLE * PAGE, 1));

	ASSERT_EQ(send(self->tx, self->data, AREA, 0), (ssize_t)AREA);
	EXPECT_LT(recv(self->rx, self->area, AREA, MSG_WAITALL), (ssize_t)AREA);
	EXPECT_TRUE(is_all(page, AREA - HOLE * PAGE, 1));
}

/* What a process receives after fork() is its own, and what it has not written is not. */
TEST_F(copies, to_pages_that_are_copied_when_written_to)
{
	unsigned char *ours = anonymous(COUNT);
	int status;
	pid_t pid;

	memset(ours, 1, AREA);
	ASSERT_EQ(send(self->tx, self->data, AREA, 0), (ssize_t)AREA);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		bool whole = recv(self->rx, ours, AREA, MSG_WAITALL) == (ssize_t)AREA &&
			     !memcmp(ours, self->data, AREA);

		_exit(!whole);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	EXPECT_TRUE(is_all(ours, AREA, 1));
}

TEST_F(copies, to_pages_of_a_private_mapping_of_a_file)
{
	unsigned char *ours = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE, self->fd, 0);

	ASSERT_NE(ours, MAP_FAILED);
	/* Read, and so mapped. */
	EXPECT_TRUE(is_all(ours, AREA, 0));
	ASSERT_EQ(send(self->tx, self->data, AREA, 0), (ssize_t)AREA);
	ASSERT_EQ(recv(self->rx, ours, AREA, MSG_WAITALL), (ssize_t)AREA);
	EXPECT_EQ(memcmp(ours, self->data, AREA), 0);
	EXPECT_TRUE(is_all(self->area, AREA, 0));
}

TEST_F(copies, not_to_the_page_of_zeros)
{
	unsigned char *ours = anonymous(COUNT), *others = anonymous(COUNT);

	EXPECT_TRUE(is_all(ours, AREA, 0));
	ASSERT_EQ(send(self->tx, self->data, AREA, 0), (ssize_t)AREA);
	ASSERT_EQ(recv(self->rx, ours, AREA, MSG_WAITALL), (ssize_t)AREA);
	EXPECT_EQ(memcmp(ours, self->data, AREA), 0);
	EXPECT_TRUE(is_all(others, AREA, 0));
}

/* A page that was given back and is written to by the kernel alone is not given back. */
TEST_F(copies, to_pages_that_were_given_back)
{
	unsigned char *ours = anonymous(COUNT);

	memset(ours, 1, AREA);
	ASSERT_EQ(send(self->tx, self->data, AREA, 0), (ssize_t)AREA);
	ASSERT_EQ(madvise(ours, AREA, MADV_FREE), 0);
	ASSERT_EQ(recv(self->rx, ours, AREA, MSG_WAITALL), (ssize_t)AREA);
	/* Takes all that is clean; without swap nothing else. */
	madvise(ours, AREA, MADV_PAGEOUT);
	EXPECT_EQ(memcmp(ours, self->data, AREA), 0);
}

#define ROUNDS	3000

/*
 * Cuts the file off, which unmaps it where it is copied to, and has pages of its own
 * meanwhile: mostly those that were freed.  Return: whether somebody else wrote to them.
 */
static bool cut_off(int fd)
{
	unsigned char *own;
	bool changed = false;
	size_t i;
	int round;

	for (round = 0; round < ROUNDS && !changed; round++) {
		own = anonymous(COUNT);
		if (!own || ftruncate(fd, 0) < 0)
			return true;
		memset(own, round, AREA);
		for (i = 0; i < 4; i++)
			changed |= !is_all(own, AREA, round);
		munmap(own, AREA);
		if (ftruncate(fd, AREA) < 0)
			return true;
	}
	return changed;
}

TEST_F_TIMEOUT(copies, to_pages_that_are_unmapped_meanwhile, 600)
{
	unsigned char *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
	int from = memfd_create("from", MFD_CLOEXEC), status;
	long copied = 0, short_ones = 0;
	ssize_t ret;
	pid_t pid;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU: nobody unmaps what is copied to meanwhile");
	ASSERT_NE(area, MAP_FAILED);
	ASSERT_EQ(write(from, self->data, AREA), (ssize_t)AREA);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(cut_off(self->fd));
	while (!waitpid(pid, &status, WNOHANG)) {
		ret = pread(from, area, AREA, 0);
		if (ret < 0)
			ASSERT_EQ(errno, EFAULT);
		copied += ret > 0;
		short_ones += ret < (ssize_t)AREA;
	}
	EXPECT_EQ(status, 0);
	EXPECT_GT(copied, 0);
	EXPECT_GT(short_ones, 0);
}

TEST_HARNESS_MAIN
