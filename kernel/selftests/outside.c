// SPDX-License-Identifier: GPL-2.0
/* SO_NTCOPY from outside of a program: sock_diag shows it, a cgroup's BPF program sets it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "identical.h"

/* Until the headers have them. */
#define DIAG_NTCOPY_OF_INET	23
#define DIAG_NTCOPY_OF_UNIX	8

#define NUMBER	(256 * KIB)
#define CGROUPS	"/sys/fs/cgroup"

struct question {
	struct nlmsghdr header;
	union {
		struct unix_diag_req of_unix;
		struct inet_diag_req_v2 of_inet;
	};
};

/* What an answer has behind its header of this length.  Return: 0 if it is not there. */
static long attribute(struct nlmsghdr *answer, size_t header, int type)
{
	struct rtattr *attr = (void *)((char *)NLMSG_DATA(answer) + NLMSG_ALIGN(header));
	int left = NLMSG_PAYLOAD(answer, NLMSG_ALIGN(header));

	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
		if (attr->rta_type == type)
			return *(unsigned int *)RTA_DATA(attr);
	return 0;
}

/* Return: the number that sock_diag says, or a negative error. */
static long ask(struct question *question, size_t size, size_t header, int type)
{
	static __u64 text[8 * KIB];
	struct nlmsghdr *answer = (void *)text;
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
	long ret;

	question->header.nlmsg_len = NLMSG_LENGTH(size);
	question->header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
	question->header.nlmsg_flags = NLM_F_REQUEST;
	if (fd < 0 || send(fd, question, question->header.nlmsg_len, 0) < 0)
		return -errno;
	ret = recv(fd, text, sizeof(text), 0);
	close(fd);
	if (ret < 0)
		return -errno;
	if (answer->nlmsg_type == NLMSG_ERROR)
		return ((struct nlmsgerr *)NLMSG_DATA(answer))->error;
	return attribute(answer, header, type);
}

static long ask_about_unix(int fd)
{
	struct question question = {
		.of_unix = {
			.sdiag_family = AF_UNIX, .udiag_states = -1,
			.udiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
		},
	};
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return -errno;
	question.of_unix.udiag_ino = stat.st_ino;
	return ask(&question, sizeof(question.of_unix), sizeof(struct unix_diag_msg),
		   DIAG_NTCOPY_OF_UNIX);
}

static long ask_about_tcp(int fd)
{
	struct question question = {
		.of_inet = {
			.sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = -1,
			.id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
		},
	};
	struct inet_diag_sockid *id = &question.of_inet.id;
	struct sockaddr_in own, peer;
	socklen_t len = sizeof(own);

	if (getsockname(fd, (void *)&own, &len) < 0 || getpeername(fd, (void *)&peer, &len) < 0)
		return -errno;
	id->idiag_sport = own.sin_port;
	id->idiag_dport = peer.sin_port;
	id->idiag_src[0] = own.sin_addr.s_addr;
	id->idiag_dst[0] = peer.sin_addr.s_addr;
	return ask(&question, sizeof(question.of_inet), sizeof(struct inet_diag_msg),
		   DIAG_NTCOPY_OF_INET);
}

static void expect_shown(struct __test_metadata *_metadata, const struct family *family,
			 long (*asked)(int fd))
{
	struct pair pair = { .tx = -1, .rx = -1 };

	opt_in = false;
	ASSERT_EQ(family->open(family, &pair), 0);
	EXPECT_EQ(asked(pair.tx), 0);
	ASSERT_EQ(set_hint(pair.tx, NUMBER), 0);
	EXPECT_EQ(asked(pair.tx), (long)NUMBER);
	ASSERT_EQ(set_hint(pair.tx, NTCOPY_FLAGGED), 0);
	EXPECT_EQ(asked(pair.tx), (long)NTCOPY_FLAGGED);
	EXPECT_EQ(asked(pair.rx), 0);
	ASSERT_EQ(set_hint(pair.tx, 0), 0);
	EXPECT_EQ(asked(pair.tx), 0);
	close_pair(&pair);
}

