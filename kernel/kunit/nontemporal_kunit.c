// SPDX-License-Identifier: GPL-2.0
/* The rule of lib/nontemporal.c, which includes this file. */

#include <kunit/test.h>

#define NT_PIECE	SZ_32K
#define NT_CACHE	SZ_8M
#define NT_TO		BIT(40)

/* Copies to @to bytes in flight.  Return: the percentage that was normal. */
static unsigned int nontemporal_copies(struct nontemporal_cpu *s, size_t total,
				       size_t to, bool stack)
{
	unsigned int normal = 0, n = 0;
	size_t done, in_round;
	bool odd;

	for (done = 0; done < total; done += NT_PIECE, n++) {
		in_round = done % to;
		odd = stack && (done / to) % 2;
		normal += comes_round_within(s, NT_CACHE,
					     NT_TO + (odd ? to - NT_PIECE - in_round : in_round),
					     NT_PIECE);
	}
	return normal * 100 / n;
}

static struct nontemporal_cpu *nontemporal_state(struct kunit *test)
{
	struct nontemporal_cpu *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->mean = MEAN_MIN;
	return s;
}

struct nontemporal_case {
	const char *name;
	size_t to;
	bool stack;		/* pages come back in the order of a stack */
	bool normal;
};

static const struct nontemporal_case nontemporal_cases[] = {
	{ "one object", SZ_64K, false, true },
	{ "it fits", SZ_4M, false, true },
	{ "it fits, as a stack", SZ_4M, true, true },
	{ "it does not fit", SZ_16M, false, false },
	{ "it does not fit, as a stack", SZ_64M, true, false },
	{ "it hardly fits, as a stack", SZ_4M + SZ_2M, true, true },
	{ "it hardly does not fit, as a stack", SZ_8M + SZ_2M, true, false },
};

