// SPDX-License-Identifier: GPL-2.0
/*
 * What the adaptive mode decides, beside caches that are made up: README.md.
 *
 * A bound on a loss is what the comments of nontemporal.c promise, with room for
 * the first trials; where a test names costs they are those that were seen on the
 * CPUs of docs/ADAPTIVE.md, in ns for 16 KiB.
 */
#include SOURCE

#include <stdio.h>
#include <string.h>

#include "caches.h"

#define KIB		(1UL << 10)
#define MIB		(1UL << 20)
#define GIB		(1UL << 30)

static bool failed;

#define EXPECT(yes, ...) do {						\
	if (!(yes)) {							\
		failed = true;						\
		printf("# %s:%d: %s: ", __FILE__, __LINE__, #yes);	\
		printf(__VA_ARGS__);					\
		printf("\n");						\
	}								\
} while (0)

/* A cache of 32 MiB, where misses are dear and non-temporal copies in between. */
static const struct caches plain = {
	.capacity = 32 * MIB, .settle = 2,
	.hit = 1500, .miss = 2700, .nontemporal = 2000, .overwrite = 1000,
};

static struct work sockets(u64 in_flight, u64 source)
{
	return (struct work) {
		.in_flight = in_flight, .source = source,
		.send = 64 * KIB, .copy = 32 * KIB, .other = 2000,
	};
}

static void forget(void)
{
	free(nontemporal_cpu);
	nontemporal_cpu = NULL;
	nontemporal_cache_bytes = 0;
	clock_is_coarse = false;
	memory_is_short = false;
}

static void begin(const struct caches *caches, u64 said)
{
	forget();
	start(caches, said);
}

/* What the better of the two ways takes for so many bytes, once it has settled. */
static u64 best_ns(const struct caches *caches, struct work work, u64 bytes)
{
	u64 best = U64_MAX;
	enum way way;

	for (way = NORMAL_ONLY; way <= NONTEMPORAL_ONLY; way++) {
		begin(caches, 1 * GIB);
		send_some(&work, 32 * work.in_flight, way);
		best = min(best, send_some(&work, bytes, way).ns);
	}
	return best;
}

/* Sends more than enough to learn, and then so much; by the best, in thousandths. */
static u64 loss(const struct caches *caches, u64 said, struct work work, struct sent *sent)
{
	u64 learn = 64 * work.in_flight + 4 * GIB, bytes = 32 * GIB;
	u64 best = best_ns(caches, work, bytes);

	begin(caches, said);
	send_some(&work, learn, ADAPTIVE);
	*sent = send_some(&work, bytes, ADAPTIVE);
	return sent->ns * 1000 / best;
}

static unsigned int percent(const struct sent *sent)
{
	return sent->nontemporal * 100 / sent->bytes;
}

/* Whatever the CPU says of its cache: what things cost decides. */
static void whatever_is_said(u64 least, u64 most, u64 source, unsigned int percent_low,
			     unsigned int percent_high, u64 by_best_high)
{
	static const u64 said[] = { 1 * MIB, 32 * MIB, 480 * MIB };
	struct sent sent;
	u64 in_flight, by_best;
	int i;

	for (i = 0; i < 3; i++)
		for (in_flight = least; in_flight <= most; in_flight *= 2) {
			by_best = loss(&plain, said[i], sockets(in_flight, source), &sent);
			EXPECT(percent(&sent) >= percent_low && percent(&sent) <= percent_high &&
			       by_best <= by_best_high,
			       "%lu MiB in flight, said %lu: %u %% non-temporal, %lu",
			       in_flight / MIB, said[i] / MIB, percent(&sent), by_best);
		}
}

static void what_fits_is_copied_normally(void)
{
	whatever_is_said(1 * MIB, 32 * MIB, 1 * MIB, 0, 2, 1010);
}

static void what_does_not_fit_is_copied_non_temporally(void)
{
	whatever_is_said(64 * MIB, 256 * MIB, 256 * MIB, 96, 100, 1015);
}

/* Where it never pays, no trial says so for long. */
static void a_cpu_on_which_it_never_pays_loses_next_to_nothing(void)
{
	struct caches caches = plain;
	struct sent sent;
	u64 in_flight, by_best;

	caches.nontemporal = 4000;
	for (in_flight = 1 * MIB; in_flight <= 128 * MIB; in_flight *= 4) {
		by_best = loss(&caches, 1 * MIB, sockets(in_flight, 64 * MIB), &sent);
		EXPECT(by_best <= 1012, "%lu MiB in flight: %lu", in_flight / MIB, by_best);
	}
}

