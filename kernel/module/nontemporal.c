// SPDX-License-Identifier: GPL-2.0
/*
 * Does a non-temporal copy pay?
 *
 * It does if the destination would not have stayed in the cache anyway, and it
 * costs if the destination is in the cache already.  Which of both holds
 * depends on how many bytes are in flight before the same pages come back, on
 * whether the source streams through the cache too, and on what the machine
 * leaves of a cache that is shared with strangers: the size that a guest sees
 * can be wrong by several times.  So two things are kept for each CPU:
 *
 * - Two small tables of when destination and source granules were touched
 *   last, on a clock that counts copied bytes.  The mean of the distances is
 *   the working set, without a window and without a clean-up: a change shows
 *   with the first pages that come back sooner, or don't come back.
 *
 * - For each combination of both working sets, in octaves, what a byte costs
 *   by either copy: not the copy alone but the send that it is part of, which
 *   has its own data in the caches that a copy can drive out.  The cost of a
 *   choice only shows after the whole working set went through it, so the
 *   cheaper choice is kept, and the other one gets a trial that is long enough,
 *   rarely, and more rarely each time that it confirms what was known.
 *
 * Until one of both is known, and where there is no clock that could time a
 * send, the working set is compared with the size of the last-level cache.
 *
 * Everything is per CPU and owned by whoever runs there with preemption off.
 * A send may sleep: what it did up to its last copy before that counts.  What it
 * does on another CPU, or began before another choice was made, teaches nothing.
 */

#include <linux/bvec.h>
#include <linux/cache.h>
#include <linux/cacheinfo.h>
#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/nontemporal.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

/* An order-3 page, which is what a stream socket's buffers are made of. */
#define GRANULE_SHIFT	15

/*
 * One granule of eight is looked up: 4096 entries of 32 KiB then remember most
 * of a working set of 512 MiB.
 */
#define TABLE_BITS	12
#define SAMPLE_MASK	7
/*
 * A working set of a few granules may have none that is looked up: that is what
 * it means if there was none for so long.  One copy of 16 asks.
 */
#define UNSAMPLED	(64 << GRANULE_SHIFT)
#define ASK_MASK	15

/* An entry: a tag, and the clock in units of 16 KiB.  Zero is empty. */
#define TIME_SHIFT	14
#define TIME_BITS	20
#define TIME_MASK	(BIT(TIME_BITS) - 1)

/* Working sets are told apart by octaves, 64 KiB to 256 MiB and beyond. */
#define OCTAVE_MIN	16
#define OCTAVE_MAX	28
#define OCTAVES		(OCTAVE_MAX - OCTAVE_MIN + 1)
#define FIRST_GUESS	BIT(20)
/* For a granule that was not seen before, or that the table forgot. */
#define FAR		BIT(OCTAVE_MAX + 1)

/* Copies and bytes of timed sends before a cost is believed. */
#define BLOCK_COPIES	48
#define BLOCK_BYTES	BIT(20)
/*
 * Where there are enough of them, as many sends are timed as have one copy of so
 * many.  Odd, lest it always be those of the same socket.
 */
#define TIMED_EVERY	31
#define TIMED_ALL_BYTES	(32 << 20)
/* A long send is timed in stretches of about as many bytes. */
#define STRETCH_BYTES	(64 << 10)
/*
 * A stretch that takes so many times the mean was interrupted.  What a send costs
 * besides its bytes is at most what so many of them do.
 */
#define OUTLIER		4
#define SEND_BYTES	(16 << 10)
/* A larger one is no copy of a working set. */
#define TIMED_MAX	(16 << 20)

/* After so many jiffies in which no copy was looked at, others used the caches. */
#define PAUSE		(HZ / 100 + 1)

/*
 * Caches with an adaptive insertion policy need a working set to come round
 * several times before they keep it.  Non-temporal copies are dear as long as
 * their destination is in the cache from before, and an allocator doesn't give
 * back each page in its turn.
 */
#define SETTLE_ROUNDS	8
#define SETTLE_MAX	(256 << 20)
#define OVERWRITE_MAX	(64 << 20)
#define ROUND_MAX	(128 << 20)

/*
 * A trial goes on for as long, and until two rounds in a row were not cheaper by
 * 1/32, or non-temporal copies are dearer by an eighth.  That of normal ones goes
 * on for twice as long where they have got cheaper by a sixteenth.
 */
