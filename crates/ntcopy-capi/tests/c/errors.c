/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What can't be meant is an error, touches nothing, and is never undefined. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <ntcopy.h>

#include "check.h"

static unsigned char a[4096], b[4096];
static ntcopy_path path;
static ntcopy_stream *stream;

/* An error of each call that copies: the same arguments, the same answer, no byte written. */
static void copies_answer(int expected, void *dst, const void *src, size_t len)
{
	path = 77;
	CHECK_IS(ntcopy_copy(dst, src, len, NTCOPY_AUTO, &path), expected);
	CHECK_IS(ntcopy_copy_unfenced(dst, src, len, NTCOPY_NONTEMPORAL, &path), expected);
	CHECK_IS(ntcopy_stream_copy(stream, dst, src, len, &path), expected);
	CHECK_IS(ntcopy_stream_copy_unfenced(stream, dst, src, len, &path), expected);
	CHECK_IS(path, expected ? 77 : 0);
	CHECK_IS(ntcopy_copy(dst, src, len, NTCOPY_AUTO, NULL), expected);
	CHECK(a[0] == 1 && a[4095] == 1);
}

static void fills_answer(int expected, void *dst, size_t len)
{
	path = 77;
	CHECK_IS(ntcopy_fill(dst, 9, len, NTCOPY_AUTO, &path), expected);
	CHECK_IS(ntcopy_fill_unfenced(dst, 9, len, NTCOPY_NONTEMPORAL, &path), expected);
	CHECK_IS(ntcopy_stream_fill(stream, dst, 9, len, &path), expected);
	CHECK_IS(ntcopy_stream_fill_unfenced(stream, dst, 9, len, &path), expected);
	CHECK_IS(path, expected ? 77 : 0);
	CHECK_IS(ntcopy_fill(dst, 9, len, NTCOPY_AUTO, NULL), expected);
	CHECK(a[0] == 1 && a[4095] == 1);
}

static void memory(void)
{
	static const size_t huge[] = { SIZE_MAX, SIZE_MAX - 4096, (size_t)PTRDIFF_MAX + 1 };
	size_t at;

	copies_answer(0, NULL, NULL, 0);
	copies_answer(0, a, NULL, 0);
	copies_answer(-EINVAL, NULL, b, 1);
	copies_answer(-EINVAL, a, NULL, 1);
	copies_answer(-EINVAL, NULL, NULL, SIZE_MAX);
	fills_answer(0, NULL, 0);
	fills_answer(-EINVAL, NULL, 4096);
	for (at = 0; at < sizeof(huge) / sizeof(huge[0]); at++) {
		copies_answer(-EOVERFLOW, a, b, huge[at]);
		fills_answer(-EOVERFLOW, a, huge[at]);
	}
	/* Past the end of the address space. */
	copies_answer(-EOVERFLOW, a, (const void *)(UINTPTR_MAX - 100), 200);
	fills_answer(-EOVERFLOW, (void *)(UINTPTR_MAX - 100), 200);
}

static void hints(void)
{
	static const unsigned int bad[] = {
		NTCOPY_SRC_TEMPORAL | NTCOPY_SRC_NONTEMPORAL, NTCOPY_TEMPORAL | NTCOPY_NONTEMPORAL,
		NTCOPY_DST_TEMPORAL | NTCOPY_DST_NONTEMPORAL, 0x20, 0x80000000U, ~0U,
	};
	ntcopy_stream *made;
	struct iovec none;
	size_t at;

	memset(&none, 0, sizeof(none));
	for (at = 0; at < sizeof(bad) / sizeof(bad[0]); at++) {
		CHECK_IS(ntcopy_copy(a, b, 8, bad[at], NULL), -EINVAL);
		CHECK_IS(ntcopy_fill(a, 9, 8, bad[at], NULL), -EINVAL);
		CHECK_IS(ntcopy_copyv(&none, 1, &none, 1, bad[at], NULL), -EINVAL);
		made = (ntcopy_stream *)a;
		CHECK_IS(ntcopy_stream_growing(bad[at], &made), -EINVAL);
		CHECK(made == NULL);
		CHECK_IS(ntcopy_stream_known(5, bad[at], &made), -EINVAL);
		CHECK_IS(ntcopy_send(-1, a, 1, 0, bad[at], NTCOPY_SUPPORT_NONE), -EINVAL);
	}
	CHECK_IS(a[0], 1);
}

static void streams(void)
{
	struct ntcopy_moved moved = { 7, 7 }, again;
	ntcopy_stream *made;

	CHECK_IS(ntcopy_stream_known(5, NTCOPY_AUTO, NULL), -EINVAL);
	CHECK_IS(ntcopy_stream_growing(NTCOPY_AUTO, NULL), -EINVAL);
	CHECK_IS(ntcopy_stream_copy(NULL, a, b, 1, NULL), -EINVAL);
	CHECK_IS(ntcopy_stream_copy_unfenced(NULL, a, b, 1, NULL), -EINVAL);
	CHECK_IS(ntcopy_stream_fill(NULL, a, 1, 1, NULL), -EINVAL);
	CHECK_IS(ntcopy_stream_fill_unfenced(NULL, a, 1, 1, NULL), -EINVAL);
	CHECK_IS(ntcopy_stream_fence(NULL), -EINVAL);
	CHECK_IS(ntcopy_stream_moved(NULL, &moved), -EINVAL);
	CHECK_IS(ntcopy_stream_finish(NULL, &moved), -EINVAL);
	CHECK(moved.bytes == 7 && moved.nontemporal_bytes == 7);
	ntcopy_stream_destroy(NULL);

	CHECK_IS(ntcopy_stream_growing(NTCOPY_NONTEMPORAL, &made), 0);
	CHECK_IS(ntcopy_stream_copy(made, a + 2048, b, 1000, NULL), 0);
	CHECK_IS(ntcopy_stream_fill(made, a + 2048, 1, 1000, NULL), 0);
	CHECK_IS(ntcopy_stream_fence(made), 0);
	CHECK_IS(ntcopy_stream_finish(made, &moved), 0);
	CHECK_IS(moved.bytes, 2000);
	CHECK(moved.nontemporal_bytes <= moved.bytes);
	CHECK_IS(ntcopy_stream_copy(made, a, b, 1, NULL), -EINVAL);
	CHECK_IS(ntcopy_stream_fill(made, a, 9, 1, NULL), -EINVAL);
	CHECK_IS(ntcopy_stream_fence(made), -EINVAL);
	CHECK_IS(ntcopy_stream_finish(made, &again), 0);
	CHECK(again.bytes == moved.bytes && again.nontemporal_bytes == moved.nontemporal_bytes);
	CHECK_IS(ntcopy_stream_moved(made, NULL), 0);
	CHECK_IS(ntcopy_stream_moved(made, &again), 0);
	CHECK_IS(again.bytes, 2000);
	ntcopy_stream_destroy(made);
}

int main(void)
{
	memset(a, 1, sizeof(a));
	CHECK_IS(ntcopy_stream_growing(NTCOPY_NONTEMPORAL, &stream), 0);
	memory();
	hints();
	streams();
	ntcopy_stream_destroy(stream);
	CHECK(ntcopy_path_name(UINT32_MAX) == NULL);
	CHECK_IS(ntcopy_path_is_nontemporal(UINT32_MAX), 0);
	CHECK(strcmp(ntcopy_path_name(0), "libc") == 0);
	return 0;
}
