// SPDX-License-Identifier: GPL-2.0
/* The rule of lib/nontemporal.c, which includes this file. */

#include <kunit/test.h>
#include <linux/prandom.h>

#define NT_PIECE	SZ_32K
#define NT_CACHE	SZ_1M
#define NT_TO		BIT(40)
#define NT_BULK		1	/* senders */
#define NT_SMALL	2

static bool nontemporal_copy(struct nontemporal_cpu *s, unsigned long to, size_t bytes, u8 sender)
{
	bool normal = !(s->bypass & BIT_ULL(sender));

	look_on(s, to, bytes, sender);
	return normal;
}

/* Where a piece goes once @done bytes went to @to bytes in flight, as from a ring or a stack. */
static unsigned long nontemporal_place(size_t done, size_t to, bool stack)
{
	size_t in_round = done % to;

	return NT_TO + (stack && (done / to) % 2 ? to - NT_PIECE - in_round : in_round);
}

/* Return: how many pieces were normal. */
static unsigned int nontemporal_copies(struct nontemporal_cpu *s, size_t total, size_t to,
				       bool stack)
{
	unsigned int normal = 0;
	size_t done;

	for (done = 0; done < total; done += NT_PIECE)
		normal += nontemporal_copy(s, nontemporal_place(done, to, stack), NT_PIECE,
					   NT_BULK);
	return normal;
}

static struct nontemporal_cpu *nontemporal_state(struct kunit *test)
{
	struct nontemporal_cpu *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->unit = NT_CACHE / LIMIT;
	return s;
}

struct nontemporal_case {
	const char *name;
	size_t to;
	bool stack;
	bool normal;
};

static const struct nontemporal_case nontemporal_cases[] = {
	{ "one object", SZ_64K, false, true },
	{ "it fits", SZ_512K, false, true },
	{ "it fits, as a stack", SZ_512K, true, true },
	{ "it hardly fits", SZ_1M - SZ_64K, false, true },
	{ "it hardly fits, as a stack", SZ_512K + SZ_256K, true, true },
	{ "it hardly does not fit", SZ_1M + SZ_64K, false, false },
	{ "it does not fit, as a stack", SZ_2M, true, false },
	{ "it does not fit", SZ_64M, false, false },
};

static void nontemporal_desc(const struct nontemporal_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(nontemporal, nontemporal_cases, nontemporal_desc);

static void nontemporal_in_flight(struct kunit *test)
{
	const struct nontemporal_case *c = test->param_value;
	struct nontemporal_cpu *s = nontemporal_state(test);

	nontemporal_copies(s, SZ_128M, c->to, c->stack);
	KUNIT_EXPECT_EQ(test, nontemporal_copies(s, SZ_128M, c->to, c->stack),
			c->normal ? SZ_128M / NT_PIECE : 0);
}

/*
 * Sockets of 64 KiB that send in the same order, the pages coming back as from a stack:
 * all are copied in one way, that for what is in flight.
 */
static void nontemporal_stack(struct kunit *test)
{
	static const size_t flights[] = {
		SZ_256K, SZ_512K, SZ_512K + SZ_256K, SZ_1M + SZ_256K, SZ_1M + SZ_512K,
	};
	unsigned int i, normal;
	size_t done;

	for (i = 0; i < ARRAY_SIZE(flights); i++) {
		struct nontemporal_cpu *s = nontemporal_state(test);
		size_t to = flights[i];

		for (done = 0, normal = 0; done < SZ_256M; done += NT_PIECE)
			normal += nontemporal_copy(s, nontemporal_place(done, to, true), NT_PIECE,
						   done % to / SZ_64K) &&
				  done >= SZ_128M;
		if (to < NT_CACHE)
			KUNIT_EXPECT_GE(test, normal, SZ_128M / NT_PIECE / 100 * 98);
		else
			KUNIT_EXPECT_LE(test, normal, SZ_128M / NT_PIECE / 100 * 2);
	}
}

/* Within six times the limit. */
static void nontemporal_follows(struct kunit *test)
{
	struct nontemporal_cpu *s = nontemporal_state(test);

	nontemporal_copies(s, SZ_64M, SZ_256K, false);
	nontemporal_copies(s, 6 * NT_CACHE, SZ_64M, false);
	KUNIT_EXPECT_EQ(test, nontemporal_copies(s, SZ_16M, SZ_64M, false), 0);
	nontemporal_copies(s, 6 * NT_CACHE, SZ_256K, false);
	KUNIT_EXPECT_EQ(test, nontemporal_copies(s, SZ_16M, SZ_256K, false), SZ_16M / NT_PIECE);
}

/* Between 7/8 of the limit and the limit, copies stay what they are. */
static void nontemporal_stays(struct kunit *test)
{
	static const size_t flights[] = { SZ_1M - 3 * NT_PIECE, SZ_1M - NT_PIECE };
	struct nontemporal_cpu *s = nontemporal_state(test);
	unsigned int i, normal = 0;

	for (i = 0; i < 256; i++)
		normal += nontemporal_copies(s, SZ_1M, flights[i % 2], false);
	KUNIT_EXPECT_EQ(test, normal, 256 * SZ_1M / NT_PIECE);
	nontemporal_copies(s, SZ_16M, SZ_2M, false);
	for (i = 0, normal = 0; i < 256; i++)
		normal += nontemporal_copies(s, SZ_1M, flights[i % 2], false);
	KUNIT_EXPECT_EQ(test, normal, 0);
	nontemporal_copies(s, SZ_16M, SZ_256K, false);
	KUNIT_EXPECT_EQ(test, nontemporal_copies(s, SZ_1M, SZ_256K, false), SZ_1M / NT_PIECE);
}

/* Flights that vary about the limit do not move copies to and fro. */
static void nontemporal_varies(struct kunit *test)
{
	struct nontemporal_cpu *s = nontemporal_state(test);
	unsigned int i, changes = 0;
	struct rnd_state rnd;
	u64 bypass;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < 1024; i++) {
		size_t flight = SZ_1M - SZ_256K + prandom_u32_state(&rnd) % 16 * NT_PIECE;

		bypass = s->bypass;
		nontemporal_copies(s, flight, flight, false);
		changes += bypass != s->bypass;
	}
	KUNIT_EXPECT_LE(test, changes, 1024 / 20);
}

