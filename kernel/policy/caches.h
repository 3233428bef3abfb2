/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Caches, and a program that sends through them. A normal copy is cheap where its
 * destination is still there from the round before, and it takes rounds to get
 * there; a non-temporal one costs the same always, but for lines that it has to
 * drive out first.
 */
#ifndef POLICY_CACHES_H
#define POLICY_CACHES_H

/* Costs are ns for 16 KiB. */
struct caches {
	u64		capacity;	/* bytes of destinations that stay */
	unsigned int	settle;		/* rounds until a set that fits is there */
	unsigned int	hit;		/* normal copy, its destination cached */
	unsigned int	miss;		/* normal copy, all of it from memory */
	unsigned int	nontemporal;	/* non-temporal copy */
	unsigned int	overwrite;	/* beside that, if the destination is cached */
	unsigned int	noise;		/* percent that a send takes more, at most */
};

enum way { NORMAL_ONLY, NONTEMPORAL_ONLY, ADAPTIVE };

/* What is sent: the destination's pages come back after in_flight bytes. */
struct work {
	u64		in_flight;
	u64		source;
	unsigned int	send;		/* bytes of a send */
	unsigned int	copy;		/* bytes of a copy in it */
	unsigned int	other;		/* ns of a send beside its copies */
	unsigned int	sleeps;		/* one send of so many sleeps a millisecond; 0: none */
	bool		faults;		/* each copy sleeps */
	u64		to;		/* where it is, in bytes from the start */
	u64		from;
};

/* What came of it. */
struct sent {
	u64		bytes;
	u64		nontemporal;
	u64		ns;		/* without what was slept */
	unsigned int	changes;	/* of the way, copy by copy */
	u64		settled;	/* bytes before the last change */
};

/* Empty caches, and a policy that knows nothing, on a CPU that says this of its cache. */
void start(const struct caches *caches, u64 said);
/* Everything goes on where it was, but the caches are other ones. */
void other_caches(const struct caches *caches);
/* Sends so many bytes. */
struct sent send_some(struct work *work, u64 bytes, enum way way);
/* Time passes in which nobody sends. */
void idle(unsigned int ms);
/* Whether the clock counts anything but jiffies. */
extern bool clock_is_coarse;

#endif /* POLICY_CACHES_H */