#define TRIAL_ROUNDS	2
#define TRIAL_GAIN	5
#define TRIAL_SLOW	4
#define TRIAL_HOPELESS	3
#define CHEAPER		6
/*
 * A splice() that finds the bytes in memory takes longer.  Nothing here times
 * that: sends with non-temporal copies have to be cheaper by this part, 1/32, to
 * be called as cheap.
 */
#define AFTERMATH	5
/*
 * It comes again after 16 times its length, and later each time that it confirms
 * what was known or has no time to end; and not before what it lost is 1/512 of
 * the time since.  Where there is a reason it comes four times as soon, between
 * 8 and 64 times its length.
 */
#define TRIAL_SECOND	1
#define TRIAL_SHIFT	4
#define TRIAL_BACKOFF	6
#define TRIAL_LOSS	9
#define TRIAL_REASON	2
#define OTHER_WORK	2
#define TRIAL_EARLY	3
#define TRIAL_EARLY_MAX	6
#define TRIAL_MAX	(512 << 20)
/* A trial in which nothing can be timed any more ends after so many bytes. */
#define TRIAL_LONGEST	BIT(30)

enum { TEMPORAL, NONTEMPORAL, CHOICES };

/*
 * When the granules of one side were touched last.  The mean of the distances
 * between two touches of the same granule is the size of the working set, in
 * whatever order its granules come back.
 */
struct recency {
	u64		sampled;	/* clock of the last sample */
	u32		bytes;		/* mean distance */
	int		octave;
	u32		last[BIT(TABLE_BITS)];
};

struct cost {
	u32		ns[CHOICES];	/* for 16 KiB; 0 is unknown */
	u32		tried_at;	/* the choice's, when the other was tried */
	u8		choice;
	u8		backoff;
	u64		next_trial;	/* on the clock of copied bytes */
	u64		early_trial;	/* the same, if there is a reason */
};

/*
 * A part of a send: from where a copy may begin to where another one may, or to
 * the end of the send, or to the end of a copy, if the task then slept.
 */
struct stretch {
	const struct iov_iter	*from;		/* whose send it is */
	unsigned long		switches;	/* of the task, at its start */
	u32			run;		/* which run of the same choice */
	u32			copies;		/* that are done */
	u64			start;		/* in ns; 0 if it has not begun */
	u64			ns;		/* from there to the last mark */
	u64			bytes;		/* copied up to there */
};

struct nontemporal_cpu {
	/*
	 * What every copy looks at, in one line: copies leave nothing of this
	 * in the caches next to the CPU.
	 */
	u64		clock;		/* bytes copied */
	unsigned long	seen;		/* jiffies of the last one looked at */
	unsigned long	to_last;	/* where it went to: recency_touch() */
	unsigned long	from_last;
	u32		copies;
	u32		run;		/* counts changes of what is timed */
	u32		until_timed;	/* copies */
	u8		timed_every;
	u8		choice;

	u64		entered;	/* clock of the last change of the sets */
	u64		since;		/* the same of the choice, or a pause */
	u64		resumed;	/* clock of the last pause */
	u64		burst;		/* bytes between the two pauses before */
	u64		trial;		/* clock of its start; 0 if there is none */
	u32		trial_ns;	/* cost in its cheapest round */
	u32		trial_rounds;	/* since that one */
	u32		trial_first_ns;	/* cost in its first one */
	struct cost	*cost;

	/* The send that is being timed, and the block that it counts for. */
	const struct task_struct *sender;
	struct stretch	stretch;
	u64		block_start;	/* clock */
	u32		block_copies;
	u32		block_outliers;
	u64		block_bytes;
	u64		block_ns;

	struct recency	to;
	struct recency	from;
	struct cost	costs[OCTAVES][OCTAVES];
};

static DEFINE_PER_CPU_READ_MOSTLY(struct nontemporal_cpu *, nontemporal_cpu);

/* 0: the last-level cache's size is a first guess, and costs decide. */
unsigned long nontemporal_cache_bytes __read_mostly;

/* Whether the scheduler's clock ticks often enough to time a send. */
static bool have_clock __read_mostly;

/*
 * Another distance for the mean, which moves at the pace of the working set
 * itself: allocators that hand out first what was freed last make distances
 * run through all values each time that the set comes round.  Returns true if
 * the mean moved to another octave.
 */
