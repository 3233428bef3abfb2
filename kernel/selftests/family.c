// SPDX-License-Identifier: GPL-2.0
/* Connected pairs of sockets: unix sockets, and what runs over IP. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#include "scene.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP	262
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT	103
#endif
#ifndef UDPLITE_SEND_CSCOV
#define UDPLITE_SEND_CSCOV	10
#endif
#ifndef VMADDR_CID_LOCAL
#define VMADDR_CID_LOCAL	1
#endif
#define SCTP_NODELAY	3	/* linux/sctp.h comes with no C library */

#define IPPROTO_TESTS	253	/* of RFC 3692: for experiments */
#define SEGMENT		1400

/* Return: ret, or the error with its sign. */
int own_error(int ret)
{
	return ret < 0 ? -errno : ret;
}

int set_buffers(int fd)
{
	int size = SOCKET_BUFFER;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		return -errno;
	return 0;
}

void close_pair(struct pair *pair)
{
	if (pair->rx != pair->tx && pair->rx >= 0)
		close(pair->rx);
	if (pair->tx >= 0)
		close(pair->tx);
	pair->tx = -1;
	pair->rx = -1;
	pair->to_len = 0;
}

socklen_t loopback(int domain, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *in6 = (void *)addr;
	struct sockaddr_in *in = (void *)addr;

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = domain;
	if (domain == AF_INET6) {
		in6->sin6_addr = in6addr_loopback;
		return sizeof(*in6);
	}
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sizeof(*in);
}

static int open_unix(const struct family *family, struct pair *pair)
{
	int fds[2], ret;

	ret = own_error(socketpair(AF_UNIX, family->type, 0, fds));
	if (ret < 0)
		return ret;
	pair->tx = fds[0];
	pair->rx = fds[1];
	made_socket(pair->tx);
	made_socket(pair->rx);
	ret = set_buffers(pair->tx);
	return ret < 0 ? ret : set_buffers(pair->rx);
}

/* Small sends leave at once: a scene reads what it sent before it goes on. */
static void set_nodelay(const struct family *family, int fd)
{
	int one = 1;

	if (family->protocol == IPPROTO_SCTP)
		setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &one, sizeof(one));
	else
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static int new_socket(const struct family *family)
{
	int fd = own_error(socket(family->domain, family->type, family->protocol)), ret;

	if (fd < 0)
		return fd;
	ret = set_buffers(fd);
	if (ret < 0) {
		close(fd);
		return ret;
	}
	made_socket(fd);
	return fd;
}

/*
 * Connects to a listening socket at the address, with SO_NTCOPY as asked for,
 * and accepts.  The buffers are set first: what a peer offers depends on them.
 */
int open_listening(const struct family *family, const struct family *sender,
		   struct sockaddr_storage *addr, socklen_t len, struct pair *pair,
		   int option)
{
	int server = new_socket(family), ret;

	if (server < 0)
		return server;
	if (option && set_hint(server, option) < 0)
		goto failed;
	if (bind(server, (void *)addr, len) < 0 || listen(server, 1) < 0)
		goto failed;
	len = sizeof(*addr);
	if (getsockname(server, (void *)addr, &len) < 0)
		goto failed;
	pair->tx = new_socket(sender);
	if (pair->tx < 0 || connect(pair->tx, (void *)addr, len) < 0)
		goto failed;
	pair->rx = accept(server, NULL, NULL);
	if (pair->rx < 0)
		goto failed;
	close(server);
	return 0;
failed:
	ret = -errno;
	close(server);
	return ret;
}

socklen_t listening_address(const struct family *family, struct sockaddr_storage *addr)
{
	struct sockaddr_vm *vm = (void *)addr;

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = family->domain;
	if (family->domain == AF_UNIX)
		return sizeof(sa_family_t);	/* the kernel chooses a name */
	if (family->domain != AF_VSOCK)
		return loopback(family->domain, addr);
	vm->svm_port = VMADDR_PORT_ANY;
	vm->svm_cid = VMADDR_CID_LOCAL;
	return sizeof(*vm);
}

