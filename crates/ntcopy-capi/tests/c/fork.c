/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A child of a fork beside another thread's first copy makes its own first copy.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ntcopy.h>

#include "check.h"

/* gcc's sign of AddressSanitizer, and clang's. */
#ifdef __SANITIZE_ADDRESS__
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

enum { LEN = 8192, ROUNDS = 40, STEPS = 4000 };

static char from[LEN], to[LEN], again[LEN];

static void *first_copy(void *unused)
{
	CHECK_IS(ntcopy_copy(to, from, LEN, NTCOPY_AUTO, NULL), 0);
	return unused;
}

/* Forks some steps after a thread has begun its copy. A child that hangs is ended by its alarm. */
static void fork_beside(int steps)
{
	pthread_t thread;
	pid_t child;
	int status;
	volatile int step;

	CHECK_IS(pthread_create(&thread, NULL, first_copy, NULL), 0);
	for (step = 0; step < steps; step++)
		;
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		alarm(10);
		_exit(ntcopy_copy(again, from, LEN, NTCOPY_AUTO, NULL) ||
		      memcmp(again, from, LEN) != 0);
	}
	CHECK_IS(waitpid(child, &status, 0), child);
	CHECK_IS(pthread_join(thread, NULL), 0);
	CHECK_IS(status, 0);
}

int main(int count, char **arguments)
{
	int round;

	memset(from, 5, LEN);
	(void)arguments;
	if (IS_SANITIZED) {
		fprintf(stderr, "a first copy allocates, and a fork may leave the lock of "
				"AddressSanitizer's allocator held in the child\n");
		return 77;
	}
	/* Each round in a process of its own, whose first copy it is. */
	for (round = 0; round < (count > 1 ? 1 : ROUNDS); round++) {
		pid_t child = fork();
		int status;

		CHECK(child >= 0);
		if (child == 0) {
			fork_beside(round * STEPS);
			_exit(0);
		}
		CHECK_IS(waitpid(child, &status, 0), child);
		CHECK_IS(status, 0);
	}
	return 0;
}
