/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A program under a filter of system calls that it did not install itself:
 *
 *   filtered filter WHAT CALL PROGRAM [ARGUMENT...]   becomes the program, under
 *	a filter that does this to this call, and allows all others
 *   filtered send [NUMBER]   writes 1 MiB into sockets and holds what arrives
 *	against it; their option must be this
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "check.h"

#define WHOLE (1 << 20)

static char sent[WHOLE];

static unsigned int number_of(const char *call)
{
	static const struct {
		const char *name;
		int number;
	} calls[] = {
		{ "gettid", SYS_gettid },
		{ "ioctl", SYS_ioctl },
		{ "option", SYS_setsockopt },
		{ "pidfd_getfd", SYS_pidfd_getfd },
		{ "process_vm_readv", SYS_process_vm_readv },
		{ "setsockopt", SYS_setsockopt },
		{ "socketpair", SYS_socketpair },
	};

	for (size_t at = 0; at < sizeof(calls) / sizeof(calls[0]); at++)
		if (!strcmp(call, calls[at].name))
			return (unsigned int)calls[at].number;
	fprintf(stderr, "filtered: what is '%s'?\n", call);
	exit(2);
}

static void filter(const char *what, const char *call)
{
	unsigned int answer = SECCOMP_RET_ALLOW;
	/* Of setsockopt(), the one that no program makes itself. */
	bool is_option = !strcmp(call, "option");

	if (!strcmp(what, "kill"))
		answer = SECCOMP_RET_KILL_PROCESS;
	else if (!strcmp(what, "refuse"))
		answer = SECCOMP_RET_ERRNO | EPERM;
	else
		CHECK(!strcmp(what, "allow"));
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number_of(call), 0, 4),
		BPF_JUMP(BPF_JMP | BPF_JA, is_option ? 0 : 2, 0, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_NTCOPY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 7, .filter = code };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static int reading;

static void *reads(void *unused)
{
	static char got[WHOLE];

	(void)unused;
	for (size_t done = 0; done < WHOLE;) {
		ssize_t more = read(reading, got + done, WHOLE - done);

		CHECK(more > 0);
		done += (size_t)more;
	}
	CHECK(!memcmp(got, sent, WHOLE));
	CHECK(read(reading, got, 1) == 0);
	return NULL;
}

static void sends(int family, const char *number)
{
	pthread_t reader;
	int pair[2];

	pair_of(family, SOCK_STREAM, pair);
	CHECK(!number || option_of(pair[0]) == atoi(number));
	reading = pair[1];
	CHECK(!pthread_create(&reader, NULL, reads, NULL));
	/* Sockets that block take all of it. */
	CHECK(write(pair[0], sent, WHOLE) == WHOLE);
	CHECK(!close(pair[0]));
	CHECK(!pthread_join(reader, NULL));
	CHECK(!close(pair[1]));
}

int main(int count, char **arguments)
{
	if (count > 4 && !strcmp(arguments[1], "filter")) {
		filter(arguments[2], arguments[3]);
		execvp(arguments[4], arguments + 4);
		CHECK(!"the program is there");
	}
	CHECK(count > 1 && !strcmp(arguments[1], "send"));
	for (size_t at = 0; at < WHOLE; at++)
		sent[at] = (char)(at * 7 + at / 251);
	sends(AF_UNIX, arguments[2]);
	sends(AF_INET, arguments[2]);
	return 0;
}