/* Pages and pieces from all over a set: its size counts. */
static void nontemporal_pieces(struct kunit *test)
{
	static const struct { size_t to; bool normal; } sets[] = {
		{ SZ_256K, true },
		{ SZ_8M, false },
	};
	unsigned int i, n, normal;

	for (i = 0; i < ARRAY_SIZE(sets); i++) {
		struct nontemporal_cpu *s = nontemporal_state(test);

		for (n = 0, normal = 0; n < 2 * SZ_16K; n++)
			normal += nontemporal_copy(s, NT_TO + n * 40503UL * SZ_4K % sets[i].to,
						   SZ_4K << n % 3, NT_BULK) && n >= SZ_16K;
		KUNIT_EXPECT_EQ(test, normal, sets[i].normal ? SZ_16K : 0);
	}
}

/* One has 64 MiB in flight, the other one piece: each has its own copy. */
static void nontemporal_senders(struct kunit *test)
{
	static const unsigned int shares[] = { 10, 30, 60 };
	static const size_t runs[] = { NT_PIECE, SZ_1M };
	unsigned int i, k, n, normal[2], all[2];
	struct rnd_state rnd;
	size_t bulk, done;

	for (i = 0; i < ARRAY_SIZE(shares) * ARRAY_SIZE(runs); i++) {
		struct nontemporal_cpu *s = nontemporal_state(test);
		size_t run = runs[i / ARRAY_SIZE(shares)];

		prandom_seed_state(&rnd, i + 1);
		memset(normal, 0, sizeof(normal));
		memset(all, 0, sizeof(all));
		for (n = 0, bulk = 0; n < SZ_512M / run; n++) {
			bool small = prandom_u32_state(&rnd) % 100 < shares[i % ARRAY_SIZE(shares)];

			for (done = 0; done < run; done += NT_PIECE) {
				unsigned long to = small ? NT_TO : NT_TO + SZ_1G + bulk % SZ_64M;

				k = nontemporal_copy(s, to, NT_PIECE, small ? NT_SMALL : NT_BULK);
				bulk += small ? 0 : NT_PIECE;
				if (n < SZ_128M / run)
					continue;
				normal[small] += k;
				all[small]++;
			}
		}
		KUNIT_EXPECT_EQ(test, normal[0], 0);
		KUNIT_EXPECT_GE(test, normal[1], all[1] / 100 * 98);
	}
}

/* A sender drains half of the limit at a time, 0 to 16 times after each MiB of a bulk one. */
static void nontemporal_half(struct kunit *test)
{
	struct nontemporal_cpu *s = nontemporal_state(test);
	unsigned int i, sends, normal = 0, all = 0;
	size_t done, bulk = 0;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < 1024; i++) {
		for (done = 0; done < SZ_1M; done += NT_PIECE, bulk += NT_PIECE)
			nontemporal_copy(s, NT_TO + SZ_1G + bulk % SZ_64M, NT_PIECE, NT_BULK);
		for (sends = prandom_u32_state(&rnd) % 17; sends; sends--) {
			for (done = 0; done <= NT_CACHE / 2; done += NT_PIECE, all++)
				normal += nontemporal_copy(s, NT_TO + done, NT_PIECE, NT_SMALL);
		}
	}
	KUNIT_EXPECT_GE(test, normal, all / 100 * 98);
}

/* However many sockets share the bits of the hash: what is in flight counts. */
static void nontemporal_sockets(struct kunit *test)
{
	static const unsigned int counts[] = { 64, 10000 };
	unsigned int i, n, normal;

	for (i = 0; i < 2 * ARRAY_SIZE(counts); i++) {
		struct nontemporal_cpu *s = nontemporal_state(test);
		unsigned int sockets = counts[i / 2];
		size_t to = i % 2 ? SZ_64M : SZ_256K;

		for (n = 0, normal = 0; n < SZ_1G / NT_PIECE; n++)
			normal += nontemporal_copy(s, NT_TO + n * NT_PIECE % to, NT_PIECE,
						   n % sockets % (1 << NONTEMPORAL_SENDER_BITS)) &&
				  n >= SZ_512M / NT_PIECE;
		KUNIT_EXPECT_EQ(test, normal, i % 2 ? 0 : SZ_512M / NT_PIECE);
	}
}

static struct kunit_case nontemporal_test_cases[] = {
	KUNIT_CASE_PARAM(nontemporal_in_flight, nontemporal_gen_params),
	KUNIT_CASE(nontemporal_stack),
	KUNIT_CASE(nontemporal_follows),
	KUNIT_CASE(nontemporal_stays),
	KUNIT_CASE(nontemporal_varies),
	KUNIT_CASE(nontemporal_pieces),
	KUNIT_CASE(nontemporal_senders),
	KUNIT_CASE(nontemporal_half),
	KUNIT_CASE(nontemporal_sockets),
	{}
};

static struct kunit_suite nontemporal_test_suite = {
	.name = "nontemporal",
	.test_cases = nontemporal_test_cases,
};

kunit_test_suite(nontemporal_test_suite);
