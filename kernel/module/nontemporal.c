// SPDX-License-Identifier: GPL-2.0
/*
 * Whether hinted copies are to bypass the caches.
 *
 * A page that is filled again soon is still in the private cache from the last time: a
 * normal copy finds it there and displaces nothing.  So each CPU remembers a few that
 * were filled, with sender and time, on a clock of copied bytes.  One that anyone fills
 * again within the limit is a hit for that sender, another one a miss.
 */

#include <linux/cacheinfo.h>
#include <linux/mm.h>
#include <linux/nontemporal.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <asm/nontemporal.h>

#define PROBES		8
#define SCORE		12	/* hits less misses that change a sender's copies */

struct nontemporal_cpu {
	u64 clock, placed;	/* bytes copied, by now and by the last probe */
	unsigned long set, limit;	/* nontemporal_cache_bytes, of which all this is */
	u64 bypass;		/* a bit for each sender */
	s8 score[1 << NONTEMPORAL_SENDER_BITS];
	unsigned long page[PROBES];
	u64 filled[PROBES];	/* on the clock */
	u8 sender[PROBES];
};

static DEFINE_PER_CPU(struct nontemporal_cpu, nontemporal_cpu);

unsigned long nontemporal_cache_bytes __read_mostly;

static void look_on(struct nontemporal_cpu *s, unsigned long to, size_t bytes, u8 sender)
{
	unsigned long page = PAGE_ALIGN(to);
	bool late, due;
	s8 *score;
	int i;

	s->clock += bytes;
	due = page - to < bytes && s->clock - s->placed >= s->limit / PROBES;
	for (i = 0; i < PROBES; i++) {
		/* 7/8 ends a bypass: pages that were copied to the other way are slow. */
		late = s->clock - s->filled[i] >
		       s->limit / 8 * (8 - (s->bypass >> s->sender[i] & 1));
		if (s->page[i] && (late || s->page[i] - to < bytes)) {
			s->page[i] = 0;
			score = &s->score[s->sender[i]];
			*score = clamp(*score + (late ? -1 : 1), -SCORE, SCORE);
			if (*score == -SCORE)
				s->bypass |= BIT_ULL(s->sender[i]);
			else if (*score == SCORE)
				s->bypass &= ~BIT_ULL(s->sender[i]);
		}
		if (due && !s->page[i]) {
			due = false;
			s->page[i] = page;
			s->sender[i] = sender;
			s->filled[i] = s->clock;
			s->placed = s->clock;
		}
	}
}

/* After each copy of a sender that was told what nontemporal_pays() says. */
void nontemporal_look_on(const void *to, size_t bytes, u8 sender)
{
	unsigned long set = READ_ONCE(nontemporal_cache_bytes);
	struct nontemporal_cpu *s = get_cpu_ptr(&nontemporal_cpu);

	if (!s->limit || s->set != set) {
		memset(s, 0, sizeof(*s));
		s->set = set;
		/* A third: the source goes through there, and the program wants some of it. */
		s->limit = set ?: max(nontemporal_private_bytes(smp_processor_id()) / 3, SZ_64K);
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

unsigned long __weak nontemporal_private_bytes(int cpu)
{
	const struct cpu_cacheinfo *caches = get_cpu_cacheinfo(cpu);
	const struct cacheinfo *leaf = caches->info_list;
	/* get_cpu_cacheinfo_level() wants a lock that may sleep; x86 keeps the list. */
	unsigned int left = leaf ? caches->num_leaves : 0;

	for (; left && leaf->level != NONTEMPORAL_LEVEL; left--)
		leaf++;
	return left ? leaf->size / max(cpumask_weight(&leaf->shared_cpu_map), 1) : SZ_1M;
}

#if IS_ENABLED(CONFIG_NONTEMPORAL_KUNIT_TEST)
#include "tests/nontemporal_kunit.c"
#endif
