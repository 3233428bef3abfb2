// SPDX-License-Identifier: GPL-2.0
/* What scenes are made of: sends and receives that go into the transcript. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scene.h"

#define FNV_PRIME	0x100000001b3ULL

/* How long what was accepted may take to arrive, and how often to wait so long. */
#define ARRIVAL_MS	7000
#define ARRIVAL_WAITS	3

void note(struct scene *scene, const char *format, ...)
{
	struct transcript *transcript = scene->transcript;
	char line[256];
	va_list args;
	int len, i;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (len > (int)sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	line[len] = 0;
	for (i = 0; i < len; i++)
		transcript->hash = (transcript->hash ^ (unsigned char)line[i]) * FNV_PRIME;
	transcript->lines++;
	if (transcript->used + len < sizeof(transcript->text)) {
		memcpy(transcript->text + transcript->used, line, len + 1);
		transcript->used += len;
	}
}

/* For what is no part of a scene, but has to work. */
void fatal(struct scene *scene, const char *what)
{
	note(scene, "%s: %s", what, strerror(errno));
	_exit(1);
}

/* A number below the given one; the same ones in every playing. */
__u64 any(struct scene *scene, __u64 below)
{
	__u64 x;

	scene->random += 0x9e3779b97f4a7c15ULL;
	x = scene->random;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return (x ^ (x >> 31)) % below;
}

/* Data that tells where it belongs, eight bytes at a time. */
void fill(unsigned char *data, size_t len, __u64 seed)
{
	__u64 word, i;

	for (i = 0; i < len; i += 8) {
		word = (i + seed * 0x9e3779b97f4a7c15ULL + 1) * 0xbf58476d1ce4e5b9ULL;
		word ^= word >> 29;
		memcpy(data + i, &word, len - i < 8 ? len - i : 8);
	}
}

/*
 * Takes a page away.  By a file that ends before it: an address where nothing
 * is mapped would be given to the next mapping, and some kernels copy from
 * pages that are protected.
 */
void make_hole(unsigned char *page)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("hole", MFD_CLOEXEC);
	if (mmap(page, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) ==
	    MAP_FAILED)
		abort();
}

/* Whole pages, and behind them one that is not there. */
unsigned char *pages(size_t count)
{
	size_t page = sysconf(_SC_PAGESIZE);
	unsigned char *data = mmap(NULL, (count + 1) * page, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (data == MAP_FAILED)
		abort();
	make_hole(data + count * page);
	return data;
}

bool scene_inject;

/*
 * Lets this task's calls fail, or not.  What turns it off is opened before: where
 * every allocation fails, no file can be opened.  The write may itself be made to
 * fail, as any copy from a user.
 */
static void inject(bool on)
{
	static int fd;
	int saved = errno;

	if (!scene_inject)
		return;
	if (on)
		fd = open("/proc/thread-self/make-it-fail", O_WRONLY | O_CLOEXEC);
	while (pwrite(fd, on ? "1" : "0", 1, 0) < 0 && !on && errno == EFAULT)
		;
	if (!on)
		close(fd);
	errno = saved;
}

/* Where calls fail, too, it takes the option, which needs no memory. */
static int opt_in_under_faults(struct scene *scene)
{
	int ret;

	do {
		inject(true);
		ret = set_hint(scene->pair.tx, scene->mode->option);
		inject(false);
	} while (ret < 0 && scene_inject && errno == EFAULT);
	return ret;
}

/* Opens the family's pair of sockets, hinted as the mode says. */
void scene_open(struct scene *scene)
{
	int ret;

	ret = scene->family->open(scene->family, &scene->pair);
	if (ret < 0) {
		scene->transcript->unavailable = -ret;
		_exit(0);
	}
	if (scene->mode->option && opt_in_under_faults(scene) < 0)
		fatal(scene, "SO_NTCOPY");
}

void scene_close(struct scene *scene)
{
	close_pair(&scene->pair);
}

/* What goes past the caches of a send that was accepted whole. */
static void account_pieces(struct scene *scene, const struct iovec *iov, size_t count,
			   long ret)
{
	bool is_long = false;
	long len = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		len += iov[i].iov_len;
		is_long |= iov[i].iov_len >= 4 * PAGE;
	}
	scene->transcript->long_piece |= ret == len && is_long;
}

/* Notes what a send returned. */
long scene_account(struct scene *scene, const char *call, size_t len, long ret)
{
	if (ret >= 0)
		note(scene, "%s %zu: %ld", call, len, ret);
	else
		note(scene, "%s %zu: %s", call, len, strerror(errno));
	if (ret > 0) {
		scene->transcript->accepted += ret;
		scene->transcript->in_pages += len < PAGE ? 0 : ret;
	}
	return ret;
}

/* Return: the bytes of the caller's that were accepted, or -1. */
long scene_sendv(struct scene *scene, const struct iovec *iov, size_t count, int flags)
{
	const struct family *family = scene->family;
	struct iovec all[1024 + 1];
	struct msghdr msg = { .msg_iov = all + !family->head_len, .msg_iovlen = count };
	size_t len = 0, i;
	long ret;

	all[0].iov_base = (void *)family->head;
	all[0].iov_len = family->head_len;
	memcpy(all + 1, iov, count * sizeof(*iov));
	for (i = 0; i < count; i++)
		len += iov[i].iov_len;
	if (family->head_len)
		msg.msg_iovlen++;
	if (scene->pair.to_len) {
		msg.msg_name = &scene->pair.to;
		msg.msg_namelen = scene->pair.to_len;
	}
	inject(true);
	ret = sendmsg(scene->pair.tx, &msg, flags | MSG_NOSIGNAL | scene->mode->flag);
	inject(false);
	scene_account(scene, "send", len, ret);
	if (ret > 0)
		account_pieces(scene, msg.msg_iov, msg.msg_iovlen, ret);
	return ret < 0 ? ret : ret - (long)family->head_len;
}

