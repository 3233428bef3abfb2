/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One piece: a buffer is put away, and the copy is not read soon.
 *
 *	cc copy.c $(pkg-config --cflags --libs ntcopy) -o copy
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ntcopy.h>

int main(void)
{
	const size_t len = 8U << 20;
	unsigned char *page_cache = malloc(len);
	unsigned char *archive = malloc(len);
	const char *message;
	ntcopy_path path;
	int error;

	if (!page_cache || !archive) {
		fputs("copy: no memory\n", stderr);
		return 1;
	}
	/* A mistake in the settings is worth a word, but nothing fails because of it. */
	if (ntcopy_init(&message) != 0)
		fprintf(stderr, "copy: %s\n", message ? message : "settings");

	error = ntcopy_fill(page_cache, 'x', len, NTCOPY_AUTO, &path);
	if (error == 0) {
		printf("filled by %s\n", ntcopy_path_name(path));
		error = ntcopy_copy(archive, page_cache, len, NTCOPY_DST_NONTEMPORAL, &path);
	}
	if (error != 0) {
		fprintf(stderr, "copy: %s\n", strerror(-error));
		return 1;
	}
	printf("copied by %s\n", ntcopy_path_name(path));

	error = memcmp(archive, page_cache, len);
	free(archive);
	free(page_cache);
	return error ? 1 : 0;
}
