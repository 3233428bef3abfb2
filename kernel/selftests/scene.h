/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Scenes: programs that open sockets, send, receive, and note in a transcript
 * what they saw.  A scene is played by a process of its own, once with plain
 * sends and once with hinted ones, and the two transcripts must be the same.
 */
#ifndef NTCOPY_SCENE_H
#define NTCOPY_SCENE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "kselftest.h"
#include <ntcopy/uapi.h>

#define PAGE		4096UL	/* what is below it is copied normally */
#define KIB		1024UL
#define MIB		(1024UL * KIB)

/* Buffers of every socket, in both directions: what is sent next need not block. */
#define SOCKET_BUFFER	(8 * MIB)

/* stat.c: settings, and what the kernel counted */

/* Of sockets that opted in: all bytes, those of hinted sends, of sends past the caches. */
struct counts {
	long long bytes, hinted, bypassed;
};

int write_file(const char *path, const char *text);
int read_file(const char *path, char *text, size_t size);
int set_mode(const char *mode);
int set_in_first_namespace(const char *path, const char *text);
struct counts read_counts(void);
struct counts counts_since(const struct counts *before);
bool kernel_has_copy(void);
bool own_namespace(void);

/* hint.c: how sockets are hinted */

struct family;

extern bool opt_in;	/* sockets that are made: else MSG_NTCOPY is ignored there */

bool kernel_has_ntcopy(void);
bool via_module(void);
struct counts module_counts(void);
void made_socket(int fd);
int set_hint(int fd, int value);
int get_hint(int fd);
bool can_be_hinted(const struct family *family);

/* family.c, family_other.c: connected pairs of sockets */

enum {
	RECORDS	= 0x01,	/* a receive returns what one send sent */
	OPAQUE	= 0x02,	/* what arrives is not what was sent: a digest, say */
	LISTENS	= 0x04,	/* bind(), listen(), connect(), accept() */
	SYNC	= 0x08,	/* what was sent has arrived when the send returns */
	HINTED	= 0x10,	/* SO_NTCOPY can be set on the sending socket */
	LOSSY	= 0x20,	/* what was accepted may be dropped where memory is short */
	TEARS	= 0x40,	/* what fails half way leaves that half before the next record */
};

struct pair {
	int tx, rx;
	struct sockaddr_storage to;	/* where to send, if that must be said */
	socklen_t to_len;
};

struct family {
	const char *name;
	int domain, type, protocol;
	unsigned int traits;
	bool reads;		/* the kernel reads the bytes, and declines the hint */
	size_t max;		/* bytes that one send may have, 0: any number */
	const void *head;	/* goes in front of each send */
	size_t head_len;
	size_t skip;		/* bytes in front of what arrives */
	int (*open)(const struct family *family, struct pair *pair);
};

extern const struct family unix_stream, unix_dgram, unix_seqpacket;
extern const struct family tcp, tcp6, udp, udp6;
extern const struct family udplite, udplite6, udplite_partial, udplite6_partial;
extern const struct family udp_gso, udp6_gso, mptcp, mptcp6;
extern const struct family sctp_stream, sctp_seqpacket, sctp6_stream;
extern const struct family raw, raw6, raw_hdrincl, ping, packet_dgram, packet_raw;
extern const struct family vsock_stream, vsock_seqpacket;
extern const struct family tls, alg_hash, alg_skcipher, netlink;

extern const struct family * const all_families[];
extern const size_t all_families_count;

int own_error(int ret);
int set_buffers(int fd);
int set_coverage(int fd, int bytes);
socklen_t loopback(int domain, struct sockaddr_storage *addr);
int open_inet(const struct family *family, struct pair *pair);
int open_listening(const struct family *family, const struct family *sender,
		   struct sockaddr_storage *addr, socklen_t len, struct pair *pair,
		   int option);
socklen_t listening_address(const struct family *family, struct sockaddr_storage *addr);
int open_over_device(const char *feature, struct pair *pair);
void close_pair(struct pair *pair);

/* scene.c: playing */

/* How sends are hinted. */
struct mode {
	const char *name;
	const char *sysctl;	/* net.core.ntcopy */
	int flag;		/* of every send */
	int option;		/* SO_NTCOPY of the sending sockets */
};

extern const struct mode mode_plain;	/* no hint */
extern const struct mode mode_ignored;	/* hinted, while the sysctl says no */
extern const struct mode mode_obeyed;	/* hinted by the flag */
extern const struct mode mode_socket;	/* hinted by the option, from a page on */
extern const struct mode mode_all;	/* the sysctl hints every send: series' test patches */

struct transcript {
	int unavailable;	/* errno with which the family's sockets end */
	bool wrong;		/* a byte arrived that was not sent */
	bool mixed;		/* whether any bytes go past the caches is left open */
	bool by_size;		/* hinted from a page on, not by the flag */
	bool uneven;		/* how much is accepted is up to timing */
	bool finished;
	long long accepted;	/* bytes, by all sends together */
	long long in_pages;	/* bytes of them in sends of a page or more */
	bool long_piece;	/* four pages in a row were among them */
	long long lines;
	__u64 hash;		/* of all lines */
	size_t used;
	char text[60000];	/* the first lines */
};

struct scene {
	const struct family *family;
	const struct mode *mode;
	struct transcript *transcript;
	struct pair pair;
	bool stalled;		/* what was sent has not arrived, and may do so any time */
	__u64 random;
};

typedef void (*scene_fn)(struct scene *scene);

/* What playing a scene left behind. */
struct outcome {
	struct transcript *transcript;
	struct counts counts;
	int status;		/* of the process, as wait() gives it */
};

void play(scene_fn fn, const struct family *family, const struct mode *mode,
	  __u64 seed, struct outcome *outcome);
void forget(struct outcome *outcome);

/* scene_io.c: what scenes are made of */

/* Sends run under the faults that are set up in debugfs. */
extern bool scene_inject;

void __printf(2, 3) note(struct scene *scene, const char *format, ...);
void fatal(struct scene *scene, const char *what);
__u64 any(struct scene *scene, __u64 below);
void fill(unsigned char *data, size_t len, __u64 seed);
void make_hole(unsigned char *page);
unsigned char *pages(size_t count);
void scene_open(struct scene *scene);
void scene_close(struct scene *scene);
long scene_account(struct scene *scene, const char *call, size_t len, long ret);
long scene_send(struct scene *scene, const void *data, size_t len, int flags);
long scene_sendv(struct scene *scene, const struct iovec *iov, size_t count, int flags);
size_t scene_receive(struct scene *scene, const unsigned char *data, size_t len);
void scene_expect(struct scene *scene, const unsigned char *data, long len);
void scene_both(struct scene *scene, const unsigned char *data, size_t len);
void scene_stream(struct scene *scene, const unsigned char *data, size_t len);
size_t scene_max(const struct scene *scene, size_t len);

#endif /* NTCOPY_SCENE_H */
