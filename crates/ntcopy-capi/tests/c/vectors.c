/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pieces into pieces. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <ntcopy.h>

#include "check.h"

static unsigned char from[1 << 20], to[1 << 20];
static struct iovec src[NTCOPY_IOV_MAX + 1], dst[NTCOPY_IOV_MAX + 1];
static struct ntcopy_moved moved;

static struct iovec piece(void *start, size_t len)
{
	struct iovec made;

	made.iov_base = start;
	made.iov_len = len;
	return made;
}

/* Cuts memory into count pieces of uneven lengths, some of them empty; says how many bytes. */
static size_t cut(struct iovec *pieces, size_t count, unsigned char *memory, size_t step)
{
	size_t at, used = 0;

	for (at = 0; at < count; at++) {
		size_t len = at % 5 == 3 ? 0 : (at * step) % 1900;

		pieces[at] = piece(memory + used, len);
		used += len;
	}
	return used;
}

static void all_shapes(void)
{
	static const size_t counts[] = { 0, 1, 2, 3, 17, 500 };
	size_t n, m;

	for (n = 0; n < 6; n++) {
		for (m = 0; m < 6; m++) {
			size_t room = cut(dst, counts[n], to, 777);
			size_t there = cut(src, counts[m], from, 1234);
			size_t both = room < there ? room : there;

			memset(to, 0, sizeof(to));
			CHECK_IS(ntcopy_copyv(dst, counts[n], src, counts[m], NTCOPY_NONTEMPORAL,
					      &moved), 0);
			CHECK_IS(moved.bytes, both);
			CHECK(memcmp(to, from, both) == 0);
			CHECK(to[both] == 0);
		}
	}
}

static void errors(void)
{
	dst[0] = piece(to, 100);
	src[0] = piece(from, 100);
	CHECK_IS(ntcopy_copyv(NULL, 0, NULL, 0, NTCOPY_AUTO, &moved), 0);
	CHECK_IS(moved.bytes, 0);
	moved.bytes = 77;
	CHECK_IS(ntcopy_copyv(NULL, 1, src, 1, NTCOPY_AUTO, &moved), -EINVAL);
	CHECK_IS(ntcopy_copyv(dst, 1, NULL, 1, NTCOPY_AUTO, &moved), -EINVAL);
	CHECK_IS(ntcopy_copyv(dst, SIZE_MAX, src, 1, NTCOPY_AUTO, &moved), -EINVAL);
	CHECK_IS(ntcopy_copyv(dst, 1, src, NTCOPY_IOV_MAX + 1, NTCOPY_AUTO, &moved), -EINVAL);
	src[0] = piece(NULL, 1);
	CHECK_IS(ntcopy_copyv(dst, 1, src, 1, NTCOPY_AUTO, &moved), -EINVAL);
	src[0] = piece(from, SIZE_MAX);
	CHECK_IS(ntcopy_copyv(dst, 1, src, 1, NTCOPY_AUTO, &moved), -EOVERFLOW);
	src[0] = src[1] = piece(from, (size_t)PTRDIFF_MAX / 2 + 1);
	CHECK_IS(ntcopy_copyv(dst, 1, src, 2, NTCOPY_AUTO, &moved), -EOVERFLOW);
	/* Overlaps: of a destination with a source, and of two destinations. */
	src[0] = piece(to + 99, 1);
	CHECK_IS(ntcopy_copyv(dst, 1, src, 1, NTCOPY_AUTO, &moved), -EINVAL);
	src[0] = piece(from, 100);
	dst[1] = piece(to + 99, 10);
	CHECK_IS(ntcopy_copyv(dst, 2, src, 1, NTCOPY_AUTO, &moved), -EINVAL);
	CHECK_IS(moved.bytes, 77);
	CHECK_IS(to[0], 0);
}

static void one_source_many_times(void)
{
	size_t at;

	for (at = 0; at < NTCOPY_IOV_MAX; at++) {
		src[at] = piece(from + 64, 100);
		dst[at] = piece(to + 100 * at, 100);
	}
	CHECK_IS(ntcopy_copyv(dst, NTCOPY_IOV_MAX, src, NTCOPY_IOV_MAX, NTCOPY_AUTO, NULL), 0);
	for (at = 0; at < NTCOPY_IOV_MAX; at++)
		CHECK(memcmp(to + 100 * at, from + 64, 100) == 0);
}

int main(void)
{
	size_t at;

	for (at = 0; at < sizeof(from); at++)
		from[at] = (unsigned char)(1 + (at * 7 + (at >> 9)) % 255);
	all_shapes();
	memset(to, 0, sizeof(to));
	errors();
	one_source_many_times();
	return 0;
}
