// SPDX-License-Identifier: GPL-2.0
/*
 * Whether a hinted copy is to bypass the caches.
 *
 * Pages that are filled again soon are still in the private cache from the last
 * time: a normal copy finds them there, and displaces nothing.  How soon is the mean
 * of the distances between two touches of the same granule, on a clock of copied
 * bytes: what is in flight, in whatever order pages come back.  The source does not
 * count.  It is read in either case.
 */

#include <linux/cacheinfo.h>
#include <linux/cpu.h>
#include <linux/hash.h>
#include <linux/math64.h>
#include <linux/nontemporal.h>
#include <linux/once.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#define GRANULE_SHIFT	15	/* an order-3 page, of which streams are made */
#define GRANULE		BIT(GRANULE_SHIFT)
#define GRANULES	4080	/* 127 MiB, and 16 KiB with the rest */
#define PACE		32	/* flights that the mean is over, about */
#define MEAN_MIN	((u64)SZ_64K)	/* lest it get stuck */

struct granule {
	u16 tag;
	u16 touched;		/* on the clock, in granules */
};

struct nontemporal_cpu {
	u64 clock;		/* bytes copied */
	u64 sampled;		/* the clock, when the mean moved last */
	u64 whole;		/* the clock, when a whole granule was filled last */
	u64 mean;
	unsigned long cache_bytes;	/* what may be in flight */
	bool bypass;		/* the last copy */
	struct granule granules[GRANULES];
};

static_assert(sizeof(struct nontemporal_cpu) <= SZ_16K);

static DEFINE_PER_CPU_READ_MOSTLY(struct nontemporal_cpu *, nontemporal_cpu);

unsigned long nontemporal_cache_bytes __read_mostly;

/* Bytes that were copied since a granule was touched, or @unknown. */
static u64 touch(struct nontemporal_cpu *s, unsigned long granule, u64 unknown)
{
	u32 hash = hash_long(granule, 32);
	struct granule *g = &s->granules[reciprocal_scale(hash, GRANULES)];
	u16 now = s->clock >> GRANULE_SHIFT;
	u64 distance = unknown;

	if (g->tag == (u16)hash)
		distance = (u64)(u16)(now - g->touched) << GRANULE_SHIFT;
	*g = (struct granule){ .tag = hash, .touched = now };
	return distance;
}

static void fill(struct nontemporal_cpu *s, unsigned long granule, size_t bytes)
{
	u64 since = s->clock - s->sampled;
	s64 distance, weight;

	if (bytes >= GRANULE)
		s->whole = s->clock;
	if (since < GRANULE)
		return;
	/* One that is new, or was forgotten, counts as twice the mean. */
	distance = min(touch(s, granule, 2 * s->mean), 4 * s->mean);
	/* Several sends may share one that they fill in pieces, which comes back too soon. */
	if (bytes < GRANULE && s->clock - s->whole < 4 * GRANULE && distance < (s64)s->mean)
		return;
	/* Slowly: what was freed last is handed out first, at all distances. */
	weight = min(since, s->mean) / PACE;
	s->sampled = s->clock;
	s->mean += div64_s64((distance - (s64)s->mean) * weight, s->mean);
}

static bool comes_round_within(struct nontemporal_cpu *s, u64 cache_bytes,
			       unsigned long to, size_t bytes)
{
	s->clock += bytes;
	fill(s, to >> GRANULE_SHIFT, bytes);
	s->mean = clamp(s->mean, MEAN_MIN, max(2 * cache_bytes, MEAN_MIN));
	/* Pages that were copied to the other way are slow: it changes seldom. */
	s->bypass = s->mean > cache_bytes ||
		    (s->bypass && s->mean > max(cache_bytes / 2, MEAN_MIN));
	return !s->bypass;
}

/* Whether a hinted copy, of a page at least, is to bypass the caches. */
bool nontemporal_pays(const void *to, size_t bytes)
{
	u64 cache_bytes = READ_ONCE(nontemporal_cache_bytes);
	struct nontemporal_cpu *s;
	bool pays = false;

	if (!in_task())
		return false;

	preempt_disable();
	s = this_cpu_read(nontemporal_cpu);
	if (s)
		pays = !comes_round_within(s, cache_bytes ?: s->cache_bytes,
					   (unsigned long)to, bytes);
	preempt_enable();
	return pays;
}

unsigned long __weak nontemporal_private_bytes(int cpu)
{
	const struct cacheinfo *leaf = get_cpu_cacheinfo_level(cpu, 2);

	return leaf ? leaf->size / max(cpumask_weight(&leaf->shared_cpu_map), 1) : SZ_1M;
}

static int nontemporal_online(unsigned int cpu)
{
	struct nontemporal_cpu *s;

	if (per_cpu(nontemporal_cpu, cpu))
		return 0;
	s = kvzalloc_node(sizeof(*s), GFP_KERNEL, cpu_to_node(cpu));
	if (!s)
		return 0;	/* and copies normally */
	/* What is read goes through the cache, too, and the program wants some of it. */
	s->cache_bytes = max(nontemporal_private_bytes(cpu) / 3, MEAN_MIN);
	s->mean = MEAN_MIN;
	/* Its CPU may be in a send, and divides by the mean. */
	smp_store_release(per_cpu_ptr(&nontemporal_cpu, cpu), s);
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
