// SPDX-License-Identifier: GPL-2.0
/*
 * Processes and threads that share sockets, and attach, detach, send, close,
 * duplicate, pass on, accept and change them all at once, as numbers from a seed
 * have it.  Each round is a network namespace of its own, which ends with the
 * round, or before its sockets.
 *
 * Ends with 1 if a byte arrives that was not sent, a round hangs, or a socket or
 * a reference to the module is left when all is closed.  The rest is up to the
 * kernel's checkers.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "module_fuzz.h"

#define PROCESSES	3
#define THREADS		3
#define ACTS		200

/* A round takes seconds, also under KASAN in an emulator. */
#define ROUND_LIMIT_S	300
#define SETTLE_LIMIT_S	30

static void *thread(void *arg)
{
	int i;

	for (i = 0; i < ACTS; i++)
		act(arg);
	return NULL;
}

static void process(__u64 seed)
{
	struct actor actors[THREADS] = { };
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++) {
		actors[i].random = (seed * THREADS + i + 1) * 0x9e3779b97f4a7c15 | 1;
		if (pthread_create(&threads[i], NULL, thread, &actors[i]))
			_exit(1);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

static bool listen_there(struct listener *listener)
{
	listener->len = listening_address(&unix_stream, &listener->addr);
	listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (listener->fd < 0 || bind(listener->fd, (void *)&listener->addr, listener->len) ||
	    listen(listener->fd, 16))
		return false;
	listener->len = sizeof(listener->addr);
	return !getsockname(listener->fd, (void *)&listener->addr, &listener->len);
}

static void play_round(__u64 seed)
{
	int i, status, code = 0;

	setpgid(0, 0);
	if (!own_namespace() || !listen_there(&shared.listener) ||
	    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, shared.mailbox))
		_exit(1);
	forget_sockets();
	for (i = 0; i < PROCESSES; i++)
		if (!fork())
			process(seed * PROCESSES + i);
	while (wait(&status) > 0)
		code |= status;
	_exit(!!code);
}

static bool end_in_time(pid_t pid, unsigned long round)
{
	time_t begun = time(NULL);
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (time(NULL) - begun > ROUND_LIMIT_S) {
			/* The kernel's log says who waits for what. */
			write_file("/proc/sysrq-trigger", "w");
			kill(-pid, SIGKILL);
			printf("FAILED: round %lu: hangs\n", round);
			return false;
		}
		usleep(5000);
	}
	if (status)
		printf("FAILED: round %lu: ended with status %#x\n", round, status);
	return !status;
}

/* Descriptors that were on their way are collected when a unix socket is closed. */
static bool settle(const struct ntcopy_module_info *before, long refcnt_before,
		   unsigned long round)
{
	struct ntcopy_module_info now;
	time_t begun = time(NULL);
	int pair[2];
	long left;

	do {
		if (!socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
			close(pair[0]);
			close(pair[1]);
		}
		now = info();
		left = refcnt() - refcnt_before;
		if (!left && now.attached == before->attached && now.lingering == before->lingering)
			return true;
		usleep(10000);
	} while (time(NULL) - begun < SETTLE_LIMIT_S);
	printf("FAILED: round %lu: %lld attached, %lld lingering, %ld references are left\n", round,
	       (long long)now.attached, (long long)now.lingering, left);
	return false;
}

/* Return: how many rounds were played until one failed, or time was up. */
static unsigned long play_all(__u64 seed, long seconds, bool *good)
{
	struct ntcopy_module_info before = info();
	long refcnt_before = refcnt();
	time_t begun = time(NULL);
	unsigned long round = 0;
	pid_t pid;

	*good = true;
	while (*good && (!round || time(NULL) - begun < seconds)) {
		fflush(stdout);
		pid = fork();
		if (!pid)
			play_round(seed * 1000003 + round);
		*good = pid > 0 && end_in_time(pid, round) &&
			settle(&before, refcnt_before, round);
		if (shared.tallies->wrong) {
			printf("FAILED: round %lu: a byte arrived that was not sent\n", round);
			*good = false;
		}
		round++;
	}
	return round;
}

int main(int argc, char **argv)
{
	unsigned long rounds;
	__u64 seed;
	bool good;

	if (argc != 3) {
		fprintf(stderr, "usage: module_fuzz SEED SECONDS\n");
		return 2;
	}
	if (!via_module()) {
		fprintf(stderr, "module_fuzz: no /dev/ntcopy here, or no need for it\n");
		return 4;
	}
	if (geteuid()) {
		fprintf(stderr, "module_fuzz: a network namespace of its own takes root\n");
		return 4;
	}
	seed = strtoull(argv[1], NULL, 0);
	opt_in = false;
	signal(SIGPIPE, SIG_IGN);
	memset(shared.bytes, *PASSED_WITH, BYTES_MAX);
	shared.hole = pages(HOLE_AT / sysconf(_SC_PAGESIZE));
	memset(shared.hole, *PASSED_WITH, HOLE_AT);
	shared.tallies = mmap(NULL, sizeof(*shared.tallies), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared.tallies == MAP_FAILED)
		return 1;
	rounds = play_all(seed, atol(argv[2]), &good);
	print_tallies();
	printf("%s: seed %llu, %lu rounds\n", good ? "ok" : "not ok", seed, rounds);
	return !good;
}