static bool recency_sample(struct recency *r, u64 clock, u32 distance)
{
	u32 weight = min(clock - r->sampled, r->bytes / 8);
	int octave;

	r->sampled = clock;
	/* One that was forgotten must not look like many that are new. */
	distance = min(distance, 2 * r->bytes);
	r->bytes += div_s64(((s64)distance - r->bytes) * weight, r->bytes);
	r->bytes = clamp(r->bytes, BIT(OCTAVE_MIN), FAR - 1);

	/* A half beyond the border, lest it flutter. */
	octave = ilog2(r->bytes);
	if (octave > r->octave)
		octave = ilog2(r->bytes - r->bytes / 3);
	else if (octave < r->octave)
		octave = ilog2(r->bytes + r->bytes / 2);
	if (octave == r->octave)
		return false;
	r->octave = octave;
	return true;
}

/* Whether a granule is one of those that are looked up. */
static bool is_sampled(unsigned long addr)
{
	return !(hash_long(addr >> GRANULE_SHIFT, 32) & SAMPLE_MASK);
}

/* The rest of a granule that is being filled is no return to it. */
static bool is_filling(unsigned long last, unsigned long addr)
{
	return addr > last && addr >> GRANULE_SHIFT == last >> GRANULE_SHIFT;
}

/*
 * A granule that is looked up is touched.  Returns true if the working set moved
 * to another octave.
 */
static bool recency_touch(struct recency *r, unsigned long addr,
			  unsigned long space, u64 clock)
{
	u32 hash = hash_long(addr >> GRANULE_SHIFT ^ space, 32);
	u32 *entry = &r->last[hash >> (32 - TABLE_BITS)];
	u32 now = (clock >> TIME_SHIFT) & TIME_MASK;
	u32 tag, seen;

	tag = (hash << (32 - TABLE_BITS - 2) | BIT(TIME_BITS)) & ~TIME_MASK;
	seen = *entry;
	*entry = tag | now;

	if ((seen & ~TIME_MASK) == tag)
		return recency_sample(r, clock, min(((now - seen) & TIME_MASK),
						    FAR >> TIME_SHIFT) <<
					       TIME_SHIFT);
	return recency_sample(r, clock, FAR);
}

/* None of them is touched by this copy. */
static bool recency_pass(struct recency *r, u64 clock)
{
	return clock - r->sampled > UNSAMPLED &&
	       recency_sample(r, clock, FIRST_GUESS);
}

/* Where the next byte comes from. */
static unsigned long source_addr(const struct iov_iter *i)
{
	if (iter_is_ubuf(i))
		return (unsigned long)i->ubuf + i->iov_offset;
	if (iter_is_iovec(i))
		return (unsigned long)iter_iov_addr(i);
	if (iov_iter_is_kvec(i))
		return (unsigned long)i->kvec->iov_base + i->iov_offset;
	if (iov_iter_is_bvec(i))
		return (unsigned long)page_to_pfn(i->bvec->bv_page) * PAGE_SIZE +
			i->bvec->bv_offset + i->iov_offset;
	return (unsigned long)i;
}

/* Tells user address spaces apart. */
static unsigned long source_space(const struct iov_iter *i)
{
	return user_backed_iter(i) ? hash_long((unsigned long)current->mm, 32) :
				     0;
}

/* The size of this CPU's last-level cache, as far as anybody knows. */
static unsigned long llc_bytes(void)
{
#ifdef CONFIG_GENERIC_CPU_CACHEINFO
	const struct cpu_cacheinfo *info;

	info = get_cpu_cacheinfo(smp_processor_id());
	if (info && info->info_list && info->num_leaves)
		return info->info_list[info->num_leaves - 1].size;
#endif
	return ULONG_MAX;
}

/*
 * From the working set alone.  Half of the cache, as other things want some of
 * it, and no cache is a perfect LRU.
 */
static u8 guess(const struct nontemporal_cpu *s, unsigned long cache_bytes)
{
	u64 bytes = (u64)s->to.bytes + s->from.bytes;

	return bytes > cache_bytes / 2 ? NONTEMPORAL : TEMPORAL;
}

static void new_block(struct nontemporal_cpu *s)
{
	s->run++;
	s->block_start = s->clock;
	s->block_copies = 0;
	s->block_outliers = 0;
	s->block_bytes = 0;
	s->block_ns = 0;
}

