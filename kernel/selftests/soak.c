// SPDX-License-Identifier: GPL-2.0
/*
 * Random send programs, one line for each: what it was, and a hash of all that
 * it saw.  The same seed prints the same lines on every kernel and with every
 * value of net.core.ntcopy; cargo xtask soak compares them.  This program does
 * not set that value, unless an option has it flipped while sends are under way.
 * Through ntcopy.ko, its sockets are attached, and only families are played that
 * can be.
 *
 * Ends with 1 if a byte arrived that was not sent, a program did not come to
 * its end, or a byte was not counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acts.h"
#include "scene.h"

#define MODE_PATH	"/proc/sys/net/core/ntcopy"

struct options {
	unsigned long long seed, count, only;
	bool flip, inject, print;
};

static const struct mode hinted = { "hinted", NULL, MSG_NTCOPY, NTCOPY_FLAGGED };

/* Those that can be hinted: all of them, unless it is the module that does it. */
static const struct family **families;
static size_t families_count;

static void choose_families(void)
{
	size_t i;

	families = calloc(all_families_count, sizeof(*families));
	for (i = 0; families && i < all_families_count; i++)
		if (can_be_hinted(all_families[i]))
			families[families_count++] = all_families[i];
}

static int print_usage(void)
{
	fprintf(stderr,
		"usage: soak --seed N [--count N] [--only N] [--flip] [--inject]\n"
		"  --seed N    what everything follows from\n"
		"  --count N   how many programs, 100 if not said\n"
		"  --only N    print what program N saw, and play no other\n"
		"  --flip      change net.core.ntcopy all the time\n"
		"  --inject    let sends fail as /proc/self/make-it-fail has it\n");
	return 2;
}

static bool parse(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "count", required_argument, NULL, 'c' },
		{ "only", required_argument, NULL, 'o' },
		{ "flip", no_argument, NULL, 'f' },
		{ "inject", no_argument, NULL, 'i' },
		{ }
	};
	bool seeded = false;
	int option;

	options->count = 100;
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 's')
			options->seed = strtoull(optarg, NULL, 0);
		else if (option == 'c')
			options->count = strtoull(optarg, NULL, 0);
		else if (option == 'o')
			options->only = strtoull(optarg, NULL, 0);
		else if (option == 'f')
			options->flip = true;
		else if (option == 'i')
			options->inject = true;
		else
			return false;
		seeded |= option == 's';
		options->print |= option == 'o';
	}
	return seeded && optind == argc;
}

/* Changes the setting until it is killed. */
static pid_t flip(void)
{
	static const char * const modes[] = { "1", "0", "2" };
	unsigned int i;
	pid_t pid;

	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0;; i++) {
		set_mode(modes[i % ARRAY_SIZE(modes)]);
		usleep(500);
	}
}

/* The machine's setting, which no other namespace shows. */
static char mode_at_start[32];

static bool every_send_is_hinted(void)
{
	return mode_at_start[0] == '2';
}

/* Return: whether the kernel kept its promises, as far as one playing shows. */
static bool judge(unsigned long long number, const struct outcome *outcome, bool counted)
{
	const struct transcript *transcript = outcome->transcript;
	long long sum = outcome->counts.hinted;

	if (transcript->unavailable)
		return true;
	if (!transcript->finished || transcript->wrong)
		printf("FAILED: program %llu: %s (status %#x)\n", number,
		       transcript->wrong ? "wrong bytes" : "did not end", outcome->status);
	else if (counted && sum != transcript->accepted)
		printf("FAILED: program %llu: %lld bytes counted of %lld\n", number, sum,
		       transcript->accepted);
	else
		return true;
	printf("%s", transcript->text);
	return false;
}

static bool play_one(unsigned long long number, const struct options *options, bool counted)
{
	__u64 seed = options->seed * 1000003 + number;
	const struct family *family = families[seed % families_count];
	struct outcome outcome;
	bool good;

	play(scene_random, family, &hinted, seed, &outcome);
	if (options->print)
		printf("%s", outcome.transcript->text);
	/* Where allocations fail, everything may be refused, but nothing go wrong. */
	if (outcome.transcript->unavailable)
		printf("%llu %s: %s\n", number, family->name,
		       strerror(outcome.transcript->unavailable));
	else if (!options->inject)
		printf("%llu %s: %lld lines, %016llx\n", number, family->name,
		       outcome.transcript->lines, (unsigned long long)outcome.transcript->hash);
	good = judge(number, &outcome, counted);
	forget(&outcome);
	return good;
}

/* That there were any bytes to fail with. */
static void print_counts(void)
{
	struct counts counts = read_counts();

	printf("# %s %lld\n", NTCOPY_STAT_HINTED, counts.hinted);
	printf("# %s %lld\n", NTCOPY_STAT_BYPASSED, counts.bypassed);
}

int main(int argc, char **argv)
{
	struct options options = { 0 };
	unsigned long long i, bad = 0;
	bool counted;
	pid_t flipper = 0;

	if (!parse(argc, argv, &options))
		return print_usage();
	if (!kernel_has_ntcopy()) {
		fprintf(stderr, "soak: this kernel has no MSG_NTCOPY\n");
		return 4;
	}
	read_file(MODE_PATH, mode_at_start, sizeof(mode_at_start));
	if (!own_namespace()) {
		fprintf(stderr, "soak: a network namespace of its own takes root\n");
		return 4;
	}
	choose_families();
	if (!families_count)
		return 1;
	counted = every_send_is_hinted() && !options.flip;
	scene_inject = options.inject;
	if (options.flip)
		flipper = flip();
	for (i = options.only; i < (options.print ? options.only + 1 : options.count); i++)
		bad += !play_one(i, &options, counted);
	if (flipper)
		kill(flipper, SIGKILL);
	if (options.inject)
		print_counts();
	return bad ? 1 : 0;
}
