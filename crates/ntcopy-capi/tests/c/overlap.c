/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where both sides overlap, every copy of one piece is memmove(). */
#include <stdint.h>
#include <string.h>

#include <ntcopy.h>

#include "check.h"

enum { ROOM = 80000, LEN = 40000, MIDDLE = 20000 };

static unsigned char expected[ROOM], got[ROOM];

static void start(void)
{
	size_t at;

	for (at = 0; at < ROOM; at++)
		expected[at] = got[at] = (unsigned char)(at * 11 + (at >> 7));
}

int main(void)
{
	static const int distances[] = {
		0, 1, -1, 8, -8, 63, -64, 4096, -4096, 19999, -20000, LEN - 1, -MIDDLE, LEN,
	};
	ntcopy_stream *stream;
	ntcopy_path path;
	size_t at;

	CHECK_IS(ntcopy_stream_known(1U << 30, NTCOPY_NONTEMPORAL, &stream), 0);
	for (at = 0; at < sizeof(distances) / sizeof(distances[0]); at++) {
		unsigned char *to = got + MIDDLE + (distances[at] == LEN ? 0 : distances[at]);
		const unsigned char *from = got + MIDDLE;
		int which;

		/* They are as far apart as they are long: the first distance without an overlap. */
		if (distances[at] == LEN) {
			from = got;
			to = got + LEN;
		} else if (distances[at] == LEN - 1) {
			from = got;
			to = got + LEN - 1;
		}
		for (which = 0; which < 4; which++) {
			start();
			memmove(expected + (to - got), expected + (from - got), LEN);
			if (which == 0)
				CHECK_IS(ntcopy_copy(to, from, LEN, NTCOPY_NONTEMPORAL, &path), 0);
			else if (which == 1)
				CHECK_IS(ntcopy_copy_unfenced(to, from, LEN, NTCOPY_NONTEMPORAL,
							      &path), 0);
			else if (which == 2)
				CHECK_IS(ntcopy_stream_copy(stream, to, from, LEN, &path), 0);
			else
				CHECK_IS(ntcopy_stream_copy_unfenced(stream, to, from, LEN, &path),
					 0);
			ntcopy_fence();
			if (distances[at] != LEN)
				CHECK_IS(path, 0);
			CHECK(memcmp(got, expected, ROOM) == 0);
		}
	}
	ntcopy_stream_destroy(stream);
	return 0;
}
