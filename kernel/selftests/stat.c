// SPDX-License-Identifier: GPL-2.0
/* The settings of MSG_NTCOPY, and what the kernel counted. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scene.h"

#define MODE_PATH	"/proc/sys/net/core/ntcopy"

static void bail_out(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Return: 0, or the error with its sign. */
int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

int read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY), ret;

	if (fd < 0)
		return -errno;
	ret = read(fd, text, size - 1);
	if (ret < 0)
		ret = -errno;
	text[ret < 0 ? 0 : ret] = 0;
	close(fd);
	return ret;
}

/* Settings of the machine are not to be seen where the tests run. */
int set_in_first_namespace(const char *path, const char *text)
{
	int fd, status = 0;
	pid_t pid;

	pid = fork();
	if (!pid) {
		fd = open("/proc/1/ns/net", O_RDONLY);
		if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
			_exit(errno);
		_exit(-write_file(path, text));
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

int set_mode(const char *mode)
{
	return set_in_first_namespace(MODE_PATH, mode);
}

/* Return: the number of this name, which stands below it, as in /proc/net/netstat. */
static long long below(const char *names, const char *values, const char *name)
{
	static const char ends[] = { ' ', '\n', 0 };
	size_t len = strlen(name);

	while (*names == ' ' && *values == ' ') {
		names++;
		values++;
		if (!strncmp(names, name, len) && strchr(ends, names[len]))
			return strtoll(values, NULL, 10);
		names += strcspn(names, ends);
		values += strcspn(values, ends);
	}
	errno = EBADMSG;
	bail_out(name);
	return -1;
}

struct counts read_counts(void)
{
	static const char group[] = "TcpExt:";
	static char text[64 * KIB];
	char *names, *values;
	struct counts counts;

	if (via_module())
		return module_counts();
	if (read_file(NTCOPY_STAT_PATH, text, sizeof(text)) < 0)
		bail_out(NTCOPY_STAT_PATH);
	names = strstr(text, group);
	values = names ? strstr(names + 1, group) : NULL;
	if (!values) {
		errno = EBADMSG;
		bail_out(NTCOPY_STAT_PATH);
	}
	names += strlen(group);
	values += strlen(group);
	counts.bytes = below(names, values, NTCOPY_STAT_BYTES);
	counts.hinted = below(names, values, NTCOPY_STAT_HINTED);
	counts.bypassed = below(names, values, NTCOPY_STAT_BYPASSED);
	return counts;
}

struct counts counts_since(const struct counts *before)
{
	struct counts counts = read_counts();

	counts.bytes -= before->bytes;
	counts.hinted -= before->hinted;
	counts.bypassed -= before->bypassed;
	return counts;
}

/* Whether there is the copy that hints ask for; yes where the kernel does not say. */
bool kernel_has_copy(void)
{
	FILE *symbols = fopen("/proc/kallsyms", "r");
	bool has = !symbols;
	char line[512];

	while (!has && fgets(line, sizeof(line), symbols))
		has = strstr(line, " memcpy_nontemporal_unfenced");
	if (symbols)
		fclose(symbols);
	return has;
}

/*
 * A network of one's own: no other program is counted, nothing is left changed.
 * Return: false if that takes root.
 */
bool own_namespace(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (unshare(CLONE_NEWNET) < 0) {
		if (errno == EPERM)
			return false;
		bail_out("a network namespace");
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		bail_out("the interface lo");
	close(fd);
	if (write_file("/proc/sys/net/ipv4/ping_group_range", "0 0") < 0)
		bail_out("/proc/sys/net/ipv4/ping_group_range");
	return true;
}
