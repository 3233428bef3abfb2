// SPDX-License-Identifier: GPL-2.0
/* Playing a scene: in a process of its own, with its sends hinted or not. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scene.h"

/* A scene that takes longer hangs; with every checker on it may take a while. */
#define SCENE_SECONDS	550

const struct mode mode_plain = { "plain", "1", 0, 0 };
const struct mode mode_ignored = { "ignored", "0", MSG_NTCOPY, NTCOPY_MIN_BYTES };
const struct mode mode_obeyed = { "obeyed", "1", MSG_NTCOPY, NTCOPY_FLAGGED };
const struct mode mode_socket = { "socket", "1", 0, NTCOPY_MIN_BYTES };
const struct mode mode_all = { "all", "2", 0, 0 };

static void perform(scene_fn fn, struct scene *scene)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(SCENE_SECONDS);
	opt_in = scene->mode->option && !scene_inject;
	fn(scene);
	close_pair(&scene->pair);
	scene->transcript->finished = true;
	fflush(stdout);
	_exit(0);
}

/*
 * A process of its own: what an earlier scene left in a process, such as the
 * rest of a page to copy into, would show in where a faulting send ends.
 */
void play(scene_fn fn, const struct family *family, const struct mode *mode,
	  __u64 seed, struct outcome *outcome)
{
	struct scene scene = {
		.family = family, .mode = mode, .pair = { .tx = -1, .rx = -1 }, .random = seed,
	};
	struct counts before;
	pid_t pid;

	scene.transcript = mmap(NULL, sizeof(*scene.transcript), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	outcome->transcript = scene.transcript;
	outcome->status = -1;
	if (mode->sysctl && set_mode(mode->sysctl) < 0)
		return;
	before = read_counts();
	fflush(NULL);
	pid = fork();
	if (!pid)
		perform(fn, &scene);
	if (pid < 0 || waitpid(pid, &outcome->status, 0) < 0)
		outcome->status = -1;
	outcome->counts = counts_since(&before);
}

void forget(struct outcome *outcome)
{
	munmap(outcome->transcript, sizeof(*outcome->transcript));
}
