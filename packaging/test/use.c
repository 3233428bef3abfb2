/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A program of a user who has installed libntcopy-dev: copies, fills, asks.
 */
#include <ntcopy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH ((size_t)3000001)

int main(void)
{
	unsigned char *from = malloc(LENGTH), *to = malloc(LENGTH);
	const char *words;
	size_t at;

	if (!from || !to)
		return 1;
	if (ntcopy_init(&words)) {
		fprintf(stderr, "ntcopy_init: %s\n", words);
		return 1;
	}
	for (at = 0; at < LENGTH; at++)
		from[at] = (unsigned char)(at * 7 + at / 251);
	memset(to, 0, LENGTH);
	if (ntcopy_copy(to, from, LENGTH, NTCOPY_NONTEMPORAL, NULL) || memcmp(to, from, LENGTH)) {
		fprintf(stderr, "the copy differs\n");
		return 1;
	}
	if (ntcopy_fill(to, 0x5a, LENGTH, NTCOPY_DST_NONTEMPORAL, NULL)) {
		fprintf(stderr, "ntcopy_fill failed\n");
		return 1;
	}
	for (at = 0; at < LENGTH; at++) {
		if (to[at] != 0x5a) {
			fprintf(stderr, "byte %zu is not filled\n", at);
			return 1;
		}
	}
	printf("libntcopy %s, header %d.%d.%d, MSG_NTCOPY %#x\n", ntcopy_version(),
	       NTCOPY_VERSION_MAJOR, NTCOPY_VERSION_MINOR, NTCOPY_VERSION_PATCH, MSG_NTCOPY);
	return 0;
}