static int open_datagrams(const struct family *family, struct sockaddr_storage *addr,
			  socklen_t len, struct pair *pair)
{
	pair->rx = new_socket(family);
	if (pair->rx < 0)
		return pair->rx;
	if (bind(pair->rx, (void *)addr, len) < 0 ||
	    getsockname(pair->rx, (void *)addr, &len) < 0)
		return -errno;
	pair->tx = new_socket(family);
	if (pair->tx < 0)
		return pair->tx;
	return own_error(connect(pair->tx, (void *)addr, len));
}

int open_inet(const struct family *family, struct pair *pair)
{
	struct sockaddr_storage addr;
	socklen_t len = loopback(family->domain, &addr);
	int ret;

	if (!(family->traits & LISTENS))
		return open_datagrams(family, &addr, len, pair);
	ret = open_listening(family, family, &addr, len, pair, 0);
	if (!ret)
		set_nodelay(family, pair->tx);
	return ret;
}

/*
 * One socket for many associations: it listens, and receives itself, and each
 * send to such a socket says to whom.
 */
static int open_associations(const struct family *family, struct pair *pair)
{
	socklen_t len = loopback(family->domain, &pair->to);

	pair->rx = new_socket(family);
	if (pair->rx < 0)
		return pair->rx;
	if (bind(pair->rx, (void *)&pair->to, len) < 0 || listen(pair->rx, 1) < 0 ||
	    getsockname(pair->rx, (void *)&pair->to, &len) < 0)
		return -errno;
	pair->tx = new_socket(family);
	if (pair->tx < 0)
		return pair->tx;
	pair->to_len = len;
	set_nodelay(family, pair->tx);
	return own_error(connect(pair->tx, (void *)&pair->to, len));
}

static int open_gso(const struct family *family, struct pair *pair)
{
	int ret = open_inet(family, pair), segment = SEGMENT;

	if (ret < 0)
		return ret;
	return own_error(setsockopt(pair->tx, IPPROTO_UDP, UDP_SEGMENT, &segment,
				    sizeof(segment)));
}

/* Sets what the checksum of UDP-Lite covers, which is read back. */
int set_coverage(int fd, int bytes)
{
	return own_error(setsockopt(fd, IPPROTO_UDPLITE, UDPLITE_SEND_CSCOV, &bytes,
				    sizeof(bytes)));
}

/* Just the header: that is what UDP-Lite is for. */
static int open_partial(const struct family *family, struct pair *pair)
{
	int ret = open_inet(family, pair);

	return ret < 0 ? ret : set_coverage(pair->tx, sizeof(struct udphdr));
}

/* The socket that sends echo requests gets the replies. */
static int open_ping(const struct family *family, struct pair *pair)
{
	struct sockaddr_storage addr;
	socklen_t len = loopback(family->domain, &addr);

	pair->tx = new_socket(family);
	pair->rx = pair->tx;
	if (pair->tx < 0)
		return pair->tx;
	return own_error(connect(pair->tx, (void *)&addr, len));
}

static int open_hdrincl(const struct family *family, struct pair *pair)
{
	int ret = open_inet(family, pair), one = 1;

	if (ret < 0)
		return ret;
	return own_error(setsockopt(pair->tx, IPPROTO_IP, IP_HDRINCL, &one, sizeof(one)));
}

/* Type 8, code 0; the kernel writes the rest. */
static const unsigned char echo_request[8] = { 8 };

/* The kernel writes what is 0 here, and the length. */
static const unsigned char ip_header[20] = {
	0x45, 0, 0, 0, 0, 0, 0, 0, 64, IPPROTO_TESTS, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1,
};

#define UNIX(_name, _type, _traits)					\
	.name = "unix " _name, .domain = AF_UNIX, .type = _type,	\
	.traits = (_traits) | SYNC | HINTED, .open = open_unix

#define INET(_name, _domain, _type, _protocol, _traits)			\
	.name = _name, .domain = _domain, .type = _type, .protocol = _protocol, \
	.traits = (_traits) | HINTED, .open = open_inet

const struct family unix_stream = { UNIX("stream", SOCK_STREAM, LISTENS) };
const struct family unix_dgram = { UNIX("dgram", SOCK_DGRAM, RECORDS), .max = 120000 };
const struct family unix_seqpacket = {
	UNIX("seqpacket", SOCK_SEQPACKET, RECORDS | LISTENS), .max = 120000,
};

