/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Unfenced pieces that another thread waits for: the fence goes between the
 * bytes and the word that tells of them. An atomic store alone does not wait for
 * non-temporal ones.
 *
 *	cc -std=c11 -pthread publish.c $(pkg-config --cflags --libs ntcopy) -o publish
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <ntcopy.h>

enum { PIECES = 64, PIECE_BYTES = 4096 };

static unsigned char box[PIECES][PIECE_BYTES];
static atomic_int is_ready;

static void *reader(void *unused)
{
	static unsigned char expected[PIECE_BYTES];
	int piece;

	(void)unused;
	while (!atomic_load_explicit(&is_ready, memory_order_acquire))
		;
	for (piece = 0; piece < PIECES; piece++) {
		memset(expected, piece, sizeof(expected));
		if (memcmp(box[piece], expected, sizeof(expected)) != 0)
			return "a byte was wrong";
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;
	void *complaint = "no answer";
	int piece, error;

	error = pthread_create(&thread, NULL, reader, NULL);
	if (error != 0) {
		fprintf(stderr, "publish: %s\n", strerror(error));
		return 1;
	}
	for (piece = 0; piece < PIECES; piece++) {
		error = ntcopy_fill_unfenced(box[piece], piece, PIECE_BYTES, NTCOPY_NONTEMPORAL,
					     NULL);
		if (error != 0)
			fprintf(stderr, "publish: %s\n", strerror(-error));
	}
	ntcopy_fence();
	atomic_store_explicit(&is_ready, 1, memory_order_release);

	pthread_join(thread, &complaint);
	if (complaint) {
		fprintf(stderr, "publish: %s\n", (const char *)complaint);
		return 1;
	}
	puts("published");
	return 0;
}
