/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Preloaded after libntcopy-preload.so, so that its constructor runs before
 * that one's: sockets, errors and a signal handler where nothing is ready yet.
 */
#include "check.h"

int early_done;

static void on_signal(int signal)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)signal;
	CHECK(fd >= 0 && !close(fd));
}

__attribute__((constructor)) static void early(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	int pair[2];

	fill_bytes();
	pair_of(AF_UNIX, SOCK_STREAM, pair);
	CHECK(write(pair[0], bytes, LARGE) == LARGE);
	drain(pair[1], LARGE);
	close_pair(pair);
	pair_of(AF_INET, SOCK_STREAM, pair);
	close_pair(pair);
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	CHECK(!raise(SIGUSR1));
	CHECK(socket(-1, SOCK_STREAM, 0) == -1 && errno == EAFNOSUPPORT);
	CHECK(syscall(SYS_getpid) == getpid());
	CHECK(prctl(PR_GET_DUMPABLE) >= 0);
	early_done = 1;
}