static void time_every(struct nontemporal_cpu *s, u8 copies)
{
	s->timed_every = copies;
	s->until_timed = copies - 1;
}

static void choose(struct nontemporal_cpu *s, u8 choice)
{
	s->choice = choice;
	s->since = s->clock;
	new_block(s);
}

/* Bytes until both working sets have come round. */
static u32 round_bytes(const struct nontemporal_cpu *s)
{
	return min(max(s->from.bytes, s->to.bytes), ROUND_MAX);
}

/* The end of a trial is the time to say when there may be another one. */
static void next_trial(struct nontemporal_cpu *s, int shift)
{
	u64 length = min(s->clock - s->trial, TRIAL_MAX);
	int early = clamp(shift - TRIAL_REASON, TRIAL_EARLY, TRIAL_EARLY_MAX);

	s->cost->tried_at = s->cost->ns[s->cost->choice];
	s->cost->early_trial = s->clock + (length << early);
	s->cost->next_trial = s->clock + (length << shift);
}

/* The next trial has to wait longer than this one had to. */
static void back_off(struct cost *cost)
{
	if (cost->backoff < TRIAL_BACKOFF)
		cost->backoff++;
}

/* One that had no time to end is not tried again at once. */
static void abandon_trial(struct nontemporal_cpu *s)
{
	next_trial(s, TRIAL_EARLY + s->cost->backoff);
	back_off(s->cost);
	s->trial = 0;
}

/* A working set, and what is known about it. */
static void enter(struct nontemporal_cpu *s, struct cost *cost)
{
	if (s->trial)
		abandon_trial(s);
	s->cost = cost;
	time_every(s, cost->ns[cost->choice] ? TIMED_EVERY : 1);
	if (!cost->ns[TEMPORAL] && !cost->ns[NONTEMPORAL])
		cost->choice = guess(s, llc_bytes());
	choose(s, cost->choice);
}

/*
 * Bytes until copies cost what they always will if the choice stays.  What was
 * copied the other way before is in the cache, or not, because of that.
 */
static u64 settle_bytes(const struct nontemporal_cpu *s)
{
	if (s->choice == TEMPORAL)
		return min(SETTLE_ROUNDS * (u64)round_bytes(s), (u64)SETTLE_MAX);
	return min(SETTLE_ROUNDS * (u64)s->to.bytes,
		   (u64)s->to.bytes + OVERWRITE_MAX);
}

/*
 * Where pauses come sooner, half of what is copied between two of them has to do.
 * In a trial costs say how that goes, and the first look at a working set need
 * not wait: it is corrected later.
 */
static bool is_worth_timing(const struct nontemporal_cpu *s)
{
	return s->trial || !s->cost->ns[s->choice] ||
	       s->clock - s->since >= min(settle_bytes(s), s->burst / 2);
}

/*
 * Whether the working sets are what they seem.  The means need one round to get
 * to another size, and pass the octaves between: nothing is to be learned there.
 */
static bool is_steady(const struct nontemporal_cpu *s)
{
	return s->clock - s->entered >= 2 * (u64)max(s->to.bytes, s->from.bytes);
}

static void start_trial(struct nontemporal_cpu *s)
{
	s->trial = s->clock;
	s->trial_ns = U32_MAX;
	s->trial_first_ns = 0;
	choose(s, !s->choice);
	time_every(s, round_bytes(s) < TIMED_ALL_BYTES ? 1 : TIMED_EVERY);
}

/* What a choice costs, with what comes of it. */
static u32 whole_cost(const struct cost *cost, u8 choice)
{
	u32 ns = cost->ns[choice];

	return choice == NONTEMPORAL ? ns + (ns >> AFTERMATH) : ns;
}

/* The other choice has to be cheaper by 1/64: nothing is lost by staying. */
static u8 cheaper(const struct cost *cost)
{
	u32 now = whole_cost(cost, cost->choice);
	u32 other = whole_cost(cost, !cost->choice);

	return other + (other >> CHEAPER) < now ? !cost->choice : cost->choice;
}

/* After how many times its length a trial has lost next to nothing, as a shift. */
static int pays_off(const struct cost *cost)
{
	u32 now = whole_cost(cost, cost->choice);
	u32 other = whole_cost(cost, !cost->choice);

	if (other <= now)
		return 0;
	return order_base_2(div_u64((u64)(other - now) << TRIAL_LOSS, now) + 1);
}

