// SPDX-License-Identifier: GPL-2.0
/*
 * Whether a hinted copy is to bypass the caches.
 *
 * Where what is copied comes round within what this CPU may expect of the caches,
 * it is copied normally: the same pages are still there from the last time.  What
 * comes round is the mean of the distances between two touches of the same granule,
 * destination or source, on a clock of the bytes that copies read and write: the
 * size of both sets together, in whatever order they come back.
 *
 * A source that did not come round within four times as much, which is all of the
 * CPU's part on a clock that counts both sides, may be dropped once it was read: no
 * cache has it, unless the sources around it do come round, and it was forgotten.
 */

#include <linux/bvec.h>
#include <linux/cacheinfo.h>
#include <linux/cpu.h>
#include <linux/hash.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/nontemporal.h>
#include <linux/once.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uio.h>

#define GRANULE_SHIFT	15	/* an order-3 page, of which streams are made */
#define GRANULE		BIT(GRANULE_SHIFT)
#define GRANULES	4080	/* 127 MiB, and 16 KiB with the rest */
#define PACE		8	/* the mean moves by at most an eighth */
#define MEAN_MIN	((u64)SZ_64K)	/* lest it get stuck */
#define NEAR		256	/* where each source comes round within the caches */

enum { TO, FROM, SIDES };

struct granule {
	u16 tag;
	u16 touched;		/* on the clock, in granules */
};

struct nontemporal_cpu {
	u64 clock;		/* bytes read and written */
	u64 sampled[SIDES];	/* the clock, when the mean moved last */
	unsigned long last[SIDES];	/* granules, at that time */
	u64 mean;
	unsigned long cache_bytes;	/* this CPU's own share */
	int near;		/* the share of sources that come round, of NEAR */
	bool drop;		/* the source that was touched last */
	struct granule granules[GRANULES];
};

static_assert(sizeof(struct nontemporal_cpu) <= SZ_16K);

static DEFINE_PER_CPU_READ_MOSTLY(struct nontemporal_cpu *, nontemporal_cpu);

unsigned long nontemporal_cache_bytes __read_mostly;

static void touch_source(struct nontemporal_cpu *s, bool near)
{
	s->near += ((near ? NEAR : 0) - s->near) / (2 * PACE);
	s->drop = !near && s->near < NEAR / 4;
}

static void touch(struct nontemporal_cpu *s, u64 cache_bytes, unsigned long addr, int side)
{
	unsigned long granule = addr >> GRANULE_SHIFT;
	u32 hash = hash_long(granule, 32);
	struct granule *g = &s->granules[reciprocal_scale(hash, GRANULES)];
	u16 now = s->clock >> GRANULE_SHIFT;
	u64 since = s->clock - s->sampled[side];
	s64 distance = 2 * s->mean, weight, found = S64_MAX;

	/* The rest of a granule that both sides fill is no return to it, nor another source. */
	if (since < (granule == s->last[side] ? GRANULE * 2 : GRANULE * 3 / 2)) {
		s->drop &= side == TO || granule - s->last[side] <= 1;
		return;
	}

	/* One that is new, or was forgotten, counts as twice the mean. */
	if (g->tag == (u16)hash) {
		found = (s64)(u16)(now - g->touched) << GRANULE_SHIFT;
		distance = min(2 * distance, found);
	}
	if (side == FROM)
		touch_source(s, found <= 4 * cache_bytes);
	*g = (struct granule){ .tag = hash, .touched = now };

	/* Slowly: what was freed last is handed out first, at all distances. */
	weight = min(since / SIDES, s->mean / PACE);
	s->sampled[side] = s->clock;
	s->last[side] = granule;
	s->mean += div64_s64((distance - (s64)s->mean) * weight, s->mean);
}

static bool comes_round_within(struct nontemporal_cpu *s, u64 cache_bytes,
			       unsigned long to, unsigned long from, size_t bytes)
{
	touch(s, cache_bytes, to, TO);
	touch(s, cache_bytes, from, FROM);
	s->clock += SIDES * bytes;
	s->mean = clamp(s->mean, MEAN_MIN, max(2 * cache_bytes, MEAN_MIN));
	return s->mean <= cache_bytes;
}

