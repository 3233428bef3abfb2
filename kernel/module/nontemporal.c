// SPDX-License-Identifier: GPL-2.0
/*
 * Whether hinted copies are to bypass the caches.
 *
 * A page that is filled again soon is still in the private cache: a normal copy finds it
 * there and displaces nothing.  So each CPU remembers a few that were filled, on a clock
 * of copied bytes.  How late one is filled again counts for both of its senders: from a
 * stack of pages each gets one early and one late, and their mean is what is in flight.
 */

#include <linux/hash.h>
#include <linux/nontemporal.h>
#include <linux/percpu.h>
#include <linux/sizes.h>

#define PROBES		8
#define LIMIT		64	/* in units */
#define SCORE		(5 * LIMIT)	/* changes a sender's copies */

struct nontemporal_cpu {
	unsigned long clock, next;	/* bytes copied, by now and by the next probe */
	unsigned long set, unit;	/* nontemporal_cache_bytes, and a part of what it sets */
	u64 bypass;			/* a bit for each sender */
	s16 score[1 << NONTEMPORAL_SENDER_BITS];
	unsigned long page[PROBES];
	unsigned long filled[PROBES];	/* on the clock */
	u8 sender[PROBES];
};

static DEFINE_PER_CPU(struct nontemporal_cpu, nontemporal_cpu);
unsigned long nontemporal_cache_bytes __read_mostly;

static void vote(struct nontemporal_cpu *s, u8 sender, unsigned long age)
{
	/* 7/8 ends a bypass: pages that were copied to the other way are slow. */
	int limit = s->bypass & BIT_ULL(sender) ? LIMIT * 7 / 8 : LIMIT;
	int score = s->score[sender] + limit - (int)(age / s->unit);

	if (score <= -SCORE)
		s->bypass |= BIT_ULL(sender);
	else if (score >= SCORE)
		s->bypass &= ~BIT_ULL(sender);
	s->score[sender] = clamp(score, -SCORE, SCORE);
}

static void look_on(struct nontemporal_cpu *s, unsigned long to, size_t bytes, u8 sender)
{
	unsigned long age, page = round_up(to, PAGE_SIZE), oldest = 3 * LIMIT * s->unit;
	int i;

	s->clock += bytes;
	for (i = 0; i < PROBES; i++) {
		age = min(s->clock - s->filled[i], oldest);
		if (s->page[i] && (s->page[i] - to < bytes || age == oldest)) {
			vote(s, s->sender[i], age);
			if (s->page[i] - to < bytes)
				vote(s, sender, age);
			s->page[i] = 0;
		}
		if (!s->page[i] && page - to < bytes && (long)(s->clock - s->next) >= 0) {
			s->page[i] = page;
			s->sender[i] = sender;
			s->filled[i] = s->clock;
			/* Not every so many bytes, or some that take turns would never vote. */
			s->next = s->clock + (LIMIT / 4 + hash_long(s->clock, 4)) * s->unit;
		}
	}
}

/* After each hinted copy of a page or more, whichever way it went. */
void nontemporal_look_on(const void *to, size_t bytes, u8 sender)
{
	unsigned long set = READ_ONCE(nontemporal_cache_bytes);
	struct nontemporal_cpu *s = get_cpu_ptr(&nontemporal_cpu);

	if (!s->unit || s->set != set) {
		memset(s, 0, sizeof(*s));
		s->set = set;
		/* A third: the source goes through there, and the program wants some of it. */
		s->unit = max(set ?: nontemporal_private_bytes(smp_processor_id()) / 3, SZ_64K) /
			  LIMIT;
	}
	look_on(s, (unsigned long)to, bytes, sender);
	put_cpu_ptr(&nontemporal_cpu);
}

bool nontemporal_pays(u8 sender)
{
	unsigned long set = READ_ONCE(nontemporal_cache_bytes);

	return (set && set < SZ_64K) ||
	       (raw_cpu_read(nontemporal_cpu.set) == set &&
		raw_cpu_read(nontemporal_cpu.bypass) & BIT_ULL(sender));
}

#if IS_ENABLED(CONFIG_NONTEMPORAL_KUNIT_TEST)
#include "tests/nontemporal_kunit.c"
#endif