/*
 * Sends of several kinds have working sets of the same size.  What was found out
 * with some need not hold for others, which are those that cost a quarter more,
 * or less.
 */
static bool is_other_work(const struct cost *cost)
{
	u32 now = cost->ns[cost->choice];

	return abs((s32)(now - cost->tried_at)) > cost->tried_at >> OTHER_WORK;
}

static void end_trial(struct nontemporal_cpu *s)
{
	struct cost *cost = s->cost;
	u8 choice = cheaper(cost);
	int shift;

	if (is_other_work(cost))
		cost->backoff = 0;
	if (choice != cost->choice) {
		/* The other one may just have been unsettled. */
		cost->choice = choice;
		cost->backoff = 0;
		shift = TRIAL_SECOND;
	} else {
		shift = clamp(pays_off(cost), TRIAL_SHIFT + cost->backoff,
			      TRIAL_SHIFT + TRIAL_BACKOFF);
		back_off(cost);
	}
	next_trial(s, shift);
	s->trial = 0;
	time_every(s, TIMED_EVERY);
	if (choice == s->choice)
		new_block(s);
	else
		choose(s, choice);
}

/*
 * Whether copies may yet get cheaper in this trial, however slowly: normal ones of
 * a set that barely fits the cache get there in twice the time.
 */
static bool is_young(const struct nontemporal_cpu *s, u32 ns)
{
	u64 bytes = settle_bytes(s);

	if (s->choice == TEMPORAL &&
	    ns < s->trial_first_ns - (s->trial_first_ns >> TRIAL_SLOW))
		bytes *= 2;
	return s->clock - s->trial < bytes;
}

/* Non-temporal copies won't get much cheaper any more. */
static bool is_hopeless(const struct nontemporal_cpu *s)
{
	u32 now = whole_cost(s->cost, !s->choice);

	return s->choice == NONTEMPORAL &&
	       whole_cost(s->cost, s->choice) > now + (now >> TRIAL_HOPELESS);
}

/* The working set came round once more in a trial. */
static void trial_round(struct nontemporal_cpu *s, u32 ns)
{
	struct cost *cost = s->cost;

	if (!s->trial_first_ns)
		s->trial_first_ns = ns;
	s->trial_rounds++;
	if (ns < s->trial_ns - (s->trial_ns >> TRIAL_GAIN)) {
		s->trial_ns = ns;
		s->trial_rounds = 0;
	}
	cost->ns[s->choice] = ns;
	if (cheaper(cost) == s->choice ||
	    (!is_young(s, ns) &&
	     (s->trial_rounds >= TRIAL_ROUNDS || is_hopeless(s))))
		end_trial(s);
	else
		new_block(s);
}

/* Enough copies were timed to say what they cost. */
static void end_block(struct nontemporal_cpu *s)
{
	u32 ns = clamp_t(u64, div64_u64(s->block_ns << 14, s->block_bytes),
			 1, S32_MAX);
	struct cost *cost = s->cost;
	u32 *known = &cost->ns[s->choice];
	bool early;

	if (s->trial) {
		trial_round(s, ns);
		return;
	}

	*known = *known ? *known - *known / 4 + ns / 4 : ns;
	new_block(s);
	/* Is there a reason to try the other one before its time? */
	early = cost->ns[!s->choice] && s->clock >= cost->early_trial &&
		(cheaper(cost) != s->choice || is_other_work(cost));
	if (is_steady(s) && (early || s->clock >= cost->next_trial))
		start_trial(s);
}

static bool block_ends(const struct nontemporal_cpu *s)
{
	return s->block_copies >= BLOCK_COPIES && s->block_bytes >= BLOCK_BYTES &&
	       (!s->trial || s->clock - s->block_start >= round_bytes(s));
}

static void add_stretch(struct nontemporal_cpu *s, const struct stretch *part)
{
	u64 ns = part->ns;

	/* Interrupts are few; if outliers are not, something has changed. */
	if (ns > NSEC_PER_SEC ||
	    (s->block_copies >= 8 && ns * s->block_bytes > OUTLIER *
				     s->block_ns * (part->bytes + SEND_BYTES))) {
		s->block_outliers += part->copies;
		if (s->block_outliers > s->block_copies)
			new_block(s);
		return;
	}
	s->block_ns += ns;
	s->block_bytes += part->bytes;
	s->block_copies += part->copies;
	if (block_ends(s))
		end_block(s);
}

