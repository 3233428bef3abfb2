/* SPDX-License-Identifier: GPL-2.0 */
/* What the two halves of module_fuzz know of each other: rounds, and acts. */
#ifndef NTCOPY_MODULE_FUZZ_H
#define NTCOPY_MODULE_FUZZ_H

#include "module_calls.h"

#define BYTES_MAX	65536
/* Bytes of shared.hole that are there. */
#define HOLE_AT		8192
#define ACTS_MAX	32

struct listener {
	int fd;
	struct sockaddr_storage addr;
	socklen_t len;
};

/* What came of the acts, in memory of all processes. */
struct tallies {
	unsigned long done[ACTS_MAX], good[ACTS_MAX], wrong;
};

/* What all processes of a round have. */
struct shared {
	int mailbox[2];			/* for descriptors */
	struct listener listener;
	unsigned char bytes[BYTES_MAX];	/* all the same: *PASSED_WITH */
	unsigned char *hole;
	struct tallies *tallies;
};

extern struct shared shared;

/* A thread, and what it does next. */
struct actor {
	__u64 random;
	int depth;			/* of forks */
};

void act(struct actor *actor);
void forget_sockets(void);
void print_tallies(void);

#endif /* NTCOPY_MODULE_FUZZ_H */