/* 24 MiB took 18 rounds to get back, on a CPU with an adaptive insertion policy. */
static void normal_copies_get_the_rounds_that_they_need(void)
{
	struct caches often = plain, slow = plain;
	struct sent sent;
	u64 by_best;

	often.settle = 18;
	by_best = loss(&often, 1 * MIB, sockets(24 * MIB, 1 * MIB), &sent);
	EXPECT(percent(&sent) <= 3 && by_best <= 1015,
	       "%u %% non-temporal, %lu", percent(&sent), by_best);
	/* No round is much cheaper than the one before, but sixteen are. */
	slow.settle = 40;
	slow.hit = 1000;
	by_best = loss(&slow, 1 * MIB, sockets(24 * MIB, 1 * MIB), &sent);
	EXPECT(percent(&sent) <= 3 && by_best <= 1020,
	       "%u %% non-temporal, %lu", percent(&sent), by_best);
}

/* The first round of them drives out what normal ones left. */
static void nontemporal_copies_get_over_what_is_cached(void)
{
	struct caches caches = plain;
	struct sent sent;
	u64 by_best;

	caches.nontemporal = 1300;
	caches.overwrite = 2500;
	by_best = loss(&caches, 480 * MIB, sockets(24 * MIB, 1 * MIB), &sent);
	EXPECT(percent(&sent) >= 95 && by_best <= 1015,
	       "%u %% non-temporal, %lu", percent(&sent), by_best);
}

/* As cheap is not cheaper: a splice that finds the bytes in memory takes longer. */
static void what_costs_the_same_is_copied_normally(void)
{
	struct caches caches = plain;
	struct sent sent;

	caches.nontemporal = 1485;
	loss(&caches, 480 * MIB, sockets(4 * MIB, 1 * MIB), &sent);
	EXPECT(percent(&sent) <= 5, "%u %% non-temporal", percent(&sent));
}

static void noise_does_not_make_it_waver(void)
{
	struct caches caches = plain;
	struct sent sent;
	u64 in_flight, by_best;

	caches.noise = 30;
	for (in_flight = 4 * MIB; in_flight <= 128 * MIB; in_flight *= 2) {
		struct work work = sockets(in_flight, 16 * MIB);

		work.sleeps = 100;
		by_best = loss(&caches, 64 * MIB, work, &sent);
		EXPECT(sent.changes <= 64 && by_best <= 1020, "%lu MiB in flight: %u changes, %lu",
		       in_flight / MIB, sent.changes, by_best);
	}
}

/* 1 socket of 2 MiB, 128 of them, and 1 again; the first time, the sizes between are new. */
static void a_change_of_what_is_in_flight_is_followed(void)
{
	struct work few = sockets(2 * MIB, 64 * MIB), many = sockets(256 * MIB, 64 * MIB);
	struct sent sent;
	int i;

	begin(&plain, 64 * MIB);
	send_some(&few, 16 * GIB, ADAPTIVE);
	send_some(&many, 32 * GIB, ADAPTIVE);
	for (i = 0; i < 4; i++) {
		sent = send_some(&few, 1 * GIB, ADAPTIVE);
		EXPECT(sent.nontemporal <= (i ? 320 : 640) * MIB, "few: %lu MiB non-temporal",
		       sent.nontemporal / MIB);
		sent = send_some(&many, 2 * GIB, ADAPTIVE);
		EXPECT(sent.bytes - sent.nontemporal <= 640 * MIB, "many: %lu MiB normal",
		       (sent.bytes - sent.nontemporal) / MIB);
	}
}

/*
 * A neighbour takes most of the cache, and gives it back. Trials have become rare
 * by then; that costs have changed is a reason for one.
 */
static void a_change_of_the_cache_is_followed(void)
{
	struct work work = sockets(16 * MIB, 1 * MIB);
	struct caches less = plain;
	struct sent sent;

	less.capacity = 4 * MIB;
	begin(&plain, 64 * MIB);
	send_some(&work, 512 * GIB, ADAPTIVE);
	other_caches(&less);
	send_some(&work, 16 * GIB, ADAPTIVE);
	sent = send_some(&work, 8 * GIB, ADAPTIVE);
	EXPECT(percent(&sent) >= 90, "less: %u %% non-temporal", percent(&sent));
	/* What non-temporal copies cost does not tell. */
	other_caches(&plain);
	send_some(&work, 256 * GIB, ADAPTIVE);
	sent = send_some(&work, 8 * GIB, ADAPTIVE);
	EXPECT(percent(&sent) <= 10, "as before: %u %% non-temporal", percent(&sent));
}

/* What a task sleeps is no cost of the copies. */
static void sleep_teaches_nothing(void)
{
	struct sent sent;
	struct work work = sockets(4 * MIB, 1 * MIB);
	u64 by_best;

	work.sleeps = 3;
	by_best = loss(&plain, 1 * MIB, work, &sent);
	EXPECT(percent(&sent) <= 2 && by_best <= 1010, "%u %% non-temporal, %lu", percent(&sent),
	       by_best);
	EXPECT(nontemporal_cpu->cost->ns[TEMPORAL] < 2500, "16 KiB cost %u ns",
	       nontemporal_cpu->cost->ns[TEMPORAL]);
}

