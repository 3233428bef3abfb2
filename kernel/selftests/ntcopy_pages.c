// SPDX-License-Identifier: GPL-2.0
/*
 * vm.nontemporal_clear_bytes and vm.nontemporal_copy_bytes: whatever they are
 * set to, pages read zero after a fault and hold the right bytes after a copy
 * on write; and /proc/vmstat says which pages went the non-temporal way.
 *
 * The counters are the system's: run this alone.
 */
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "page_area.h"

/* Each kind of page, with a threshold below, at and above its size. */
FIXTURE(pages)
{
	struct settings settings;
	bool uml;
};

FIXTURE_VARIANT(pages)
{
	enum kind kind;
	unsigned long threshold;
};

FIXTURE_VARIANT_ADD(pages, small_never) { SMALL, 0 };
FIXTURE_VARIANT_ADD(pages, small_always) { SMALL, 1 };
FIXTURE_VARIANT_ADD(pages, small_small_page) { SMALL, PAGE };
FIXTURE_VARIANT_ADD(pages, small_above_small_page) { SMALL, PAGE + 1 };
FIXTURE_VARIANT_ADD(pages, small_huge_page) { SMALL, HUGE };
FIXTURE_VARIANT_ADD(pages, small_above_huge_page) { SMALL, HUGE + 1 };
FIXTURE_VARIANT_ADD(pages, small_unreachable) { SMALL, ULONG_MAX };

FIXTURE_VARIANT_ADD(pages, thp_never) { THP, 0 };
FIXTURE_VARIANT_ADD(pages, thp_always) { THP, 1 };
FIXTURE_VARIANT_ADD(pages, thp_small_page) { THP, PAGE };
FIXTURE_VARIANT_ADD(pages, thp_above_small_page) { THP, PAGE + 1 };
FIXTURE_VARIANT_ADD(pages, thp_huge_page) { THP, HUGE };
FIXTURE_VARIANT_ADD(pages, thp_above_huge_page) { THP, HUGE + 1 };
FIXTURE_VARIANT_ADD(pages, thp_unreachable) { THP, ULONG_MAX };

FIXTURE_VARIANT_ADD(pages, hugetlb_never) { HUGETLB, 0 };
FIXTURE_VARIANT_ADD(pages, hugetlb_always) { HUGETLB, 1 };
FIXTURE_VARIANT_ADD(pages, hugetlb_small_page) { HUGETLB, PAGE };
FIXTURE_VARIANT_ADD(pages, hugetlb_above_small_page) { HUGETLB, PAGE + 1 };
FIXTURE_VARIANT_ADD(pages, hugetlb_huge_page) { HUGETLB, HUGE };
FIXTURE_VARIANT_ADD(pages, hugetlb_above_huge_page) { HUGETLB, HUGE + 1 };
FIXTURE_VARIANT_ADD(pages, hugetlb_unreachable) { HUGETLB, ULONG_MAX };

FIXTURE_SETUP(pages)
{
	if (!settings_save(&self->settings))
		SKIP(return, "no " CLEAR_PATH " that may be written");
	self->uml = is_uml();
	if (!have_kind(variant->kind))
		SKIP(return, "no such huge pages here");
}

FIXTURE_TEARDOWN(pages)
{
	settings_restore(&self->settings);
}

/*
 * Whether pages of a kind go the non-temporal way. Small ones never do on a
 * machine: their threshold is for huge pages, and their paths stay as they are.
 */
static bool goes_nt(enum kind kind, unsigned long threshold, bool uml)
{
	if (!threshold)
		return false;
	return kind == SMALL ? uml && threshold <= PAGE : threshold <= HUGE;
}

/*
 * How far a counter is from what it should have counted since `before`. Page by
 * page, in UML, the page tables count too, so there that is a minimum. Only a
 * kernel without any event counters is excused.
 */