/* What it has counts, also if its sender sleeps and another one is timed. */
static void end_stretch(struct nontemporal_cpu *s)
{
	struct stretch *part = &s->stretch;

	if (part->start && part->bytes && part->run == s->run)
		add_stretch(s, part);
	part->start = 0;
}

/* After a pause: what others did meanwhile tells nothing about a choice. */
static void resume(struct nontemporal_cpu *s)
{
	end_stretch(s);
	s->burst = s->clock - s->resumed;
	s->resumed = s->clock;
	s->since = s->clock;
	s->run++;
}

static void check_pause(struct nontemporal_cpu *s)
{
	if (time_after(jiffies, s->seen + PAUSE))
		resume(s);
	s->seen = jiffies;
}

/* A copy whose destination or source is one that is looked up. */
static noinline void nontemporal_look(struct nontemporal_cpu *s,
				      unsigned long to, bool look_to,
				      unsigned long addr, bool look_from,
				      const struct iov_iter *from)
{
	bool moved;

	check_pause(s);
	moved = look_to ? recency_touch(&s->to, to, 0, s->clock) :
			  recency_pass(&s->to, s->clock);
	moved |= look_from ? recency_touch(&s->from, addr, source_space(from),
					   s->clock) :
			     recency_pass(&s->from, s->clock);
	if (moved)
		s->entered = s->clock;
	if (moved || (s->trial && s->clock - s->trial > TRIAL_LONGEST))
		enter(s, &s->costs[s->to.octave - OCTAVE_MIN]
				  [s->from.octave - OCTAVE_MIN]);
}

/* Most copies touch nothing that is looked up, and one line of cache here. */
static void nontemporal_touch(struct nontemporal_cpu *s, unsigned long to,
			      const struct iov_iter *from, size_t bytes)
{
	unsigned long addr = source_addr(from);
	bool look_to, look_from;

	s->clock += bytes;
	look_to = is_sampled(to) && !is_filling(s->to_last, to);
	look_from = is_sampled(addr) && !is_filling(s->from_last, addr);
	s->to_last = to;
	s->from_last = addr;
	if (look_to || look_from || !(++s->copies & ASK_MASK))
		nontemporal_look(s, to, look_to, addr, look_from, from);
}

static unsigned long task_switches(void)
{
	return current->nvcsw + current->nivcsw;
}

/* Whether the send is the one that is being timed on this CPU, if any can be. */
static bool is_timed(const struct nontemporal_cpu *s, const struct iov_iter *from)
{
	return s && s->sender == current && s->stretch.from == from;
}

/* The stretch lasts until now, if nothing came between. */
static bool mark(struct nontemporal_cpu *s)
{
	struct stretch *part = &s->stretch;
	u64 now = local_clock();

	if (!part->start || part->run != s->run || now < part->start ||
	    part->switches != task_switches())
		return false;
	part->ns = now - part->start;
	return true;
}

static void start_stretch(struct nontemporal_cpu *s)
{
	struct stretch *part = &s->stretch;

	part->start = 0;
	if (!is_worth_timing(s))
		return;
	part->switches = task_switches();
	part->run = s->run;
	part->copies = 0;
	part->bytes = 0;
	part->start = local_clock();
}

/* Another copy of the send that is being timed is about to begin. */
static noinline void next_copy(struct nontemporal_cpu *s, size_t bytes)
{
	check_pause(s);
	s->until_timed = min(s->until_timed + s->timed_every - 1,
			     BLOCK_COPIES * TIMED_EVERY);
	if (mark(s) && s->stretch.bytes < STRETCH_BYTES && bytes <= TIMED_MAX)
		return;
	end_stretch(s);
	if (bytes <= TIMED_MAX)
		start_stretch(s);
}

/**
 * nontemporal_begin - a send begins that may have non-temporal copies
 * @from: The source, the same for all of the send
 *
 * Return: true if it is timed: nontemporal_choose() is to be told, and
 * nontemporal_end() to be called.
 */
