/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The one question of this suite, for programs with kselftest_harness.h: is a
 * scene the same with the hint as without, and is every byte counted?
 */
#ifndef NTCOPY_IDENTICAL_H
#define NTCOPY_IDENTICAL_H

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "kselftest_harness.h"
#include "scene.h"

/* A kernel with every checker on, in an emulator, may take its time. */
#define TIMEOUT_SECONDS	600

#define TEST_FAMILY(fixture, test)	TEST_F_TIMEOUT(fixture, test, TIMEOUT_SECONDS)

/* What a variant of a family's fixture is. */
#define VARIANT(_family, _mode)	.family = &(_family), .mode = &mode_##_mode

/* The first lines in which two transcripts differ. */
static inline void print_difference(const char *plain, const char *hinted)
{
	size_t a, b;

	while (*plain && *hinted) {
		a = strcspn(plain, "\n");
		b = strcspn(hinted, "\n");
		if (a != b || memcmp(plain, hinted, a)) {
			printf("#   plain:  %.*s\n#   hinted: %.*s\n", (int)a, plain, (int)b,
			       hinted);
			return;
		}
		plain += a + !!plain[a];
		hinted += b + !!hinted[b];
	}
	printf("#   one has more lines: %.200s%.200s\n", plain, hinted);
}

static inline void expect_played(struct __test_metadata *_metadata,
				 const struct outcome *outcome, const char *mode)
{
	const char *end = outcome->transcript->text + outcome->transcript->used;

	EXPECT_TRUE(outcome->transcript->finished) {
		TH_LOG("%s: ended with status %#x after %lld lines: %.200s", mode,
		       outcome->status, outcome->transcript->lines,
		       end - (outcome->transcript->used < 200 ? outcome->transcript->used : 200));
	}
	EXPECT_FALSE(outcome->transcript->wrong) {
		TH_LOG("%s: a byte arrived that was not sent: %.300s", mode,
		       outcome->transcript->text);
	}
}

/* Sends are hinted by the flag, by a number, or all of them. */
static inline void expect_hinted(struct __test_metadata *_metadata,
				 const struct outcome *outcome, const struct mode *mode)
{
	const struct transcript *transcript = outcome->transcript;
	long long hinted = outcome->counts.hinted;

	if (mode != &mode_socket && !transcript->by_size) {
		EXPECT_EQ(hinted, transcript->accepted);
		return;
	}
	/* What continues a send is hinted, too, if it is shorter than the number. */
	EXPECT_LE(hinted, transcript->accepted);
	if (!transcript->mixed)
		EXPECT_GE(hinted, transcript->in_pages);
}

static inline void expect_counted(struct __test_metadata *_metadata,
				  const struct outcome *outcome,
				  const struct family *family, const struct mode *mode)
{
	const struct transcript *transcript = outcome->transcript;
	const struct counts *counts = &outcome->counts;

	if (mode == &mode_plain || mode == &mode_ignored) {
		EXPECT_EQ(counts->hinted, 0);
		EXPECT_EQ(counts->bypassed, 0);
		if (mode == &mode_plain)
			EXPECT_EQ(counts->bytes, 0);
		return;
	}
	expect_hinted(_metadata, outcome, mode);
	EXPECT_GE(counts->bytes, transcript->accepted);
	EXPECT_LE(counts->bypassed, counts->hinted);
	if (family->reads && !transcript->mixed)
		EXPECT_EQ(counts->bypassed, 0);
	/* Wherever buffers end, four pages have one in them. */
	if (transcript->long_piece && !family->reads && !transcript->mixed)
		EXPECT_GT(counts->bypassed, 0);
}

static inline bool same_transcript(const struct transcript *one, const struct transcript *other)
{
	return one->hash == other->hash && one->lines == other->lines;
}

/* How often a plain scene is played again, to see whether it differs from itself. */
#define REPLAYS		20
#define REPLAY_LINES	1000

