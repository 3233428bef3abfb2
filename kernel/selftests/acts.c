// SPDX-License-Identifier: GPL-2.0
/*
 * Random send programs.  All that they do follows from the scene's seed, and
 * all that they note is the same on every kernel that keeps its promises: what
 * is up to timing is not noted.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acts.h"

#define SOURCE_PAGES	512
#define MOST_ACTS	12
#define SEGMENTS	40

struct source {
	unsigned char *data, *flat;
	size_t len;
};

/* Short ones, ones about a page long, and a few that are long. */
static size_t any_length(struct scene *scene)
{
	switch (any(scene, 8)) {
	case 0:
	case 1:
		return 1 + any(scene, 300);
	case 2:
	case 3:
		return 4096 * (1 + any(scene, 16)) - 2 + any(scene, 5);
	case 4:
		return scene_max(scene, 1 + any(scene, 1500000));
	default:
		return 1 + any(scene, 60000);
	}
}

static size_t some_length(struct scene *scene)
{
	return scene_max(scene, any_length(scene));
}

static const unsigned char *somewhere(struct scene *scene, const struct source *source,
				      size_t len)
{
	return source->data + any(scene, source->len - len);
}

static int some_flags(struct scene *scene)
{
	static const int flags[] = { 0, 0, 0, 0, MSG_DONTROUTE, MSG_EOR, MSG_CONFIRM };

	/* What a flag does to a cipher's or a hash's state is not ours to try. */
	if (scene->family->traits & OPAQUE)
		return 0;
	return flags[any(scene, ARRAY_SIZE(flags))];
}

static void act_send(struct scene *scene, struct source *source)
{
	size_t len = some_length(scene);
	const unsigned char *data = somewhere(scene, source, len);

	scene_expect(scene, data, scene_send(scene, data, len, some_flags(scene)));
}

static void act_segments(struct scene *scene, struct source *source)
{
	size_t count = 1 + any(scene, SEGMENTS), most = scene_max(scene, 100000), used = 0, i;
	struct iovec iov[SEGMENTS];

	for (i = 0; i < count; i++) {
		size_t len = any(scene, 4) ? any(scene, 1 + most / count) : 0;

		iov[i].iov_base = (void *)somewhere(scene, source, len);
		iov[i].iov_len = len;
		memcpy(source->flat + used, iov[i].iov_base, len);
		used += len;
	}
	if (used)
		scene_expect(scene, source->flat, scene_sendv(scene, iov, count, 0));
}

/* A send that runs into a page which is not there. */
static void act_fault(struct scene *scene, struct source *source)
{
	size_t count = 2 + any(scene, 40), hole = any(scene, count), offset = any(scene, 4096);
	unsigned char *data = pages(count);
	size_t len = scene_max(scene, count * 4096 - offset);
	long ret, next;

	/* What faults in a vsock record is left in front of the next, hint or no hint. */
	if (scene->family->traits & OPAQUE || scene->family == &vsock_seqpacket)
		return;
	fill(data, count * 4096, any(scene, 1000));
	make_hole(data + hole * 4096);
	ret = scene_send(scene, data + offset, len, 0);
	/* What it took may be kept back until a send is whole. */
	next = scene_send(scene, source->data, 4000, 0);
	scene_expect(scene, data + offset, ret);
	scene_expect(scene, source->data, next);
	munmap(data, (count + 1) * 4096);
}

static void act_option(struct scene *scene, struct source *source)
{
	static const int values[] = { 0, 1, NTCOPY_MIN_BYTES, 30000, NTCOPY_FLAGGED };
	int value = values[any(scene, ARRAY_SIZE(values))], ret;

	(void)source;
	ret = set_hint(scene->pair.tx, value);
	note(scene, "option %d: %d", value, ret);
}

/* Several sends before the first receive. */
static void act_burst(struct scene *scene, struct source *source)
{
	size_t used = 0, i, sends = 2 + any(scene, 6), len;
	long ret;

	if (scene->family->traits & OPAQUE)
		return;
	for (i = 0; i < sends; i++) {
		len = scene_max(scene, 1 + any(scene, 30000));
		memcpy(source->flat + used, somewhere(scene, source, len), len);
		ret = scene_send(scene, source->flat + used, len, 0);
		used += ret > 0 ? ret : 0;
	}
	if (used)
		note(scene, "got %zu", scene_receive(scene, source->flat, used));
}

