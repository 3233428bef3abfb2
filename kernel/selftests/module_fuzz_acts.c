// SPDX-License-Identifier: GPL-2.0
/* What module_fuzz does to sockets. */
#include <sched.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "module_fuzz.h"

/* Sockets of a process that everybody knows. */
#define SLOTS		12

static const struct family * const families[] = { &unix_stream, &unix_stream, &udp, &tcp };

struct shared shared;
static int slots[SLOTS];

static unsigned int below(struct actor *actor, unsigned int bound)
{
	actor->random ^= actor->random << 13;
	actor->random ^= actor->random >> 7;
	actor->random ^= actor->random << 17;
	return (actor->random >> 20) % bound;
}

static int *slot(struct actor *actor)
{
	return &slots[below(actor, SLOTS)];
}

/* A descriptor that another thread may close any moment, and open again. */
static int held(struct actor *actor)
{
	return __atomic_load_n(slot(actor), __ATOMIC_RELAXED);
}

/* Only who takes a number out of its slot closes it. */
static int put(struct actor *actor, int fd)
{
	int old = __atomic_exchange_n(slot(actor), fd, __ATOMIC_RELAXED);

	if (old >= 0)
		close(old);
	return fd;
}

/* No call waits for long. */
static void tune(struct actor *actor, int fd)
{
	struct timeval wait = { .tv_usec = 3000 };
	int size = 4096 << below(actor, 8);

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

static int act_open(struct actor *actor)
{
	const struct family *family = families[below(actor, ARRAY_SIZE(families))];
	struct pair pair = { .tx = -1, .rx = -1 };

	if (family->open(family, &pair) < 0) {
		close_pair(&pair);
		return -1;
	}
	if (below(actor, 2))
		attach(pair.tx, some_number(below(actor, 3)));
	tune(actor, pair.tx);
	tune(actor, pair.rx);
	put(actor, pair.rx);
	return put(actor, pair.tx);
}

static int act_attach(struct actor *actor)
{
	return attach(held(actor), some_number(below(actor, 3)));
}

static int act_detach(struct actor *actor)
{
	return detach(held(actor));
}

static int act_query(struct actor *actor)
{
	read_counts();
	info();
	return number_of(held(actor));
}

static int act_send(struct actor *actor)
{
	static const int some[] = { 0, MSG_DONTWAIT, MSG_MORE, MSG_DONTWAIT | MSG_EOR, MSG_OOB };
	int flags = MSG_NOSIGNAL | some[below(actor, ARRAY_SIZE(some))];
	size_t len = 1 + below(actor, BYTES_MAX);
	const void *from = shared.bytes;

	if (below(actor, 4))
		flags |= MSG_NTCOPY;
	if (!below(actor, 16)) {
		from = shared.hole;
		len = HOLE_AT + 4096;
	}
	return send(held(actor), from, len, flags);
}

/* With a descriptor of its own: whose bytes they are shall be sure. */
static int act_receive(struct actor *actor)
{
	static __thread unsigned char got[BYTES_MAX];
	int fd = dup(held(actor)), domain = 0, ret, i;
	socklen_t len = sizeof(domain);

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	ret = recv(fd, got, sizeof(got), MSG_DONTWAIT);
	close(fd);
	for (i = 0; domain == AF_UNIX && i < ret; i++) {
		if (got[i] != *PASSED_WITH) {
			__atomic_fetch_add(&shared.tallies->wrong, 1, __ATOMIC_RELAXED);
			break;
		}
	}
	return ret;
}

static int act_close(struct actor *actor)
{
	put(actor, -1);
	return 0;
}

static int act_dup(struct actor *actor)
{
	return put(actor, dup(held(actor)));
}

static int act_pass(struct actor *actor)
{
	/* Through a socket of the slots, it may end up in itself. */
	int through = below(actor, 3) ? shared.mailbox[0] : held(actor);

	return pass_fd(through, held(actor));
}

static int act_take(struct actor *actor)
{
	int fd = taken_fd(below(actor, 3) ? shared.mailbox[1] : held(actor));

	return fd < 0 ? fd : put(actor, fd);
}

static int act_listener(struct actor *actor)
{
	int fd = shared.listener.fd;

	return below(actor, 3) ? attach(fd, some_number(below(actor, 3))) : detach(fd);
}

static int act_accept(struct actor *actor)
{
	int fd = accept(shared.listener.fd, NULL, NULL);

	if (fd < 0)
		return fd;
	tune(actor, fd);
	return put(actor, fd);
}

static int act_connect(struct actor *actor)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), ret;

	if (fd < 0)
		return fd;
	if (below(actor, 2))
		attach(fd, some_number(below(actor, 3)));
	tune(actor, fd);
	ret = connect(fd, (void *)&shared.listener.addr, shared.listener.len);
	put(actor, fd);
	return ret;
}