/* Where it lies, for the table only.  Processes may have theirs at the same address. */
static unsigned long source_addr(const struct iov_iter *from)
{
	if (user_backed_iter(from))
		return (unsigned long)iter_iov_addr(from) +
		       ((unsigned long)current->mm << GRANULE_SHIFT);
	if (iov_iter_is_bvec(from))
		return (page_to_pfn(from->bvec->bv_page) << PAGE_SHIFT) +
		       from->bvec->bv_offset + from->iov_offset;
	return 0;
}

/*
 * Whether a hinted copy, of a page at least, is to bypass the caches; and whether,
 * if it does, its source is to be dropped from them.
 */
bool nontemporal_pays(const void *to, const struct iov_iter *from, size_t bytes,
		      bool *drop_source)
{
	u64 cache_bytes = READ_ONCE(nontemporal_cache_bytes);
	struct nontemporal_cpu *s;
	bool pays = false;

	if (!in_task())
		return false;

	preempt_disable();
	s = this_cpu_read(nontemporal_cpu);
	if (s) {
		pays = !comes_round_within(s, cache_bytes ?: READ_ONCE(s->cache_bytes),
					   (unsigned long)to, source_addr(from), bytes);
		*drop_source = s->drop;
	}
	preempt_enable();
	return pays;
}

static unsigned long part(const struct cacheinfo *leaf)
{
	return leaf->size / max(cpumask_weight(&leaf->shared_cpu_map), 1);
}

unsigned long __weak nontemporal_own_share(int cpu)
{
	const struct cacheinfo *private = get_cpu_cacheinfo_level(cpu, 2);
	const struct cacheinfo *llc = get_cpu_cacheinfo_llc(cpu);
	bool guest = false;

#ifdef CONFIG_X86
	guest = boot_cpu_has(X86_FEATURE_HYPERVISOR);
#endif
	return nontemporal_share(private ? part(private) : SZ_1M,
				 llc && llc->level > 2 ? part(llc) : 0, guest);
}

/* A CPU that comes takes its part of the caches that it shares with others. */
static int nontemporal_online(unsigned int cpu)
{
	const struct cacheinfo *llc = get_cpu_cacheinfo_llc(cpu);
	struct nontemporal_cpu *s = per_cpu(nontemporal_cpu, cpu) ?:
		kvzalloc_node(sizeof(*s), GFP_KERNEL, cpu_to_node(cpu));
	const struct cpumask *sharing = llc ? &llc->shared_cpu_map : cpumask_of(cpu);

	if (!s)
		return 0;	/* and copies normally */
	s->mean = MEAN_MIN;
	s->near = NEAR;
	/* Its CPU may be in a send, and divides by the mean. */
	smp_store_release(per_cpu_ptr(&nontemporal_cpu, cpu), s);
	for_each_cpu(cpu, sharing) {
		s = READ_ONCE(per_cpu(nontemporal_cpu, cpu));
		if (s)
			WRITE_ONCE(s->cache_bytes, nontemporal_own_share(cpu));
	}
	return 0;
}

/* Waits for no other CPU: one may be busy for good.  On an error, those to come copy normally. */
static int nontemporal_start(void)
{
	unsigned int cpu;
	int state;

	cpus_read_lock();
	for_each_online_cpu(cpu)
		nontemporal_online(cpu);
	state = cpuhp_setup_state_nocalls_cpuslocked(CPUHP_AP_ONLINE_DYN,
						     "lib/nontemporal:online",
						     nontemporal_online, NULL);
	cpus_read_unlock();
	return state;
}

/* When the first socket opts in.  The memory is the machine's: it stays. */
void nontemporal_init(void)
{
	DO_ONCE_SLEEPABLE(nontemporal_start);
}

#if IS_ENABLED(CONFIG_NONTEMPORAL_KUNIT_TEST)
#include "tests/nontemporal_kunit.c"
#endif