long scene_send(struct scene *scene, const void *data, size_t len, int flags)
{
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };

	return scene_sendv(scene, &iov, 1, flags);
}

static unsigned char *receive_buffer(void)
{
	static unsigned char *buffer;

	if (!buffer)
		buffer = pages(MIB / sysconf(_SC_PAGESIZE));
	return buffer;
}

static size_t first_difference(const unsigned char *a, const unsigned char *b, size_t len)
{
	size_t i;

	for (i = 0; i < len && a[i] == b[i]; i++)
		;
	return i;
}

/* One receive; less what stands in front of the payload. */
static ssize_t receive_once(struct scene *scene, size_t want, unsigned char **payload)
{
	struct pollfd poll_fd = { .fd = scene->pair.rx, .events = POLLIN };
	size_t skip = scene->family->skip;
	unsigned char *buffer = receive_buffer();
	ssize_t ret;
	int i;

	/*
	 * More than one wait: a machine that stood still meanwhile finds the first
	 * one over.  What hashes has its result at once, but nothing for poll().
	 */
	if (scene->family->traits & RECORDS || want + skip > MIB)
		want = MIB - skip;
	for (i = 0; i <= ARRIVAL_WAITS; i++) {
		if (!(scene->family->traits & OPAQUE))
			poll(&poll_fd, 1, ARRIVAL_MS);
		ret = recv(scene->pair.rx, buffer, want + skip, MSG_DONTWAIT);
		/* Readable, but not the whole record: it is on its way. */
		if (ret >= 0 || errno != EAGAIN || scene->family->traits & OPAQUE)
			break;
		poll(NULL, 0, 10);
	}
	*payload = buffer + skip;
	return ret < (ssize_t)skip ? ret : ret - (ssize_t)skip;
}

/* Where records may get lost, those that did not are no longer what comes next. */
static size_t take_what_is_left(struct scene *scene, size_t len)
{
	while (recv(scene->pair.rx, receive_buffer(), MIB, MSG_DONTWAIT) >= 0)
		;
	return len;
}

/* Receives until there are len bytes.  Return: how many are as they should be. */
size_t scene_receive(struct scene *scene, const unsigned char *data, size_t len)
{
	unsigned char *payload;
	size_t done = 0, good;
	ssize_t ret;

	if (scene->stalled || (scene_inject && scene->family->traits & LOSSY))
		return take_what_is_left(scene, len);
	while (done < len) {
		ret = receive_once(scene, len - done, &payload);
		if (ret <= 0) {
			note(scene, "after %zu bytes: %s", done,
			     ret ? strerror(errno) : "nothing more");
			/*
			 * An allocation that fails while it sends can hold MPTCP up for
			 * longer than anybody waits, hinted or not.  What comes then is
			 * no longer what is looked for.
			 */
			scene->stalled = scene_inject;
			break;
		}
		if (scene->family->traits & RECORDS)
			note(scene, "record of %zd", ret);
		if ((size_t)ret > len - done) {
			note(scene, "too much: %zd of %zu", ret, len - done);
			scene->transcript->wrong = true;
			break;
		}
		good = first_difference(payload, data + done, ret);
		if (good < (size_t)ret) {
			note(scene, "byte %zu is %#x, not %#x", done + good, payload[good],
			     data[done + good]);
			scene->transcript->wrong = true;
			return done + good;
		}
		done += ret;
	}
	return done;
}

static void note_opaque(struct scene *scene)
{
	unsigned char *payload;
	__u64 hash = 0;
	ssize_t ret, i;

	ret = receive_once(scene, MIB, &payload);
	for (i = 0; i < ret; i++)
		hash = (hash ^ payload[i]) * FNV_PRIME;
	note(scene, "result of %zd bytes: %llx", ret, (unsigned long long)hash);
}

/* What a send of data accepted is received, and is what was sent. */
void scene_expect(struct scene *scene, const unsigned char *data, long len)
{
	if (scene->family->traits & OPAQUE) {
		if (len >= 0)
			note_opaque(scene);
		return;
	}
	/* From here on nothing is where it belongs, hinted or not. */
	if (len < 0 && scene_inject && scene->family->traits & TEARS)
		scene->stalled = true;
	/* A line in any case, so that those of two runs lie side by side. */
	note(scene, "got %zu", len > 0 ? scene_receive(scene, data, len) : 0);
}

void scene_both(struct scene *scene, const unsigned char *data, size_t len)
{
	scene_expect(scene, data, scene_send(scene, data, len, 0));
}

/* A send of more than the socket holds, received at the same time. */
void scene_stream(struct scene *scene, const unsigned char *data, size_t len)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		fatal(scene, "fork");
	if (!pid) {
		size_t got = scene_receive(scene, data, len);

		_exit(got == len ? 0 : 1);
	}
	scene_send(scene, data, len, 0);
	shutdown(scene->pair.tx, SHUT_WR);
	if (waitpid(pid, &status, 0) < 0)
		fatal(scene, "waitpid");
	note(scene, "stream of %zu: status %d", len, status);
}

size_t scene_max(const struct scene *scene, size_t len)
{
	size_t max = scene->family->max;

	return max && max < len ? max : len;
}