static int act_end(struct actor *actor)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	if (below(actor, 2))
		return shutdown(held(actor), below(actor, 3));
	return connect(held(actor), &none, sizeof(none));
}

static int act_settings(struct actor *actor)
{
	static const char * const modes[] = { "1", "2", "0" };

	return set_mode(modes[below(actor, ARRAY_SIZE(modes))]);
}

/* A process that has all of this one's sockets for a while. */
static int act_fork(struct actor *actor)
{
	int i, status;
	pid_t pid = fork();

	if (pid < 0)
		return pid;
	actor->depth++;
	if (!pid) {
		actor->random ^= 0x9e3779b97f4a7c15;
		for (i = 0; i < 10; i++)
			act(actor);
		_exit(0);
	}
	actor->depth--;
	return waitpid(pid, &status, 0);
}

/* A namespace that ends while a socket of it is on its way to others. */
static int act_namespace(struct actor *actor)
{
	int pair[2], status;
	pid_t pid = fork();

	if (pid)
		return pid < 0 ? pid : waitpid(pid, &status, 0);
	if (unshare(CLONE_NEWNET) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		_exit(1);
	attach(pair[0], some_number(below(actor, 3)));
	tune(actor, pair[0]);
	set_mode(below(actor, 2) ? "1" : "0");
	send(pair[0], shared.bytes, BYTES_MAX, MSG_NTCOPY | MSG_DONTWAIT);
	pass_fd(shared.mailbox[0], pair[0]);
	pass_fd(shared.mailbox[0], pair[1]);
	_exit(0);
}

/* Weights are shares of all that is done. */
static const struct {
	const char *name;
	int (*act)(struct actor *actor);
	unsigned int weight;
} acts[] = {
	{ "send", act_send, 24 },
	{ "receive", act_receive, 12 },
	{ "attach", act_attach, 12 },
	{ "detach", act_detach, 4 },
	{ "query", act_query, 3 },
	{ "open", act_open, 6 },
	{ "close", act_close, 5 },
	{ "dup", act_dup, 3 },
	{ "pass", act_pass, 5 },
	{ "take", act_take, 5 },
	{ "listener", act_listener, 3 },
	{ "accept", act_accept, 5 },
	{ "connect", act_connect, 5 },
	{ "end", act_end, 2 },
	{ "settings", act_settings, 1 },
	{ "fork", act_fork, 1 },
	{ "namespace", act_namespace, 1 },
};

/* Does something to some socket. */
void act(struct actor *actor)
{
	unsigned int number, i = 0, all = 0;

	for (number = 0; number < ARRAY_SIZE(acts); number++)
		all += acts[number].weight;
	number = below(actor, all);
	while (number >= acts[i].weight)
		number -= acts[i++].weight;
	/* Or there would be ever more of them. */
	if (actor->depth && (acts[i].act == act_fork || acts[i].act == act_namespace))
		return;
	__atomic_fetch_add(&shared.tallies->done[i], 1, __ATOMIC_RELAXED);
	if (acts[i].act(actor) >= 0)
		__atomic_fetch_add(&shared.tallies->good[i], 1, __ATOMIC_RELAXED);
}

void forget_sockets(void)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		slots[i] = -1;
}

void print_tallies(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(acts); i++)
		printf("# %-10s %8lu, %8lu of them done\n", acts[i].name,
		       shared.tallies->done[i], shared.tallies->good[i]);
}
