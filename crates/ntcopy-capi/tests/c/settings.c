/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ntcopy_init() in whatever environment. Prints its message, if there is one,
 * and the path of a copy that is to be non-temporal. The version is the header's.
 */
#include <errno.h>
#include <string.h>

#include <ntcopy.h>

#include "check.h"

int main(void)
{
	static unsigned char from[1 << 16], to[1 << 16];
	const char *message = "not touched", *again;
	char version[32];
	ntcopy_path path;
	int answer = ntcopy_init(&message);

	snprintf(version, sizeof(version), "%d.%d.%d", NTCOPY_VERSION_MAJOR,
		 NTCOPY_VERSION_MINOR, NTCOPY_VERSION_PATCH);
	CHECK(strcmp(version, ntcopy_version()) == 0);
	CHECK(answer == 0 || answer == -EINVAL);
	CHECK((answer == 0) == (message == NULL));
	CHECK_IS(ntcopy_init(NULL), answer);
	CHECK_IS(ntcopy_init(&again), answer);
	CHECK(again == message);

	memset(from, 3, sizeof(from));
	CHECK_IS(ntcopy_copy(to, from, sizeof(to), NTCOPY_NONTEMPORAL, &path), 0);
	CHECK(memcmp(to, from, sizeof(to)) == 0);
	printf("path: %s\n", ntcopy_path_name(path));
	if (message)
		printf("message: %s\n", message);
	return 0;
}
