// SPDX-License-Identifier: GPL-2.0
/*
 * Which families copy through the iterator, and so honour the hint: the rows of
 * a table in Markdown, from what the kernel counted.  Not a test: it expects
 * nothing, it looks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "scene.h"

#define SENDS	3
#define LENGTH	60000

static void scene_sends(struct scene *scene)
{
	unsigned char *data = pages(LENGTH / 4096 + 1);
	int i;

	fill(data, LENGTH, 71);
	scene_open(scene);
	for (i = 0; i < SENDS; i++)
		scene_both(scene, data, LENGTH);
}

/* Through a pipe, into which the bytes were written before. */
static void scene_splices(struct scene *scene)
{
	unsigned char *data = pages(LENGTH / 4096 + 1);
	int ends[2], i;

	fill(data, LENGTH, 73);
	scene_open(scene);
	if (scene->family->head_len)
		return;		/* a pipe's bytes are not a packet with its head */
	if (scene->mode->flag && set_hint(scene->pair.tx, NTCOPY_MIN_BYTES) < 0)
		fatal(scene, "SO_NTCOPY");
	for (i = 0; i < SENDS; i++) {
		long ret;

		if (pipe(ends) < 0 || write(ends[1], data, LENGTH) != LENGTH)
			fatal(scene, "a pipe");
		ret = splice(ends[0], NULL, scene->pair.tx, NULL, LENGTH, 0);
		scene_expect(scene, data, scene_account(scene, "splice", LENGTH, ret));
		close(ends[0]);
		close(ends[1]);
	}
}

static void print_cell(const struct outcome *outcome)
{
	if (!outcome->transcript->accepted)
		printf("takes none");
	else
		printf("%lld of %lld bytes", outcome->counts.bypassed, outcome->counts.hinted);
	if (outcome->transcript->wrong)
		printf(", **and wrong bytes arrived**");
}

static const char *verdict(const struct family *family, const struct outcome *sends)
{
	if (sends->counts.bypassed)
		return "yes";
	return family->reads ? "no, the kernel reads the copy" : "no";
}

static void print_row(const struct family *family)
{
	struct outcome sends, splices;

	play(scene_sends, family, &mode_obeyed, 1, &sends);
	play(scene_splices, family, &mode_obeyed, 1, &splices);
	if (sends.transcript->unavailable) {
		printf("| %s | not in this kernel: %s | | |\n", family->name,
		       strerror(sends.transcript->unavailable));
		return;
	}
	printf("| %s | %s | ", family->name, verdict(family, &sends));
	print_cell(&sends);
	printf(" | ");
	print_cell(&splices);
	printf(" |\n");
	forget(&sends);
	forget(&splices);
}

int main(void)
{
	struct utsname name;
	size_t i;

	if (!kernel_has_ntcopy()) {
		fprintf(stderr, "families: this kernel has no MSG_NTCOPY\n");
		return 4;
	}
	if (!own_namespace()) {
		fprintf(stderr, "families: a network namespace of its own takes root\n");
		return 4;
	}
	uname(&name);
	printf("## Linux %s\n\n", name.release);
	printf("| Family | Honours the hint? | %d sends of %d bytes ", SENDS, LENGTH);
	printf("| %d splices of as many |\n", SENDS);
	printf("|---|---|---|---|\n");
	for (i = 0; i < all_families_count; i++)
		print_row(all_families[i]);
	return 0;
}
