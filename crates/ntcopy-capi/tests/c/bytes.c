/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every call moves exactly the bytes that it was asked to, with every hint. */
#include <stdint.h>
#include <string.h>

#include <ntcopy.h>

#include "check.h"

enum { GUARD = 128, LONGEST = 3 << 20, ROOM = LONGEST + 2 * GUARD };

static const unsigned int hints_of[] = {
	NTCOPY_AUTO, NTCOPY_TEMPORAL, NTCOPY_NONTEMPORAL, NTCOPY_SRC_NONTEMPORAL,
	NTCOPY_DST_NONTEMPORAL, NTCOPY_SRC_TEMPORAL | NTCOPY_DST_NONTEMPORAL,
	NTCOPY_SRC_COLD, NTCOPY_SRC_COLD | NTCOPY_TEMPORAL, NTCOPY_SRC_COLD | NTCOPY_NONTEMPORAL,
};
static const size_t lengths[] = {
	0, 1, 7, 8, 63, 64, 65, 127, 128, 191, 255, 256, 257, 319, 320, 511, 512, 1000, 4095,
	4096, 4097, 16384, 65536 + 13,
};
static const size_t offsets[] = { 0, 1, 8, 31, 63 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static unsigned char *from, *to;
static ntcopy_stream *stream;

/* The four calls that copy, and after them the four that fill. */
static int call(int which, unsigned char *dst, const unsigned char *src, size_t len,
		unsigned int hints, ntcopy_path *path)
{
	switch (which) {
	case 0:
		return ntcopy_copy(dst, src, len, hints, path);
	case 1:
		return ntcopy_copy_unfenced(dst, src, len, hints, path);
	case 2:
		return ntcopy_stream_copy(stream, dst, src, len, path);
	case 3:
		return ntcopy_stream_copy_unfenced(stream, dst, src, len, path);
	case 4:
		return ntcopy_fill(dst, 0x1a5, len, hints, path);
	case 5:
		return ntcopy_fill_unfenced(dst, 0, len, hints, path);
	case 6:
		return ntcopy_stream_fill(stream, dst, 0, len, path);
	default:
		return ntcopy_stream_fill_unfenced(stream, dst, 0x1a5, len, path);
	}
}

static int is_right(int which, const unsigned char *dst, const unsigned char *src, size_t len)
{
	int value = which == 4 || which == 7 ? 0xa5 : 0;
	size_t at;

	if (which < 4)
		return memcmp(dst, src, len) == 0;
	for (at = 0; at < len; at++)
		if (dst[at] != value)
			return 0;
	return 1;
}

static int is_untouched(const unsigned char *start, const unsigned char *end)
{
	for (; start < end; start++)
		if (*start != 0x5c)
			return 0;
	return 1;
}

static void one(int which, size_t to_offset, size_t from_offset, size_t len, unsigned int hints)
{
	unsigned char *dst = to + GUARD / 2 + to_offset;
	const unsigned char *src = from + from_offset;
	ntcopy_path path = UINT32_MAX;

	memset(to, 0x5c, len + 2 * GUARD);
	CHECK_IS(call(which, dst, src, len, hints, &path), 0);
	if (ntcopy_path_is_nontemporal(path))
		ntcopy_fence();
	CHECK(ntcopy_path_name(path) != NULL);
	if (len == 0)
		CHECK_IS(path, 0);
	CHECK(is_right(which, dst, src, len));
	CHECK(is_untouched(to, dst));
	CHECK(is_untouched(dst + len, to + len + 2 * GUARD));
}

int main(int argc, char **argv)
{
	/* Every second offset will do for a slow checker. */
	size_t step = argc > 1 ? 2 : 1;
	size_t length, to_at, from_at, hint, at;
	int which;

	(void)argv;
	from = malloc(ROOM);
	to = malloc(ROOM);
	CHECK(from && to);
	for (at = 0; at < ROOM; at++)
		from[at] = (unsigned char)(at * 7 + (at >> 8));

	for (hint = 0; hint < COUNT(hints_of); hint++) {
		CHECK_IS(ntcopy_stream_known(1U << 30, hints_of[hint], &stream), 0);
		for (which = 0; which < 8; which++) {
			for (length = 0; length < COUNT(lengths); length++)
				for (to_at = 0; to_at < COUNT(offsets); to_at += step)
					for (from_at = 0; from_at < COUNT(offsets); from_at += step)
						one(which, offsets[to_at], offsets[from_at],
						    lengths[length], hints_of[hint]);
			one(which, 3, 5, LONGEST, hints_of[hint]);
		}
		ntcopy_stream_destroy(stream);
	}
	free(to);
	free(from);
	return 0;
}