/* What plain sends did at each line of a transcript. */
struct replay {
	bool	open[REPLAY_LINES];	/* never what the hinted ones did */
	long	least[REPLAY_LINES];	/* bytes; see bytes_of() */
	long	most[REPLAY_LINES];
};

/*
 * The bytes in a line such as "send 98304: 65456" or "got 65456", none being 0;
 * -1 in any other.  Sets how much of the line is in front of them.
 */
static inline long bytes_of(const char *line, size_t len, size_t *front)
{
	static const char none[] = ": Bad address";
	const char *at = line + len;

	if (len >= sizeof(none) && !memcmp(at - sizeof(none) + 1, none, sizeof(none) - 1)) {
		*front = len - (sizeof(none) - 1);
		return 0;
	}
	while (at > line && at[-1] >= '0' && at[-1] <= '9')
		at--;
	*front = at - line;
	if (*front >= 2 && !memcmp(at - 2, ": ", 2))
		*front -= 2;
	else if (*front != 4 || memcmp(line, "got ", 4))
		return -1;
	return at < line + len ? strtol(at, NULL, 10) : -1;
}

/* One more playing of the plain scene.  Returns how many lines it leaves open. */
static inline int take_lines(struct replay *replay, const char *hinted, const char *plain)
{
	size_t a, b, front, plain_front;
	long bytes;
	int i, left = 0;

	for (i = 0; i < REPLAY_LINES && *hinted; i++) {
		a = strcspn(hinted, "\n");
		b = strcspn(plain, "\n");
		if (a == b && !memcmp(hinted, plain, a))
			replay->open[i] = false;
		bytes = bytes_of(plain, b, &plain_front);
		if (bytes >= 0 && bytes_of(hinted, a, &front) >= 0 && front == plain_front &&
		    !memcmp(hinted, plain, front)) {
			replay->least[i] = bytes < replay->least[i] ? bytes : replay->least[i];
			replay->most[i] = bytes > replay->most[i] ? bytes : replay->most[i];
		}
		left += replay->open[i];
		hinted += a + !!hinted[a];
		plain += b + !!plain[b];
	}
	return *hinted ? REPLAY_LINES : left;
}

/* Whether plain sends took now more and now less at the same line. */
static inline bool is_uneven(const struct replay *replay)
{
	int i;

	for (i = 0; i < REPLAY_LINES; i++)
		if (replay->least[i] < replay->most[i])
			return true;
	return false;
}

/* The lines that are still open and say something else than how many bytes. */
static inline int take_amounts(struct replay *replay, const char *hinted)
{
	size_t len, front;
	int i, left = 0;

	for (i = 0; i < REPLAY_LINES && *hinted; i++) {
		len = strcspn(hinted, "\n");
		if (replay->most[i] >= 0 && bytes_of(hinted, len, &front) >= 0)
			replay->open[i] = false;
		left += replay->open[i];
		hinted += len + !!hinted[len];
	}
	return left;
}

/* Where a send that faults ends is up to timing in these. */
static inline bool is_any_amount(const struct family *family)
{
	return family == &tcp || family == &tcp6 || family == &mptcp || family == &mptcp6;
}

/*
 * Whether hinted sends take now more and now less at a line where the hinted
 * one differed.  A hint that changed how much is taken would do so each time.
 */
static inline bool is_hinted_uneven(scene_fn fn, const struct family *family,
				    const struct mode *mode, struct replay *replay,
				    const struct transcript *hinted)
{
	struct outcome again;
	int i;

	take_lines(replay, hinted->text, hinted->text);
	for (i = 0; i < REPLAYS && !is_uneven(replay); i++) {
		play(fn, family, mode, 1, &again);
		if (again.transcript->finished)
			take_lines(replay, hinted->text, again.transcript->text);
		forget(&again);
	}
	return is_uneven(replay);
}

