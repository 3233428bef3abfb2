// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include <linux/nontemporal.h>

#include "caches.h"

/* A granule: what is cached or not as a whole. */
#define GRANULE		(16 << 10)
#define GRANULES	((512 << 20) / GRANULE)
#define TO_BASE		0x100000000000UL
#define FROM_BASE	0x200000000000UL

static struct task_struct task;
struct task_struct *current = &task;
unsigned long jiffies;
bool memory_is_short;
bool clock_is_coarse;

static u64 now_ns;
static struct caches caches;
/* How many rounds a granule was kept, up to caches.settle. */
static unsigned char kept[GRANULES];
static struct cacheinfo llc;
static struct cpu_cacheinfo cacheinfo = { .info_list = &llc, .num_leaves = 1 };
static u64 random_state;

u64 local_clock(void)
{
	return clock_is_coarse ? now_ns / 1000000 * 1000000 : now_ns;
}

static void pass(u64 ns)
{
	now_ns += ns;
	jiffies = now_ns / (NSEC_PER_SEC / HZ);
}

void ndelay(unsigned long ns)
{
	pass(ns);
}

bool in_task(void)
{
	return true;
}

struct cpu_cacheinfo *get_cpu_cacheinfo(unsigned int cpu)
{
	(void)cpu;
	return &cacheinfo;
}

/* Steele, Lea and Flood's; the same numbers each time. */
static u64 draw(void)
{
	u64 mixed = random_state += 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ULL;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebULL;
	return mixed ^ mixed >> 31;
}

void start(const struct caches *as, u64 said)
{
	caches = *as;
	llc.size = said;
	random_state = 1;
	memset(kept, 0, sizeof(kept));
	idle(1000);
	nontemporal_init();
}

void other_caches(const struct caches *as)
{
	caches = *as;
}

void idle(unsigned int ms)
{
	pass(ms * 1000000UL);
}

/* ns of one copy, and what it leaves in the caches. */
static u64 copy_ns(const struct work *work, unsigned int bytes, bool nontemporal)
{
	unsigned char *here = &kept[work->to % work->in_flight / GRANULE];
	u64 ns;

	if (nontemporal) {
		ns = caches.nontemporal + caches.overwrite * *here / caches.settle;
		*here = 0;
	} else {
		ns = caches.miss - (caches.miss - caches.hit) * *here / caches.settle;
		if (work->in_flight > caches.capacity)
			*here = 0;
		else if (*here < caches.settle)
			*here += 1;
	}
	return ns * bytes / GRANULE;
}

static void sleep_ms(void)
{
	pass(1000000);
	current->nvcsw++;
}

static void note(struct sent *sent, bool nontemporal, unsigned int bytes, bool *last)
{
	if (sent->bytes && nontemporal != *last) {
		sent->changes++;
		sent->settled = sent->bytes;
	}
	*last = nontemporal;
	sent->bytes += bytes;
	sent->nontemporal += nontemporal ? bytes : 0;
}

static void send_one(struct work *work, struct sent *sent, enum way way, bool *last)
{
	struct iov_iter from = { .count = work->send };
	bool yes = way == NONTEMPORAL_ONLY, timed = false;
	unsigned int done;
	u64 ns;

	from.ubuf = (void *)(FROM_BASE + work->from % work->source);
	if (way == ADAPTIVE)
		timed = nontemporal_begin(&from);
	pass(work->other);
	sent->ns += work->other;
	for (done = 0; done < work->send; done += work->copy) {
		if (way == ADAPTIVE)
			yes = nontemporal_choose(timed, (void *)(TO_BASE + work->to % work->in_flight),
						 &from, work->copy);
		ns = copy_ns(work, work->copy, yes);
		ns += ns * (draw() % 1000) * caches.noise / 100000;
		pass(ns);
		sent->ns += ns;
		if (work->faults)
			sleep_ms();
		from.iov_offset += work->copy;
		from.count -= work->copy;
		if (timed)
			nontemporal_copied(&from, work->copy);
		note(sent, yes, work->copy, last);
		work->to += work->copy;
	}
	work->from += work->send;
	if (work->sleeps && draw() % work->sleeps == 0)
		sleep_ms();
	if (timed)
		nontemporal_end(&from);
}

struct sent send_some(struct work *work, u64 bytes, enum way way)
{
	struct sent sent = { .bytes = 0 };
	bool last = false;

	while (sent.bytes < bytes)
		send_one(work, &sent, way, &last);
	return sent;
}