/* From the middle of a trial on nothing can be timed. */
static void a_trial_that_learns_nothing_ends(void)
{
	struct work work = sockets(16 * MIB, 1 * MIB);
	struct sent sent;
	int i;

	begin(&plain, 480 * MIB);
	for (i = 0; i < 1 << 20 && !(nontemporal_cpu->trial && nontemporal_cpu->choice); i++)
		send_some(&work, 64 * KIB, ADAPTIVE);
	EXPECT(nontemporal_cpu->trial, "no trial in %d sends", i);
	work.faults = true;
	sent = send_some(&work, 4 * GIB, ADAPTIVE);
	EXPECT(!nontemporal_cpu->trial && sent.nontemporal <= 1200 * MIB,
	       "%lu MiB non-temporal", sent.nontemporal / MIB);
}

/* An administrator's size is compared with both working sets, and nothing is timed. */
static void a_size_that_is_set_decides(void)
{
	struct work little = sockets(2 * MIB, 1 * MIB), much = sockets(24 * MIB, 1 * MIB);
	struct sent sent;

	begin(&plain, 480 * MIB);
	nontemporal_cache_bytes = 16 * MIB;
	send_some(&little, 256 * MIB, ADAPTIVE);
	sent = send_some(&little, 4 * GIB, ADAPTIVE);
	EXPECT(sent.nontemporal == 0, "little: %lu bytes", sent.nontemporal);
	send_some(&much, 256 * MIB, ADAPTIVE);
	sent = send_some(&much, 4 * GIB, ADAPTIVE);
	EXPECT(sent.nontemporal == sent.bytes, "much: %lu bytes normal",
	       sent.bytes - sent.nontemporal);
	nontemporal_cache_bytes = 480 * MIB;
	sent = send_some(&much, 4 * GIB, ADAPTIVE);
	EXPECT(sent.nontemporal == 0, "much, all of it set: %lu bytes", sent.nontemporal);
}

/* Without a clock the CPU's word is all there is. */
static void a_clock_of_jiffies_times_nothing(void)
{
	struct work work = sockets(16 * MIB, 1 * MIB), more = sockets(256 * MIB, 1 * MIB);
	struct sent sent;

	forget();
	clock_is_coarse = true;
	start(&plain, 64 * MIB);
	send_some(&work, 1 * GIB, ADAPTIVE);
	sent = send_some(&work, 4 * GIB, ADAPTIVE);
	EXPECT(sent.nontemporal == 0, "%lu bytes non-temporal", sent.nontemporal);
	send_some(&more, 2 * GIB, ADAPTIVE);
	sent = send_some(&more, 4 * GIB, ADAPTIVE);
	EXPECT(sent.nontemporal == sent.bytes, "%lu bytes normal", sent.bytes - sent.nontemporal);
}

static void no_memory_means_normal_copies(void)
{
	struct work work = sockets(256 * MIB, 256 * MIB);
	struct sent sent;

	forget();
	memory_is_short = true;
	start(&plain, 1 * MIB);
	sent = send_some(&work, 2 * GIB, ADAPTIVE);
	EXPECT(sent.nontemporal == 0, "%lu bytes non-temporal", sent.nontemporal);
}

/* A proxy that sends in bursts of a few megabytes, with nothing for a while between. */
static void bursts_teach_as_well(void)
{
	struct work work = sockets(128 * MIB, 256 * MIB);
	struct sent sent = { .bytes = 0 }, burst;
	int i;

	begin(&plain, 480 * MIB);
	for (i = 0; i < 12000; i++) {
		burst = send_some(&work, 4 * MIB, ADAPTIVE);
		if (i >= 8000) {
			sent.bytes += burst.bytes;
			sent.nontemporal += burst.nontemporal;
		}
		idle(50);
	}
	EXPECT(percent(&sent) >= 85, "%u %% non-temporal", percent(&sent));
}

#define TEST(name)	{ #name, name }

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(what_fits_is_copied_normally),
	TEST(what_does_not_fit_is_copied_non_temporally),
	TEST(a_cpu_on_which_it_never_pays_loses_next_to_nothing),
	TEST(normal_copies_get_the_rounds_that_they_need),
	TEST(nontemporal_copies_get_over_what_is_cached),
	TEST(what_costs_the_same_is_copied_normally),
	TEST(noise_does_not_make_it_waver),
	TEST(a_change_of_what_is_in_flight_is_followed),
	TEST(a_change_of_the_cache_is_followed),
	TEST(sleep_teaches_nothing),
	TEST(a_trial_that_learns_nothing_ends),
	TEST(a_size_that_is_set_decides),
	TEST(a_clock_of_jiffies_times_nothing),
	TEST(no_memory_means_normal_copies),
	TEST(bursts_teach_as_well),
};

/* With an argument it ends at the first test that fails: mutations.sh asks no more. */
int main(int argc, char **argv)
{
	int count = sizeof(tests) / sizeof(tests[0]), i, bad = 0;

	(void)argv;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..%d\n", count);
	for (i = 0; i < count && !(bad && argc > 1); i++) {
		failed = false;
		tests[i].run();
		bad += failed;
		printf("%sok %d %s\n", failed ? "not " : "", i + 1, tests[i].name);
	}
	free(nontemporal_cpu);
	return !!bad;
}