/*
 * Whether plain sends, too, sometimes do each of these things.  Where TCP and
 * MPTCP go on in a page depends on whether what was sent before is acknowledged
 * and freed by then, and with it where a send that faults ends.  On a slow
 * machine plain sends differ from plain sends, and hinted ones from hinted ones,
 * and not always at the line where the first two did: then the amounts prove
 * nothing, and the rest has to be the same.
 */
static inline bool plain_does_so_too(scene_fn fn, const struct family *family,
				     const struct mode *mode,
				     const struct transcript *hinted)
{
	static struct replay replay, lines;
	struct outcome plain;
	const char *who = "plain";
	int i, left = 1;
	bool uneven;

	if (hinted->used >= sizeof(hinted->text) - 1)
		return false;
	for (i = 0; i < REPLAY_LINES; i++) {
		replay.open[i] = true;
		replay.least[i] = LONG_MAX;
		replay.most[i] = -1;
	}
	for (i = 0; i < REPLAYS && left; i++) {
		play(fn, family, &mode_plain, 1, &plain);
		if (plain.transcript->finished)
			left = take_lines(&replay, hinted->text, plain.transcript->text);
		forget(&plain);
	}
	uneven = is_uneven(&replay);
	if (left && left < REPLAY_LINES && !uneven && is_any_amount(family)) {
		lines = replay;
		uneven = is_hinted_uneven(fn, family, mode, &lines, hinted);
		who = "hinted";
	}
	if (left && left < REPLAY_LINES && uneven)
		left = take_amounts(&replay, hinted->text);
	if (!left)
		printf("#   %s sends differ so among themselves, played %d times\n", who, i);
	return !left;
}

static inline void identical(struct __test_metadata *_metadata, scene_fn fn,
			     const struct family *family, const struct mode *mode)
{
	struct outcome plain, hinted;
	bool same;

	if (set_mode(mode->sysctl) < 0)
		SKIP(return, "no mode %s in this kernel", mode->name);
	if (!can_be_hinted(family))
		SKIP(return, "the module has no %s", family->name);
	play(fn, family, &mode_plain, 1, &plain);
	if (plain.transcript->unavailable)
		SKIP(return, "%s: %s", family->name, strerror(plain.transcript->unavailable));
	expect_played(_metadata, &plain, "plain");
	expect_counted(_metadata, &plain, family, &mode_plain);

	play(fn, family, mode, 1, &hinted);
	expect_played(_metadata, &hinted, mode->name);
	expect_counted(_metadata, &hinted, family, mode);
	same = same_transcript(plain.transcript, hinted.transcript);
	if (!same) {
		print_difference(plain.transcript->text, hinted.transcript->text);
		EXPECT_TRUE(plain_does_so_too(fn, family, mode, hinted.transcript));
	}
	if (same && !plain.transcript->uneven)
		EXPECT_EQ(plain.transcript->accepted, hinted.transcript->accepted);
	/* A scene in which nothing is sent shows nothing. */
	EXPECT_GT(hinted.transcript->lines, 0);
	if (!plain.transcript->uneven && !plain.transcript->mixed)
		EXPECT_GT(plain.transcript->accepted, 0);
	forget(&plain);
	forget(&hinted);
}

/* Why nothing can be tested here, or NULL. */
static inline const char *why_not_here(void)
{
	if (!kernel_has_ntcopy())
		return "this kernel has no MSG_NTCOPY";
	if (!via_module() && !kernel_has_copy())
		return "this kernel has no non-temporal copy";
	return own_namespace() ? NULL : "a network namespace of its own takes root";
}

static inline int ntcopy_main(int argc, char **argv)
{
	const char *why_not = why_not_here();

	if (why_not) {
		ksft_print_header();
		ksft_exit_skip("%s\n", why_not);
	}
	return test_harness_run(argc, argv);
}

#endif /* NTCOPY_IDENTICAL_H */