static long miscounted(const char *name, long before, long pages, bool minimum)
{
	long now = event_count(name);

	if (now < 0 && event_count("pgfault") < 0)
		return 0;
	if (now >= 0 && minimum && now - before >= pages)
		return 0;
	return now < 0 ? LONG_MIN : now - before - pages;
}

TEST_F(pages, read_zero_after_a_fault)
{
	const bool nt = goes_nt(variant->kind, variant->threshold, self->uml);
	struct area area;
	long before, pages;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		const size_t at = faults[i] * PAGE + 77;

		write_number(CLEAR_PATH, 0);
		soil(variant->kind);
		ASSERT_EQ(0, write_number(CLEAR_PATH, variant->threshold));
		ASSERT_TRUE(area_map(&area, variant->kind));
		before = event_count("pgclear_nontemporal");
		area.start[at] = 1;
		pages = !nt ? 0 : variant->kind == SMALL ? 1 : far_pages(faults[i]);
		EXPECT_EQ(0, miscounted("pgclear_nontemporal", before, pages,
					variant->kind == SMALL && nt));
		EXPECT_EQ(1, area.start[at]);
		EXPECT_EQ(-1, first_wrong(area.start, true, at)) {
			TH_LOG("fault in page %zu", faults[i]);
		}
		area_unmap(&area);
	}
}

/* Fills an area; 0 if its pages are of the kind. */
static int area_fill(struct area *area, enum kind kind)
{
	size_t at;

	if (!area_map(area, kind))
		return -ENOMEM;
	for (at = 0; at < HUGE; at++)
		area->start[at] = pattern(at);
	return kind != THP || thp_bytes(area->start) >= HUGE ? 0 : -EAGAIN;
}

/* What a child does with the pages that it shares: its exit status. */
enum { CHILD_RIGHT, CHILD_WROTE_WRONG, CHILD_SAW_WRONG };

static int child_writes(struct area *area, size_t at)
{
	if (first_wrong(area->start, false, at) >= 0)
		return CHILD_SAW_WRONG;
	area->start[at] = ~pattern(at);
	if ((unsigned char)area->start[at] != (unsigned char)~pattern(at) ||
	    first_wrong(area->start, false, at) >= 0)
		return CHILD_WROTE_WRONG;
	return CHILD_RIGHT;
}

TEST_F(pages, are_copied_when_a_child_writes)
{
	const bool nt = goes_nt(variant->kind, variant->threshold, self->uml);
	struct area area;
	long before, pages;
	int status;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		const size_t at = faults[i] * PAGE + 77;
		pid_t pid;

		write_number(COPY_PATH, 0);
		soil(variant->kind);
		ASSERT_EQ(0, area_fill(&area, variant->kind));
		ASSERT_EQ(0, write_number(COPY_PATH, variant->threshold));
		before = event_count("pgcopy_nontemporal");
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(child_writes(&area, at));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFEXITED(status));
		EXPECT_EQ(CHILD_RIGHT, WEXITSTATUS(status)) {
			TH_LOG("fault in page %zu", faults[i]);
		}
		/* A transparent huge page is split, and copied page by page. */
		pages = !nt || variant->kind == THP ? 0 :
			variant->kind == SMALL ? 1 : far_pages(faults[i]);
		EXPECT_EQ(0, miscounted("pgcopy_nontemporal", before, pages,
					variant->kind == SMALL && nt));
		EXPECT_EQ(-1, first_wrong(area.start, false, SIZE_MAX)) {
			TH_LOG("the parent's own, fault in page %zu", faults[i]);
		}
		area_unmap(&area);
	}
}