static void act_pipe(struct scene *scene, struct source *source)
{
	size_t len = 1 + any(scene, 60000);
	const unsigned char *data = somewhere(scene, source, len);
	struct iovec iov = { (void *)data, len };
	bool by_reference = any(scene, 2);
	int ends[2];
	long ret;

	if (scene->family->head_len || scene->family->traits & OPAQUE)
		return;
	if (pipe(ends) < 0)
		fatal(scene, "pipe");
	ret = by_reference ? vmsplice(ends[1], &iov, 1, SPLICE_F_NONBLOCK)
			   : write(ends[1], data, len);
	if (ret > 0) {
		ret = splice(ends[0], NULL, scene->pair.tx, NULL, ret, 0);
		scene_expect(scene, data, scene_account(scene, "splice", len, ret));
	}
	close(ends[0]);
	close(ends[1]);
}

/* A send that finds the socket full. */
static void act_full(struct scene *scene, struct source *source)
{
	size_t len = scene_max(scene, MIB), used = 0;
	int size = 200000;
	long ret;

	if (scene->family->domain != AF_UNIX)
		return;
	setsockopt(scene->pair.tx, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	do {
		memcpy(source->flat + used, source->data + used, len);
		ret = scene_send(scene, source->flat + used, len, MSG_DONTWAIT);
		used += ret > 0 ? ret : 0;
	} while (ret > 0 && used + len <= source->len);
	if (used)
		note(scene, "got %zu", scene_receive(scene, source->flat, used));
	set_buffers(scene->pair.tx);
}

typedef void (*act_fn)(struct scene *scene, struct source *source);

static const act_fn acts[] = {
	act_send, act_send, act_send, act_segments, act_fault, act_option, act_burst, act_pipe,
	act_full,
};

/*
 * The receiving end is closed by another process while sends go on.  How many go
 * well is up to timing; that they end as they should is not.
 */
static void closed_meanwhile(struct scene *scene, struct source *source)
{
	size_t len = scene_max(scene, 100000);
	int i, delay = any(scene, 5), status;
	pid_t pid;
	long ret = 0;

	pid = fork();
	if (pid < 0)
		fatal(scene, "fork");
	if (!pid) {
		poll(NULL, 0, delay);
		_exit(0);
	}
	if (scene->pair.rx != scene->pair.tx)
		close(scene->pair.rx);
	scene->pair.rx = scene->pair.tx;
	for (i = 0; i < 200 && ret >= 0; i++) {
		ret = send(scene->pair.tx, source->data, len,
			   scene->mode->flag | MSG_NOSIGNAL | MSG_DONTWAIT);
		scene->transcript->accepted += ret > 0 ? ret : 0;
		if (ret < 0 && errno == EAGAIN) {
			poll(NULL, 0, 1);
			ret = 0;
		}
	}
	if (waitpid(pid, &status, 0) < 0)
		fatal(scene, "waitpid");
	note(scene, "the receiver is gone");
	if (ret < 0 && errno != EPIPE && errno != ECONNRESET && errno != ECONNREFUSED &&
	    errno != ENOTCONN && errno != ESHUTDOWN)
		note(scene, "and the sender is told: %s", strerror(errno));
	scene->transcript->uneven = true;
}

void scene_random(struct scene *scene)
{
	struct source source = { pages(SOURCE_PAGES), pages(SOURCE_PAGES), SOURCE_PAGES * 4096UL };
	size_t count = 1 + any(scene, MOST_ACTS), i;

	/* A splice has no flag that keeps it quiet when the peer is gone. */
	signal(SIGPIPE, SIG_IGN);
	fill(source.data, source.len, any(scene, 1000));
	scene_open(scene);
	for (i = 0; i < count; i++)
		acts[any(scene, ARRAY_SIZE(acts))](scene, &source);
	if (!any(scene, 4) && !(scene->family->traits & OPAQUE))
		closed_meanwhile(scene, &source);
	note(scene, "done");
}