TEST(sock_diag_shows_the_number_of_unix_sockets)
{
	if (via_module())
		SKIP(return, "the module does not change sock_diag");
	expect_shown(_metadata, &unix_stream, ask_about_unix);
}

TEST(sock_diag_shows_the_number_of_tcp_sockets)
{
	if (via_module())
		SKIP(return, "the module does not change sock_diag");
	expect_shown(_metadata, &tcp, ask_about_tcp);
}

static int bpf(int command, union bpf_attr *attr)
{
	return own_error(syscall(__NR_bpf, command, attr, sizeof(*attr)));
}

/* Loads a program that sets the option of each socket that connects. */
static int load_program(void)
{
	struct bpf_insn program[] = {
		{ BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, NUMBER },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, SOL_SOCKET },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, SO_NTCOPY },
		{ BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_4, BPF_REG_10, 0, 0 },
		{ BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_4, 0, 0, -4 },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_5, 0, 0, 4 },
		{ BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_setsockopt },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1 },
		{ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_CGROUP_SOCK_ADDR;
	attr.expected_attach_type = BPF_CGROUP_INET4_CONNECT;
	attr.insns = (unsigned long)program;
	attr.insn_cnt = ARRAY_SIZE(program);
	attr.license = (unsigned long)"GPL";
	return bpf(BPF_PROG_LOAD, &attr);
}

static int attach_to_cgroup(int program, const char *cgroup)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.target_fd = open(cgroup, O_RDONLY | O_DIRECTORY);
	attr.attach_bpf_fd = program;
	attr.attach_type = BPF_CGROUP_INET4_CONNECT;
	return bpf(BPF_PROG_ATTACH, &attr);
}

/* This process in a cgroup of its own, or back in the first one, without it. */
static int enter_cgroup(const char *cgroup)
{
	char procs[80];
	int ret = own_error(mkdir(cgroup, 0755));

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", cgroup);
	return ret < 0 ? ret : write_file(procs, "0");
}

static int leave_cgroup(const char *cgroup)
{
	int ret = write_file(CGROUPS "/cgroup.procs", "0");

	return ret < 0 ? ret : own_error(rmdir(cgroup));
}

/* Return: bytes that went past the caches, as soon as any does: a work item turns it on. */
static long long bypassed(int tx, int rx)
{
	static unsigned char data[NUMBER];
	struct counts before = read_counts(), counts = { 0 };
	int i;

	for (i = 0; i < 1000 && !counts.bypassed; i++) {
		usleep(10000 * !!i);
		if (send(tx, data, NUMBER, 0) != (long)NUMBER ||
		    recv(rx, data, NUMBER, MSG_WAITALL) != (long)NUMBER)
			return -errno;
		counts = counts_since(&before);
	}
	return counts.bypassed;
}

TEST(a_bpf_program_of_a_cgroup_sets_the_option)
{
	struct pair pair = { .tx = -1, .rx = -1 };
	int program, ret;
	char cgroup[64];

	if (via_module())
		SKIP(return, "the module knows no BPF");
	if (access("/proc/sys/kernel/unprivileged_bpf_disabled", F_OK) < 0)
		SKIP(return, "bpf: not in this kernel");
	program = load_program();
	ASSERT_LE(0, program);
	snprintf(cgroup, sizeof(cgroup), CGROUPS "/ntcopy-%d", getpid());
	ret = enter_cgroup(cgroup);
	if (ret == -ENOENT)
		SKIP(return, "bpf: no cgroups");
	ASSERT_EQ(ret, 0);
	ASSERT_EQ(attach_to_cgroup(program, cgroup), 0);
	opt_in = false;
	EXPECT_EQ(set_mode("1"), 0);
	ret = tcp.open(&tcp, &pair);
	EXPECT_EQ(leave_cgroup(cgroup), 0);
	ASSERT_EQ(ret, 0);
	EXPECT_EQ(get_hint(pair.tx), (int)NUMBER);
	EXPECT_EQ(get_hint(pair.rx), 0);
	EXPECT_EQ(bypassed(pair.tx, pair.rx), (long long)NUMBER);
	close_pair(&pair);
}

int main(int argc, char **argv)
{
	return ntcopy_main(argc, argv);
}