TEST_F(pages, are_copied_when_a_parent_writes)
{
	struct area area;
	int go[2], status;
	char byte = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		const size_t at = faults[i] * PAGE + 77;
		pid_t pid;

		ASSERT_EQ(0, pipe(go));
		write_number(COPY_PATH, 0);
		soil(variant->kind);
		ASSERT_EQ(0, area_fill(&area, variant->kind));
		ASSERT_EQ(0, write_number(COPY_PATH, variant->threshold));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			/* What the child keeps must not change under it. */
			if (read(go[0], &byte, 1) != 1)
				_exit(CHILD_WROTE_WRONG);
			_exit(first_wrong(area.start, false, SIZE_MAX) >= 0 ?
			      CHILD_SAW_WRONG : CHILD_RIGHT);
		}
		area.start[at] = ~pattern(at);
		EXPECT_EQ((unsigned char)~pattern(at), (unsigned char)area.start[at]);
		EXPECT_EQ(-1, first_wrong(area.start, false, at)) {
			TH_LOG("fault in page %zu", faults[i]);
		}
		ASSERT_EQ(1, write(go[1], &byte, 1));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFEXITED(status));
		EXPECT_EQ(CHILD_RIGHT, WEXITSTATUS(status));
		close(go[0]);
		close(go[1]);
		area_unmap(&area);
	}
}

/* The sysctls change while pages are cleared and copied. */
TEST_F(pages, stay_right_while_the_thresholds_change)
{
	struct area area;
	int round, status;
	pid_t flipper;

	flipper = fork();
	ASSERT_LE(0, flipper);
	if (!flipper) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (round = 0;; round++) {
			write_number(CLEAR_PATH, round & 1 ? variant->threshold : 0);
			write_number(COPY_PATH, round & 2 ? variant->threshold : 0);
		}
	}
	for (round = 0; round < 10; round++) {
		const size_t at = faults[round % ARRAY_SIZE(faults)] * PAGE;
		pid_t pid;

		soil(variant->kind);
		EXPECT_TRUE(area_map(&area, variant->kind));
		area.start[at] = 1;
		EXPECT_EQ(-1, first_wrong(area.start, true, at));
		area_unmap(&area);

		EXPECT_EQ(0, area_fill(&area, variant->kind));
		pid = fork();
		if (!pid)
			_exit(child_writes(&area, at));
		EXPECT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(0, status);
		EXPECT_EQ(-1, first_wrong(area.start, false, SIZE_MAX));
		area_unmap(&area);
	}
	kill(flipper, SIGKILL);
	waitpid(flipper, NULL, 0);
}

/* What may be written to the sysctls. */
FIXTURE(sysctl)
{
	struct settings settings;
};

FIXTURE_VARIANT(sysctl)
{
	const char *path;
};

FIXTURE_VARIANT_ADD(sysctl, clear) { .path = CLEAR_PATH };
FIXTURE_VARIANT_ADD(sysctl, copy) { .path = COPY_PATH };

FIXTURE_SETUP(sysctl)
{
	if (!settings_save(&self->settings))
		SKIP(return, "no " CLEAR_PATH " that may be written");
}

FIXTURE_TEARDOWN(sysctl)
{
	settings_restore(&self->settings);
}

TEST_F(sysctl, takes_every_number_of_bytes)
{
	const unsigned long values[] = { 0, 1, PAGE - 1, PAGE, HUGE, 1UL << 30, ULONG_MAX };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		EXPECT_EQ(0, write_number(variant->path, values[i]));
		EXPECT_EQ(values[i], read_number(variant->path));
	}
}

TEST_F(sysctl, refuses_what_is_none)
{
	const char * const values[] = { "-1", "-4096", "no", "18446744073709551616" };
	size_t i;

	ASSERT_EQ(0, write_number(variant->path, 12345));
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		write_text(variant->path, values[i]);
		EXPECT_EQ(12345UL, read_number(variant->path)) {
			TH_LOG("after '%s'", values[i]);
		}
	}
	EXPECT_EQ(-EINVAL, write_text(variant->path, "no"));
}

TEST_F(sysctl, is_for_root_to_write_and_for_all_to_read)
{
	int status;
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		char text[32];

		if (setgid(65534) || setuid(65534))
			_exit(3);
		if (write_text(variant->path, "1") != -EACCES)
			_exit(1);
		_exit(read_file(variant->path, text, sizeof(text)) > 0 ? 0 : 2);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_HARNESS_MAIN
