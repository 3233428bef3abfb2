/* SPDX-License-Identifier: GPL-2.0 */
/* Small, transparent huge and hugetlb pages, and the sysctls about them. */
#ifndef PAGE_AREA_H
#define PAGE_AREA_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CLEAR_PATH	"/proc/sys/vm/nontemporal_clear_bytes"
#define COPY_PATH	"/proc/sys/vm/nontemporal_copy_bytes"
#define POOL_PATH	"/proc/sys/vm/nr_hugepages"

#define PAGE		4096UL
#define HUGE		(2UL << 20)
#define HUGE_PAGES	(HUGE / PAGE)
/* Pages on each side of the fault that are cleared or copied temporally. */
#define RADIUS		2UL

/* Reads a file into text; its length, or a negative errno. */
static inline int read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY), len;

	if (fd < 0)
		return -errno;
	len = read(fd, text, size - 1);
	if (len < 0)
		len = -errno;
	else
		text[len] = '\0';
	close(fd);
	return len;
}

static inline int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static inline int write_number(const char *path, unsigned long number)
{
	char text[32];

	snprintf(text, sizeof(text), "%lu", number);
	return write_text(path, text);
}

static inline unsigned long read_number(const char *path)
{
	char text[64];

	return read_file(path, text, sizeof(text)) < 0 ? 0 : strtoul(text, NULL, 10);
}

/* A counter of /proc/vmstat; -1 if the kernel has no such line. */
static inline long event_count(const char *name)
{
	FILE *file = fopen("/proc/vmstat", "r");
	char line[128];
	long value = -1;
	size_t len = strlen(name);

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, len) && line[len] == ' ')
			value = atol(line + len);
	if (file)
		fclose(file);
	return value;
}

/* User-mode Linux has no huge pages, and obeys the sysctls page by page. */
static inline bool is_uml(void)
{
	char text[512];

	return read_file("/proc/cpuinfo", text, sizeof(text)) > 0 &&
	       strstr(text, "User Mode Linux");
}

enum kind { SMALL, THP, HUGETLB };

/* One mapping of HUGE bytes, aligned to that. */
struct area {
	char *map, *start;
	size_t map_bytes;
};

static inline bool area_map(struct area *area, enum kind kind)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;

	area->map_bytes = kind == HUGETLB ? HUGE : 2 * HUGE;
	if (kind == HUGETLB)
		flags |= MAP_HUGETLB | (21 << MAP_HUGE_SHIFT);
	area->map = mmap(NULL, area->map_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (area->map == MAP_FAILED)
		return false;
	area->start = (char *)(((uintptr_t)area->map + HUGE - 1) & ~(HUGE - 1));
	if (kind == SMALL)
		madvise(area->map, area->map_bytes, MADV_NOHUGEPAGE);
	return kind != THP || !madvise(area->map, area->map_bytes, MADV_HUGEPAGE);
}

static inline void area_unmap(struct area *area)
{
	munmap(area->map, area->map_bytes);
}

/* What the page at an address is made of, by /proc/self/smaps: bytes of THP. */
static inline unsigned long thp_bytes(const char *at)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	unsigned long from, to, kib = 0;
	char line[256];
	bool here = false;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (unsigned long)at >= from && (unsigned long)at < to;
		else if (here && sscanf(line, "AnonHugePages: %lu", &kib) == 1)
			break;
	}
	if (file)
		fclose(file);
	return kib << 10;
}

static inline bool have_kind(enum kind kind)
{
	struct area area;
	bool have;

	if (kind == SMALL)
		return true;
	have = area_map(&area, kind);
	if (have && kind == THP) {
		area.start[0] = 1;
		have = thp_bytes(area.start) >= HUGE;
	}
	if (area.map != MAP_FAILED)
		area_unmap(&area);
	return have;
}

/* Leaves pages full of ones where the next mappings are likely to find them. */
static inline void soil(enum kind kind)
{
	struct area area[3];
	int i, n = kind == HUGETLB ? 2 : 3;

	for (i = 0; i < n; i++)
		if (area_map(&area[i], kind))
			memset(area[i].start, 0xff, HUGE);
	for (i = 0; i < n; i++)
		if (area[i].map != MAP_FAILED)
			area_unmap(&area[i]);
}

static inline unsigned char pattern(size_t at)
{
	return at * 7 + at / 64 + at / PAGE * 13 + 1;
}

/* The first byte that is not as it should be, `except` left out; -1 if none. */
static inline long first_wrong(const char *start, bool zeros, size_t except)
{
	size_t at;

	for (at = 0; at < HUGE; at++)
		if (at != except &&
		    (unsigned char)start[at] != (zeros ? 0 : pattern(at)))
			return at;
	return -1;
}

/* Pages of a huge one that a fault in page `fault` leaves to the NT stores. */
static inline long far_pages(size_t fault)
{
	size_t first = fault < RADIUS ? 0 : fault - RADIUS;
	size_t last = fault + RADIUS >= HUGE_PAGES ? HUGE_PAGES - 1 : fault + RADIUS;

	return HUGE_PAGES - (last - first + 1);
}

static const size_t faults[] = { 0, 1, 2, 3, 255, 256, 509, 510, 511 };

/* Both sysctls and the pool of huge pages, put back afterwards. */
struct settings {
	unsigned long clear, copy, pool;
};

static inline bool settings_save(struct settings *settings)
{
	if (access(CLEAR_PATH, W_OK) || access(COPY_PATH, W_OK))
		return false;
	settings->clear = read_number(CLEAR_PATH);
	settings->copy = read_number(COPY_PATH);
	settings->pool = read_number(POOL_PATH);
	/* A page to copy from, one to copy to, and one that is not in use. */
	if (settings->pool < 3)
		write_number(POOL_PATH, 3);
	return true;
}

static inline void settings_restore(const struct settings *settings)
{
	write_number(CLEAR_PATH, settings->clear);
	write_number(COPY_PATH, settings->copy);
	if (read_number(POOL_PATH) != settings->pool)
		write_number(POOL_PATH, settings->pool);
}

#endif
