/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the kernel counted, for the examples in C. */
#ifndef EXAMPLES_COUNTERS_H
#define EXAMPLES_COUNTERS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ntcopy/uapi.h>

enum { COUNTERS = 3 };

static const char *const counter_names[COUNTERS] = {
	NTCOPY_STAT_BYTES, NTCOPY_STAT_HINTED, NTCOPY_STAT_BYPASSED,
};

struct counters {
	bool known;
	uint64_t bytes[COUNTERS];
};

/* /proc/net/netstat has a line of names, and below it one of values. */
static struct counters read_counters(void)
{
	static char name_line[16384], value_line[16384];
	char *name, *value, *in_names, *in_values;
	struct counters all = { 0 };
	FILE *file = fopen(NTCOPY_STAT_PATH, "r");

	if (!file)
		return all;
	if (fgets(name_line, sizeof(name_line), file) &&
	    fgets(value_line, sizeof(value_line), file)) {
		name = strtok_r(name_line, " \n", &in_names);
		value = strtok_r(value_line, " \n", &in_values);
		for (; name && value; name = strtok_r(NULL, " \n", &in_names),
				      value = strtok_r(NULL, " \n", &in_values))
			for (int i = 0; i < COUNTERS; i++)
				if (!strcmp(name, counter_names[i])) {
					all.bytes[i] = strtoull(value, NULL, 10);
					all.known = true;
				}
	}
	fclose(file);
	return all;
}

/* What was added since an earlier reading; nothing on a kernel that does not count. */
static void print_added(const struct counters *before, const struct counters *after)
{
	for (int i = 0; after->known && i < COUNTERS; i++)
		printf("%s %" PRIu64 "\n", counter_names[i], after->bytes[i] - before->bytes[i]);
}

#endif
