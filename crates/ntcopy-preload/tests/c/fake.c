/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Plays a kernel that has SO_NTCOPY, for a program on one that has not:
 *
 *   fake taken|refused PROGRAM [ARGUMENT...]
 *
 * A filter of system calls has every getsockopt() and setsockopt() of the option
 * answered here: settings are kept by socket, and "refused" refuses all of them
 * with EINVAL, as a kernel of another interface. FAKE_SETS says how often one was
 * set. Accepted sockets inherit nothing here.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>

#include "check.h"
#include "fake.h"

#define SOCKETS 16384

static struct {
	unsigned long inode;
	int mode;
} sockets[SOCKETS];

static int sets;
static bool refuses;

static void filter(int link)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOL_SOCKET, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_NTCOPY, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FAKE_SETS, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog program = { .len = 10, .filter = code };
	long listener;

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			   SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	CHECK(listener >= 0);
	/* Until the other process has taken the descriptor: it is closed by exec. */
	CHECK(syscall(SYS_write, link, &listener, sizeof(listener)) == sizeof(listener));
	CHECK(syscall(SYS_read, link, &listener, 1) == 1);
}

/* The setting of the socket that a process has at this number, or why there is none. */
static int mode_of(pid_t pid, int fd, int **mode)
{
	char path[64], name[64];
	unsigned long inode;
	ssize_t size;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	size = readlink(path, name, sizeof(name) - 1);
	if (size < 0)
		return -EBADF;
	name[size] = 0;
	if (sscanf(name, "socket:[%lu]", &inode) != 1)
		return -ENOTSOCK;
	for (int at = 0; at < SOCKETS; at++) {
		if (!sockets[at].inode)
			sockets[at].inode = inode;
		*mode = &sockets[at].mode;
		if (sockets[at].inode == inode)
			return 0;
	}
	CHECK(!"there is room for every socket");
	return -ENFILE;
}

/* Between a process's memory and ours. */
static void move(bool is_write, pid_t pid, void *here, unsigned long long there, size_t size)
{
	struct iovec ours = { here, size }, theirs = { (void *)(uintptr_t)there, size };
	ssize_t moved = is_write ? process_vm_writev(pid, &ours, 1, &theirs, 1, 0)
				 : process_vm_readv(pid, &ours, 1, &theirs, 1, 0);

	CHECK(moved == (ssize_t)size);
}

static int answer(const struct seccomp_notif *call)
{
	const unsigned long long *args = (const void *)call->data.args;
	pid_t pid = (pid_t)call->pid;
	int *mode, value, error = mode_of(pid, (int)args[0], &mode);
	socklen_t size;

	if (error)
		return error;
	if (call->data.nr == SYS_setsockopt) {
		CHECK(args[4] == sizeof(value));
		move(false, pid, &value, args[3], sizeof(value));
		if (refuses || value < 0 || (value > 0 && value < 4096))
			return -EINVAL;
		*mode = value;
		sets++;
		return 0;
	}
	move(false, pid, &size, args[4], sizeof(size));
	value = args[2] == SO_NTCOPY ? *mode : sets;
	if (size > sizeof(value))
		size = sizeof(value);
	move(true, pid, &value, args[3], size);
	move(true, pid, &size, args[4], sizeof(size));
	return 0;
}

static void serve(int listener)
{
	struct pollfd poller = { .fd = listener, .events = POLLIN };

	/* The last process under the filter has gone: it hangs up. */
	while (poll(&poller, 1, -1) == 1 && poller.revents & POLLIN) {
		struct seccomp_notif call;
		struct seccomp_notif_resp response;

		memset(&call, 0, sizeof(call));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
			continue;
		memset(&response, 0, sizeof(response));
		response.id = call.id;
		response.error = answer(&call);
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
	}
}

int main(int count, char **arguments)
{
	int link[2], status, process;
	long listener;
	pid_t child;

	CHECK(count > 2);
	refuses = !strcmp(arguments[1], "refused");
	CHECK(refuses || !strcmp(arguments[1], "taken"));
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		filter(link[1]);
		execv(arguments[2], arguments + 2);
		CHECK(!"the program is there");
	}
	CHECK(syscall(SYS_read, link[0], &listener, sizeof(listener)) == sizeof(listener));
	process = (int)syscall(SYS_pidfd_open, child, 0);
	CHECK(process >= 0);
	listener = syscall(SYS_pidfd_getfd, process, listener, 0);
	CHECK(listener >= 0);
	CHECK(syscall(SYS_write, link[0], "", 1) == 1);
	serve((int)listener);
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}
