/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What happens in the life of a process: constructors, signals, forks, threads
 * that are cancelled, libraries that are loaded late, a filter of system calls.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "check.h"

extern char **environ;

static int pair[2];

static void use(void)
{
	CHECK(write(pair[0], bytes, LARGE) == LARGE);
	SEEN("send", MSG_NTCOPY);
	drain(pair[1], LARGE);
}

static void on_signal(int signal)
{
	int before = errno;

	(void)signal;
	CHECK(write(pair[0], bytes, LARGE) == LARGE);
	errno = before;
}

/* A handler that sends while its thread sends. */
static void signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	use();
	for (int at = 0; at < 50; at++) {
		CHECK(!raise(SIGUSR1));
		SEEN("send", MSG_NTCOPY);
		drain(pair[1], LARGE);
	}
}

static void ended_well(pid_t child)
{
	int status;

	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

static void forks(const char *self)
{
	char *again[] = { (char *)self, "exec", NULL };
	int there[2];
	pid_t child;

	use();
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		/* What it inherited, and what is its own. */
		use();
		close_pair(pair);
		CHECK(!pipe(pair));
		int end = pair[0];
		pair[0] = pair[1];
		pair[1] = end;
		CHECK(write(pair[0], bytes, LARGE) == LARGE);
		SEEN("write", -1);
		_exit(0);
	}
	ended_well(child);
	/* The child's descriptors are not ours. */
	use();

	CHECK(!pipe(there));
	child = vfork();
	CHECK(child >= 0);
	if (!child) {
		dup2(there[1], pair[0]);
		/* It shares our memory, but this number is a pipe in it alone. */
		if (write(pair[0], bytes, LARGE) != LARGE || strcmp(seen_call(), "write"))
			_exit(1);
		execve(self, again, environ);
		_exit(1);
	}
	ended_well(child);
	use();
	close_pair(there);
}

/* What vfork's child becomes. */
static void after_exec(void)
{
	use();
}

static void *sends_for_ever(void *unused)
{
	(void)unused;
	for (;;)
		CHECK(write(pair[0], bytes, LARGE) > 0);
	return NULL;
}

static void *sends_messages_for_ever(void *unused)
{
	struct iovec one = { .iov_base = bytes, .iov_len = LARGE };

	(void)unused;
	for (;;)
		CHECK(writev(pair[0], &one, 1) > 0);
	return NULL;
}

static int cleaned_up;

static void clean_up(void *unused)
{
	(void)unused;
	cleaned_up++;
}

static void *(*body)(void *);

static void *with_clean_up(void *unused)
{
	pthread_cleanup_push(clean_up, NULL);
	body(unused);
	pthread_cleanup_pop(0);
	return NULL;
}

/* A thread that is cancelled while its send waits for room. */
static void cancelled(void)
{
	void *(*bodies[])(void *) = { sends_for_ever, sends_messages_for_ever };

	for (int at = 0; at < 2; at++) {
		pthread_t thread;
		void *result;

		body = bodies[at];
		CHECK(!pthread_create(&thread, NULL, with_clean_up, NULL));
		/* Until it waits: then nothing more is taken. */
		for (;;) {
			usleep(20000);
			ssize_t more = send(pair[0], bytes, 1, MSG_DONTWAIT);

			CHECK(more == 1 || errno == EAGAIN);
			if (more < 0)
				break;
		}
		CHECK(!pthread_cancel(thread));
		CHECK(!pthread_join(thread, &result) && result == PTHREAD_CANCELED);
		CHECK(cleaned_up == at + 1);
		close_pair(pair);
		pair_of(AF_UNIX, SOCK_STREAM, pair);
	}
	use();
}

static void *sends_and_reopens(void *unused)
{
	(void)unused;
	for (int at = 0; at < 200; at++) {
		int own[2];
		bool is_pipe = at % 2;

		if (is_pipe)
			CHECK(!pipe(own));
		else
			CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, own));
		CHECK(write(own[is_pipe ? 1 : 0], bytes, 8192) == 8192);
		drain(own[is_pipe ? 0 : 1], 8192);
		close_pair(own);
	}
	return NULL;
}

/* Threads that take each other's numbers all the time. */
static void threads(void)
{
	pthread_t all[4];

	for (int at = 0; at < 4; at++)
		CHECK(!pthread_create(&all[at], NULL, sends_and_reopens, NULL));
	for (int at = 0; at < 4; at++)
		CHECK(!pthread_join(all[at], NULL));
	use();
}

/* A library that binds its own calls to the C library goes past; nothing breaks. */
static void deep_bind(const char *plugin)
{
	void *library = dlopen(plugin, RTLD_NOW | RTLD_DEEPBIND);
	ssize_t (*plugin_write)(int, const void *, size_t);

	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(library);
	plugin_write = (__typeof__(plugin_write))dlsym(library, "plugin_write");
	CHECK(plugin_write(pair[0], bytes, LARGE) == LARGE);
	drain(pair[1], LARGE);
	use();
	CHECK(!dlclose(library));
	use();
}

/* A filter that ends the process at any call but those that it makes itself. */
static void confined(bool by_prctl)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_writev, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 7, .filter = filter };
	struct iovec one = { .iov_base = bytes, .iov_len = LARGE };

	use();
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (by_prctl)
		CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	else
		CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
	CHECK(write(pair[0], bytes, LARGE) == LARGE);
	SEEN("write", -1);
	drain(pair[1], LARGE);
	CHECK(writev(pair[0], &one, 1) == LARGE);
	drain(pair[1], LARGE);
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";
	int *early_done = dlsym(RTLD_DEFAULT, "early_done");

	pair_of(AF_UNIX, SOCK_STREAM, pair);
	if (!strcmp(what, "early")) {
		CHECK(early_done && *early_done == 1);
		use();
	} else if (!strcmp(what, "signals")) {
		signals();
	} else if (!strcmp(what, "forks")) {
		forks(arguments[0]);
	} else if (!strcmp(what, "exec")) {
		after_exec();
	} else if (!strcmp(what, "cancelled")) {
		cancelled();
	} else if (!strcmp(what, "threads")) {
		threads();
	} else if (!strcmp(what, "deep-bind")) {
		CHECK(count > 2);
		deep_bind(arguments[2]);
	} else if (!strcmp(what, "confined-by-prctl")) {
		confined(true);
	} else if (!strcmp(what, "confined-by-syscall")) {
		confined(false);
	} else {
		fprintf(stderr, "life: what is '%s'?\n", what);
		return 2;
	}
	return 0;
}
