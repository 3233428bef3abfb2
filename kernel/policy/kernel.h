/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What lib/nontemporal.c uses of a kernel, for a program with one CPU whose clock
 * moves when the test says so.
 */
#ifndef POLICY_KERNEL_H
#define POLICY_KERNEL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define U32_MAX			UINT32_MAX
#define U64_MAX			UINT64_MAX
#define S32_MAX			INT32_MAX
#define NSEC_PER_SEC		1000000000L
#define PAGE_SIZE		4096UL
#define HZ			1000
#define BIT(n)			(1UL << (n))

#define noinline		__attribute__((noinline))
#define __read_mostly
#define DEFINE_PER_CPU_READ_MOSTLY(type, name)	type name
#define this_cpu_read(name)	(name)
#define per_cpu(name, cpu)	(*((void)(cpu), &(name)))
#define for_each_possible_cpu(cpu)	for ((cpu) = 0; (cpu) < 1; (cpu)++)
#define preempt_disable()	do { } while (0)
#define preempt_enable()	do { } while (0)
#define smp_processor_id()	0
#define cpu_to_node(cpu)	0
#define READ_ONCE(x)		(*(volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value)	(*(volatile __typeof__(x) *)&(x) = (value))
#define cmpxchg(at, old, new)	__sync_val_compare_and_swap(at, old, new)

#define min(x, y)		((x) < (y) ? (x) : (y))
#define max(x, y)		((x) > (y) ? (x) : (y))
#define clamp(x, low, high)	min(max(x, low), high)
#define clamp_t(type, x, low, high) \
	clamp((type)(x), (type)(low), (type)(high))

#define ilog2(n)		(63 - __builtin_clzll(n))
#define order_base_2(n)		((n) > 1 ? ilog2((n) - 1) + 1 : 0)
#define div_u64(x, y)		((u64)(x) / (u32)(y))
#define div64_u64(x, y)		((u64)(x) / (u64)(y))
#define div_s64(x, y)		((s64)(x) / (s32)(y))
#define hash_long(value, bits)	(((u64)(value) * 0x61c8864680b583ebULL) >> (64 - (bits)))

#define GFP_KERNEL		0
#define kvfree(p)		free(p)

/* The test's: what the kernel knows of time, of the task and of the cache. */
struct task_struct {
	unsigned long	nvcsw;
	unsigned long	nivcsw;
	void		*mm;
};

struct cacheinfo {
	unsigned int	size;
};

struct cpu_cacheinfo {
	struct cacheinfo	*info_list;
	unsigned int		num_leaves;
};

#define CONFIG_GENERIC_CPU_CACHEINFO 1
#define copy_to_nontemporal_unfenced copy_to_nontemporal_unfenced

extern struct task_struct *current;
extern unsigned long jiffies;
extern bool memory_is_short;

u64 local_clock(void);
void ndelay(unsigned long ns);
bool in_task(void);
struct cpu_cacheinfo *get_cpu_cacheinfo(unsigned int cpu);

#define time_after(a, b)	((long)((b) - (a)) < 0)

static inline void *kvzalloc_node(size_t size, int flags, int node)
{
	(void)flags;
	(void)node;
	return memory_is_short ? NULL : calloc(1, size);
}

/* User memory in one piece is all that the tests send from. */
struct bio_vec {
	void		*bv_page;
	unsigned int	bv_offset;
};

struct kvec {
	void		*iov_base;
};

struct iov_iter {
	size_t			count;
	size_t			iov_offset;
	void			*ubuf;
	const struct kvec	*kvec;
	const struct bio_vec	*bvec;
};

#define iter_is_ubuf(i)		((i)->ubuf != NULL)
#define iter_is_iovec(i)	(false)
#define iter_iov_addr(i)	((i)->ubuf)
#define iov_iter_is_kvec(i)	((i)->kvec != NULL)
#define iov_iter_is_bvec(i)	((i)->bvec != NULL)
#define user_backed_iter(i)	((i)->ubuf != NULL)
#define iov_iter_count(i)	((i)->count)
#define page_to_pfn(page)	((uintptr_t)(page) / PAGE_SIZE)

#endif /* POLICY_KERNEL_H */