bool nontemporal_begin(const struct iov_iter *from)
{
	struct nontemporal_cpu *s;
	bool timed;

	preempt_disable();
	s = this_cpu_read(nontemporal_cpu);
	timed = s && in_task() && !s->until_timed && READ_ONCE(have_clock) &&
		!READ_ONCE(nontemporal_cache_bytes) &&
		iov_iter_count(from) >= PAGE_SIZE;
	if (timed) {
		end_stretch(s);
		s->sender = current;
		s->stretch.from = from;
		start_stretch(s);
	}
	preempt_enable();
	return timed;
}

/**
 * nontemporal_choose - whether the next copy is to be a non-temporal one
 * @timed: What nontemporal_begin() said.  If it did, nontemporal_copied() is to be
 *	   called when the copy is done.
 * @to: The destination
 * @from: The source
 * @bytes: How many bytes are to be copied
 *
 * Return: true for a non-temporal copy.
 */
bool nontemporal_choose(bool timed, const void *to, const struct iov_iter *from,
			size_t bytes)
{
	unsigned long fixed = READ_ONCE(nontemporal_cache_bytes);
	struct nontemporal_cpu *s;
	bool yes;

	if (!in_task())
		return false;

	preempt_disable();
	s = this_cpu_read(nontemporal_cpu);
	if (!s) {
		preempt_enable();
		return false;
	}
	bytes = min(bytes, iov_iter_count(from));
	/* Less than a page tells nothing of where the bytes belong. */
	if (bytes >= PAGE_SIZE) {
		nontemporal_touch(s, (unsigned long)to, from, bytes);
		s->until_timed -= !!s->until_timed;
		if (timed && is_timed(s, from)) {
			if (fixed)
				s->sender = NULL;
			else
				next_copy(s, bytes);
		}
	}
	yes = fixed ? guess(s, fixed) : s->choice;
	preempt_enable();
	return yes;
}

/**
 * nontemporal_copied - a copy of a send that is timed is done
 * @from: The source
 * @bytes: How many bytes were copied
 */
void nontemporal_copied(const struct iov_iter *from, size_t bytes)
{
	struct nontemporal_cpu *s;

	preempt_disable();
	s = this_cpu_read(nontemporal_cpu);
	if (is_timed(s, from) && mark(s)) {
		s->stretch.bytes += bytes;
		s->stretch.copies++;
	}
	preempt_enable();
}

/**
 * nontemporal_end - a send that is timed is done
 * @from: The source
 */
void nontemporal_end(const struct iov_iter *from)
{
	struct nontemporal_cpu *s;

	preempt_disable();
	s = this_cpu_read(nontemporal_cpu);
	if (is_timed(s, from)) {
		mark(s);
		end_stretch(s);
		s->sender = NULL;
	}
	preempt_enable();
}

#ifdef copy_to_nontemporal_unfenced
/* One that only counts jiffies stands still most of the time. */
static bool clock_ticks(void)
{
	u64 start;
	int i;

	for (i = 0; i < 4; i++) {
		start = local_clock();
		ndelay(1000);
		if (local_clock() == start)
			return false;
	}
	return true;
}

static void init_cpu(int cpu)
{
	struct nontemporal_cpu *s;

	s = kvzalloc_node(sizeof(*s), GFP_KERNEL, cpu_to_node(cpu));
	if (!s)
		return;
	s->to.bytes = FIRST_GUESS;
	s->to.octave = ilog2(FIRST_GUESS);
	s->from.bytes = FIRST_GUESS;
	s->from.octave = ilog2(FIRST_GUESS);
	s->cost = &s->costs[s->to.octave - OCTAVE_MIN]
			   [s->from.octave - OCTAVE_MIN];
	s->burst = U64_MAX;
	time_every(s, 1);
	if (cmpxchg(&per_cpu(nontemporal_cpu, cpu), NULL, s))
		kvfree(s);
}

/**
 * nontemporal_init - get ready, on first use
 *
 * May sleep.  A CPU for which there is no memory copies normally.  Two first
 * users may come here at once.
 */
void nontemporal_init(void)
{
	int cpu;

	WRITE_ONCE(have_clock, clock_ticks());
	for_each_possible_cpu(cpu)
		if (!READ_ONCE(per_cpu(nontemporal_cpu, cpu)))
			init_cpu(cpu);
}
#else
/* There is no such copy on this architecture. */
void nontemporal_init(void)
{
}
#endif