static void nontemporal_desc(const struct nontemporal_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(nontemporal, nontemporal_cases, nontemporal_desc);

static void nontemporal_comes_round(struct kunit *test)
{
	const struct nontemporal_case *c = test->param_value;
	struct nontemporal_cpu *s = nontemporal_state(test);
	unsigned int percent;

	nontemporal_copies(s, SZ_1G, c->to, c->stack);
	percent = nontemporal_copies(s, SZ_256M, c->to, c->stack);
	if (c->normal)
		KUNIT_EXPECT_EQ(test, percent, 100);
	else
		KUNIT_EXPECT_EQ(test, percent, 0);
}

static void nontemporal_follows(struct kunit *test)
{
	struct nontemporal_cpu *s = nontemporal_state(test);
	bool normal = false;
	unsigned int i;

	nontemporal_copies(s, SZ_256M, SZ_64M, false);
	nontemporal_copies(s, SZ_1G, SZ_1M, false);
	KUNIT_EXPECT_EQ(test, nontemporal_copies(s, SZ_16M, SZ_1M, false), 100);
	nontemporal_copies(s, SZ_128M, SZ_64M, false);
	KUNIT_EXPECT_EQ(test, nontemporal_copies(s, SZ_16M, SZ_64M, false), 0);
	/* One place that is filled again and again, and two that share a granule. */
	nontemporal_copies(s, SZ_1G, NT_PIECE, false);
	KUNIT_EXPECT_EQ(test, nontemporal_copies(s, SZ_16M, NT_PIECE, false), 100);
	nontemporal_copies(s, SZ_128M, SZ_64M, false);
	for (i = 0; i < SZ_1G / SZ_16K; i++)
		normal = comes_round_within(s, NT_CACHE, NT_TO + i % 2 * SZ_16K, SZ_16K);
	KUNIT_EXPECT_TRUE(test, normal);
}

/* Single pages from all over a set: its size counts. */
static void nontemporal_scattered(struct kunit *test)
{
	static const struct { size_t to; bool normal; } sets[] = {
		{ SZ_2M, true },
		{ SZ_32M, false },
	};
	unsigned int i, page, normal;

	for (i = 0; i < ARRAY_SIZE(sets); i++) {
		struct nontemporal_cpu *s = nontemporal_state(test);

		for (page = 0, normal = 0; page < SZ_512M / SZ_4K; page++)
			normal += comes_round_within(s, NT_CACHE,
						     NT_TO + page * 40503UL * SZ_4K % sets[i].to,
						     SZ_4K) &&
				  page >= SZ_256M / SZ_4K;
		KUNIT_EXPECT_EQ(test, normal, sets[i].normal ? SZ_256M / SZ_4K : 0);
	}
}

/* Pages, and pieces of an skb, that fill one granule of a large set are no return to it. */
static void nontemporal_pieces(struct kunit *test)
{
	static const size_t pieces[][4] = {
		{ SZ_4K, SZ_4K, SZ_4K, SZ_4K },
		{ SZ_32K, SZ_16K, SZ_8K, SZ_8K },
	};
	unsigned int i, n, normal;
	size_t done;

	for (i = 0; i < ARRAY_SIZE(pieces); i++) {
		struct nontemporal_cpu *s = nontemporal_state(test);

		for (done = 0, n = 0, normal = 0; done < SZ_256M; done += pieces[i][n++ % 4])
			normal += comes_round_within(s, NT_CACHE, NT_TO + done % SZ_64M,
						     pieces[i][n % 4]) &&
				  done >= SZ_128M;
		KUNIT_EXPECT_EQ(test, normal, 0);
	}
}

/* Small pieces of several sends share a granule, and do not count beside whole ones. */
static void nontemporal_shared_granules(struct kunit *test)
{
	static const struct { unsigned int objects; bool normal; } sets[] = {
		{ SZ_4M / SZ_64K, true },
		{ SZ_16M / SZ_64K, false },
	};
	unsigned int i, n, piece, normal;

	for (i = 0; i < ARRAY_SIZE(sets); i++) {
		struct nontemporal_cpu *s = nontemporal_state(test);
		unsigned int objects = sets[i].objects;

		for (n = 0, normal = 0; n < SZ_1G / SZ_64K; n++) {
			unsigned long to = NT_TO + n % objects * SZ_32K;
			bool fits = comes_round_within(s, NT_CACHE, to, SZ_32K);

			for (piece = 0; piece < 4; piece++) {
				to = NT_TO + SZ_1G + (n * 4 + piece) % (objects / 4) * SZ_32K;
				fits &= comes_round_within(s, NT_CACHE, to, SZ_8K);
			}
			normal += fits && n >= SZ_512M / SZ_64K;
		}
		KUNIT_EXPECT_EQ(test, normal, sets[i].normal ? SZ_512M / SZ_64K : 0);
	}
}

/* One place that is filled whole says nothing of another sender's pieces. */
static void nontemporal_senders(struct kunit *test)
{
	struct nontemporal_cpu *s = nontemporal_state(test);
	unsigned int n, piece, normal = 0;

	for (n = 0; n < SZ_1G / SZ_64K; n++) {
		comes_round_within(s, NT_CACHE, NT_TO, SZ_32K);
		for (piece = 0; piece < 4; piece++) {
			unsigned long to = NT_TO + SZ_1G + (n * 4 + piece) * SZ_16K % SZ_64M;

			normal += comes_round_within(s, NT_CACHE, to, SZ_16K) &&
				  n >= SZ_512M / SZ_64K;
		}
	}
	KUNIT_EXPECT_LT(test, normal, SZ_512M / SZ_16K / 4);
}

/* About the limit, copies stay what they are. */
static void nontemporal_stays(struct kunit *test)
{
	struct nontemporal_cpu *s = nontemporal_state(test);
	bool normal = false;
	unsigned int i;

	nontemporal_copies(s, SZ_1G, SZ_4M + SZ_2M, false);
	KUNIT_EXPECT_EQ(test, nontemporal_copies(s, SZ_16M, SZ_4M + SZ_2M, false), 100);
	nontemporal_copies(s, SZ_1G, SZ_8M + SZ_2M, false);
	nontemporal_copies(s, SZ_1G, SZ_4M + SZ_2M, false);
	KUNIT_EXPECT_EQ(test, nontemporal_copies(s, SZ_16M, SZ_4M + SZ_2M, false), 0);
	nontemporal_copies(s, SZ_1G, SZ_2M, false);
	KUNIT_EXPECT_EQ(test, nontemporal_copies(s, SZ_16M, SZ_2M, false), 100);
	/* The mean comes back to the least number that grants anything. */
	nontemporal_copies(s, SZ_1G, SZ_8M + SZ_2M, false);
	for (i = 0; i < SZ_1G / NT_PIECE; i++)
		normal = comes_round_within(s, MEAN_MIN, NT_TO, NT_PIECE);
	KUNIT_EXPECT_TRUE(test, normal);
}

static struct kunit_case nontemporal_test_cases[] = {
	KUNIT_CASE_PARAM(nontemporal_comes_round, nontemporal_gen_params),
	KUNIT_CASE(nontemporal_follows),
	KUNIT_CASE(nontemporal_pieces),
	KUNIT_CASE(nontemporal_scattered),
	KUNIT_CASE(nontemporal_shared_granules),
	KUNIT_CASE(nontemporal_senders),
	KUNIT_CASE(nontemporal_stays),
	{}
};

static struct kunit_suite nontemporal_test_suite = {
	.name = "nontemporal",
	.test_cases = nontemporal_test_cases,
};

kunit_test_suite(nontemporal_test_suite);