const struct family tcp = { INET("tcp", AF_INET, SOCK_STREAM, 0, LISTENS) };
const struct family tcp6 = { INET("tcp6", AF_INET6, SOCK_STREAM, 0, LISTENS) };
const struct family mptcp = { INET("mptcp", AF_INET, SOCK_STREAM, IPPROTO_MPTCP, LISTENS) };
const struct family mptcp6 = { INET("mptcp6", AF_INET6, SOCK_STREAM, IPPROTO_MPTCP, LISTENS) };

const struct family udp = {
	INET("udp", AF_INET, SOCK_DGRAM, 0, SYNC | RECORDS | LOSSY), .max = 65507,
};

const struct family udp6 = {
	INET("udp6", AF_INET6, SOCK_DGRAM, 0, SYNC | RECORDS | LOSSY), .max = 65487,
};

const struct family udplite = {
	INET("udplite", AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE, SYNC | RECORDS | LOSSY),
	.reads = true, .max = 65507,
};

const struct family udplite6 = {
	INET("udplite6", AF_INET6, SOCK_DGRAM, IPPROTO_UDPLITE, SYNC | RECORDS | LOSSY),
	.reads = true, .max = 65487,
};

const struct family udplite_partial = {
	.name = "udplite partial", .domain = AF_INET, .type = SOCK_DGRAM,
	.protocol = IPPROTO_UDPLITE, .traits = SYNC | HINTED | RECORDS | LOSSY,
	.max = 65507, .open = open_partial,
};

const struct family udplite6_partial = {
	.name = "udplite6 partial", .domain = AF_INET6, .type = SOCK_DGRAM,
	.protocol = IPPROTO_UDPLITE, .traits = SYNC | HINTED | RECORDS | LOSSY,
	.max = 65487, .open = open_partial,
};

const struct family sctp_stream = {
	INET("sctp stream", AF_INET, SOCK_STREAM, IPPROTO_SCTP, LISTENS), .max = 200000,
};

const struct family sctp6_stream = {
	INET("sctp6 stream", AF_INET6, SOCK_STREAM, IPPROTO_SCTP, LISTENS), .max = 200000,
};

const struct family raw = {
	INET("raw", AF_INET, SOCK_RAW, IPPROTO_TESTS, SYNC | RECORDS | LOSSY),
	.reads = true, .max = 65515, .skip = 20,
};

const struct family raw6 = {
	INET("raw6", AF_INET6, SOCK_RAW, IPPROTO_TESTS, SYNC | RECORDS | LOSSY),
	.reads = true, .max = 65495,
};

const struct family udp_gso = {
	.name = "udp gso", .domain = AF_INET, .type = SOCK_DGRAM,
	.traits = SYNC | HINTED | LOSSY, .max = 65507, .open = open_gso,
};

const struct family udp6_gso = {
	.name = "udp6 gso", .domain = AF_INET6, .type = SOCK_DGRAM,
	.traits = SYNC | HINTED | LOSSY, .max = 65487, .open = open_gso,
};

const struct family raw_hdrincl = {
	.name = "raw hdrincl", .domain = AF_INET, .type = SOCK_RAW,
	.protocol = IPPROTO_TESTS, .traits = SYNC | HINTED | RECORDS | LOSSY, .max = 65515,
	.head = ip_header, .head_len = sizeof(ip_header), .skip = 20, .open = open_hdrincl,
};

const struct family sctp_seqpacket = {
	.name = "sctp seqpacket", .domain = AF_INET, .type = SOCK_SEQPACKET,
	.protocol = IPPROTO_SCTP, .traits = HINTED, .max = 200000, .open = open_associations,
};

const struct family ping = {
	.name = "ping", .domain = AF_INET, .type = SOCK_DGRAM, .protocol = IPPROTO_ICMP,
	.traits = SYNC | HINTED | RECORDS | LOSSY, .reads = true, .max = 65507,
	.head = echo_request, .head_len = sizeof(echo_request),
	.skip = sizeof(echo_request), .open = open_ping,
};
