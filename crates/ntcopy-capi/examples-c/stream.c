/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A whole in pieces: 64 MiB, 64 KiB at a time. No single call shows that it is
 * more than the caches hold; the stream does.
 *
 *	cc stream.c $(pkg-config --cflags --libs ntcopy) -o stream
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ntcopy.h>

enum { PIECE_BYTES = 64 << 10, TOTAL_BYTES = 64 << 20 };

static int copy_in_pieces(char *to, const char *from, struct ntcopy_moved *moved)
{
	ntcopy_stream *stream;
	size_t at;
	int error;

	error = ntcopy_stream_known(TOTAL_BYTES, NTCOPY_AUTO, &stream);
	for (at = 0; error == 0 && at < TOTAL_BYTES; at += PIECE_BYTES)
		error = ntcopy_stream_copy_unfenced(stream, to + at, from + at, PIECE_BYTES, NULL);
	/* One fence for all pieces. Until here, no thread may look at the copy. */
	if (error == 0)
		error = ntcopy_stream_finish(stream, moved);
	ntcopy_stream_destroy(stream);
	return error;
}

int main(void)
{
	char *from = malloc(TOTAL_BYTES);
	char *to = malloc(TOTAL_BYTES);
	struct ntcopy_moved moved;
	int error;

	if (!from || !to) {
		fputs("stream: no memory\n", stderr);
		return 1;
	}
	memset(from, 42, TOTAL_BYTES);
	error = copy_in_pieces(to, from, &moved);
	if (error != 0) {
		fprintf(stderr, "stream: %s\n", strerror(-error));
		return 1;
	}
	printf("%" PRIu64 " bytes, %" PRIu64 " of them non-temporally\n", moved.bytes,
	       moved.nontemporal_bytes);
	error = memcmp(to, from, TOTAL_BYTES);
	free(to);
	free(from);
	return error ? 1 : 0;
}
