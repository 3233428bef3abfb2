/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What happens in the life of a process: constructors, signals, forks, threads,
 * libraries that are loaded late, a filter of system calls. Run under fake.c.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "check.h"

extern char **environ;

/* Both calls that make sockets, whose sockets are hinted and carry what is sent. */
static void use(void)
{
	int pair[2];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	CHECK(fd >= 0 && option_of(fd) == OF_STREAMS);
	close(fd);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	CHECK(option_of(pair[0]) == OF_STREAMS && option_of(pair[1]) == OF_STREAMS);
	CHECK(write(pair[0], bytes, LARGE) == LARGE);
	drain(pair[1], LARGE);
	close_pair(pair);
}

static void on_signal(int signal)
{
	int before = errno;

	(void)signal;
	use();
	errno = before;
}

/* A handler that makes sockets. */
static void signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	for (int at = 0; at < 50; at++) {
		use();
		CHECK(!raise(SIGUSR1));
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
	pid_t child;

	use();
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		use();
		_exit(0);
	}
	ended_well(child);

	child = vfork();
	CHECK(child >= 0);
	if (!child) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		if (fd < 0 || option_of(fd) != OF_STREAMS)
			_exit(1);
		execve(self, again, environ);
		_exit(1);
	}
	ended_well(child);
	use();
}

static void *makes_sockets(void *unused)
{
	(void)unused;
	for (int at = 0; at < 200; at++)
		use();
	return NULL;
}

static void threads(void)
{
	pthread_t all[4];

	for (int at = 0; at < 4; at++)
		CHECK(!pthread_create(&all[at], NULL, makes_sockets, NULL));
	for (int at = 0; at < 4; at++)
		CHECK(!pthread_join(all[at], NULL));
}

static void *after_the_first(void *first)
{
	CHECK(!pthread_join(*(pthread_t *)first, NULL));
	use();
	exit(0);
}

/* The first thread ends, and others go on. */
static void without_the_first(void)
{
	static pthread_t first;
	pthread_t other;

	first = pthread_self();
	CHECK(!pthread_create(&other, NULL, after_the_first, &first));
	pthread_exit(NULL);
}

/* A library that binds its own calls to the C library goes past; nothing breaks. */
static void deep_bind(const char *plugin)
{
	void *library = dlopen(plugin, RTLD_NOW | RTLD_DEEPBIND);
	int (*plugin_socket)(void);

	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(library);
	plugin_socket = (__typeof__(plugin_socket))dlsym(library, "plugin_socket");
	CHECK(option_of(plugin_socket()) == 0);
	use();
	CHECK(!dlclose(library));
	use();
}

/* A filter that ends the process at any call but those that it makes itself. */
static void confined(bool by_prctl)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 8, .filter = filter };
	int pair[2];

	use();
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (by_prctl)
		CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	else
		CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
	CHECK(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	CHECK(write(pair[0], bytes, SMALL) == SMALL);
	drain(pair[1], SMALL);
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";
	int *early_done = dlsym(RTLD_DEFAULT, "early_done");

	if (!strcmp(what, "early")) {
		CHECK(early_done && *early_done == 1);
		use();
	} else if (!strcmp(what, "signals")) {
		signals();
	} else if (!strcmp(what, "forks")) {
		forks(arguments[0]);
	} else if (!strcmp(what, "exec")) {
		use();
	} else if (!strcmp(what, "threads")) {
		threads();
	} else if (!strcmp(what, "without-the-first")) {
		without_the_first();
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
