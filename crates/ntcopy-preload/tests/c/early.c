/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Preloaded after libntcopy-preload.so, so that its constructor runs before
 * that one's: sends, errors and a signal handler where nothing is ready yet.
 */
#include "check.h"

int early_done;
static int early_pair[2];

static void on_signal(int signal)
{
	(void)signal;
	CHECK(write(early_pair[0], bytes, LARGE) == LARGE);
}

__attribute__((constructor)) static void early(void)
{
	struct iovec one = { .iov_base = bytes, .iov_len = LARGE };
	struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1 };
	struct mmsghdr messages = { .msg_hdr = message };
	struct sigaction action = { .sa_handler = on_signal };
	int spare;

	fill_bytes();
	pair_of(AF_UNIX, SOCK_STREAM, early_pair);
	CHECK(write(early_pair[0], bytes, LARGE) == LARGE);
	drain(early_pair[1], LARGE);
	CHECK(writev(early_pair[0], &one, 1) == LARGE);
	drain(early_pair[1], LARGE);
	CHECK(send(early_pair[0], bytes, LARGE, 0) == LARGE);
	drain(early_pair[1], LARGE);
	CHECK(sendto(early_pair[0], bytes, LARGE, 0, NULL, 0) == LARGE);
	drain(early_pair[1], LARGE);
	CHECK(sendmsg(early_pair[0], &message, 0) == LARGE);
	drain(early_pair[1], LARGE);
	CHECK(sendmmsg(early_pair[0], &messages, 1, 0) == 1);
	drain(early_pair[1], LARGE);
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	CHECK(!raise(SIGUSR1));
	drain(early_pair[1], LARGE);
	CHECK(write(-1, bytes, LARGE) == -1 && errno == EBADF);
	CHECK(syscall(SYS_getpid) == getpid());
	CHECK(prctl(PR_GET_DUMPABLE) >= 0);
	spare = dup(0);
	CHECK(dup2(spare, spare) == spare && dup3(spare, spare + 1, 0) == spare + 1);
	CHECK(!close_range((unsigned int)spare, (unsigned int)spare + 1, 0));
	CHECK(close(spare) == -1 && errno == EBADF);
	close_pair(early_pair);
	early_done = 1;
}
