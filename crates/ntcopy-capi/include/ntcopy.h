/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libntcopy: copies, fills and sends that know whether their bytes belong in
 * the cache.
 *
 *	cc program.c $(pkg-config --cflags --libs ntcopy)
 *
 * Non-temporal stores take bytes to memory past the CPU caches. They win where
 * the bytes would not have stayed in a cache anyway, or where something else
 * wants that cache. They lose, often by a factor of two or three, where whoever
 * reads the bytes would have found them there. Every call therefore carries
 * hints, and the library decides by them, by the size of the whole transfer, and
 * by what the machine is. A hint never changes which bytes end up where.
 *
 * What holds for every function here:
 *
 * Results	0 or a count, or a negative errno: -EINVAL and so on. errno itself
 *		is left alone or not, as the system calls made left it.
 * Outputs	Pointers for results come last, and may be NULL if you don't want
 *		the result. On an error they are left as they were, unless the
 *		function says otherwise.
 * Memory	Lengths are in bytes, addresses need no alignment. A pointer may be
 *		NULL where the length is 0. Otherwise NULL is -EINVAL. A length
 *		above PTRDIFF_MAX, as negative numbers become, or one that runs past
 *		the end of the address space is -EOVERFLOW. On an error no byte has
 *		been written. Memory that isn't there is a fault, as with memcpy().
 * Panics	A mistake inside the library never unwinds into the program: the
 *		call answers -ENOTRECOVERABLE, and standard error has the details.
 * Threads	All functions may be called by any number of threads at once, but
 *		one stream only by one thread at a time. A fence orders the stores
 *		of the thread that calls it and no other's, so what an _unfenced
 *		call has stored is fenced by the thread that copied.
 * Signals	Once ntcopy_init() has returned, signal handlers may call all but
 *		ntcopy_copyv() and what makes and frees streams, which allocate.
 *
 * ntcopy(3) says the same with examples; msg_ntcopy(7) is about the kernel.
 */
#ifndef LIBNTCOPY_H
#define LIBNTCOPY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* MSG_NTCOPY, SO_NTCOPY, NTCOPY_FLAGGED: the kernel's numbers. */
#include <ntcopy/uapi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version ----------------------------------------------------------------- */

/* The version of this header. */
#define NTCOPY_VERSION_MAJOR	0
#define NTCOPY_VERSION_MINOR	2
#define NTCOPY_VERSION_PATCH	0

/* The version of the library in use, "0.2.0". The text is static. */
const char *ntcopy_version(void);

/* Start ------------------------------------------------------------------- */

/*
 * Reads the settings: the environment (NTCOPY_ISA, NTCOPY_THRESHOLD,
 * NTCOPY_TURNS, NTCOPY_PROFILE), this machine's profile if `ntcopy footprint calibrate` has written
 * one, and what CPUID says. They are read once in a process: here, or at the
 * first copy, which then prints what is wrong on standard error since nothing
 * else could tell.
 *
 * message (may be NULL) becomes NULL, or a static text that says what is wrong,
 * where, and what to do.
 *
 *	0	All settings are followed.
 *	-EINVAL	Something was set that can't be followed: a variable's value, or a
 *		profile that is no profile, another machine's, or not to be read.
 *		The library goes on without it; every later call answers the same.
 */
int ntcopy_init(const char **message);

/* Hints ------------------------------------------------------------------- */

/*
 * What you know about the bytes of either side: one of two bits, or neither
 * where you don't know; and whether the source is in no cache, as what a device
 * has written or what much was read since. Both bits of a side, and any other
 * bit, are -EINVAL.
 */
#define NTCOPY_AUTO		0x0U	/* nothing: the library decides by the size of the whole */
#define NTCOPY_SRC_TEMPORAL	0x1U	/* what is read stays in use: keep it in the cache */
#define NTCOPY_SRC_NONTEMPORAL	0x2U	/* what is read is not looked at again soon */
#define NTCOPY_DST_TEMPORAL	0x4U	/* what is written is looked at soon: into the cache */
#define NTCOPY_DST_NONTEMPORAL	0x8U	/* what is written is not looked at soon */
#define NTCOPY_SRC_COLD		0x10U	/* what is read is in no cache */
#define NTCOPY_TEMPORAL		(NTCOPY_SRC_TEMPORAL | NTCOPY_DST_TEMPORAL)
#define NTCOPY_NONTEMPORAL	(NTCOPY_SRC_NONTEMPORAL | NTCOPY_DST_NONTEMPORAL)

/* Paths ------------------------------------------------------------------- */

/*
 * Which way the bytes went. A number for the functions below, and only for
 * those: it may mean something else in another version. 0 is the C library's
 * memmove or memset in every version.
 */
typedef uint32_t ntcopy_path;

/*
 * "libc", "avx512-nt", "movnti+t0+4x64", ...: the instructions, how the source
 * was read, and how many pages were taken in turn, by how many bytes. The
 * text is static. NULL for a number that is no path.
 */
const char *ntcopy_path_name(ntcopy_path path);

/* 1 if the stores went past the caches, and so want a fence; else 0. */
int ntcopy_path_is_nontemporal(ntcopy_path path);

/*
 * 1 if the source was prefetched past the outer caches (PREFETCHNTA) or flushed
 * out of all of them once it was copied; else 0.
 */
int ntcopy_path_source_is_nontemporal(ntcopy_path path);

/* One piece --------------------------------------------------------------- */

/*
 * Copies len bytes from src to dst, which may overlap: then it is memmove().
 * When it returns, the bytes are ordered like those of any other store.
 *
 *	0		Done; *path says how.
 *	-EINVAL		hints, or NULL for bytes.
 *	-EOVERFLOW	len.
 */
int ntcopy_copy(void *dst, const void *src, size_t len, unsigned int hints, ntcopy_path *path);

/*
 * Fills len bytes with the low byte of value. The bits of the source mean
 * nothing here and do no harm. Otherwise as ntcopy_copy().
 */
int ntcopy_fill(void *dst, int value, size_t len, unsigned int hints, ntcopy_path *path);

/*
 * The same without a fence, for many pieces that share one. If a path is
 * non-temporal, call ntcopy_fence() before anything else reads or writes the
 * destination, this thread included, and before anything that lets another
 * thread know of it. The fence must come from the thread that copied.
 */
int ntcopy_copy_unfenced(void *dst, const void *src, size_t len, unsigned int hints,
			 ntcopy_path *path);
int ntcopy_fill_unfenced(void *dst, int value, size_t len, unsigned int hints,
			 ntcopy_path *path);

/* Orders all earlier non-temporal stores of this thread before all that follows. */
void ntcopy_fence(void);

/* Many pieces ------------------------------------------------------------- */

/* How much went by. */
struct ntcopy_moved {
	uint64_t bytes;			/* all of it */
	uint64_t nontemporal_bytes;	/* what took a non-temporal path */
};

/* The most elements a side: as many as readv(2) and writev(2) take. */
#define NTCOPY_IOV_MAX	1024

/*
 * Copies the bytes of the pieces of src, one after the other, into the pieces of
 * dst, one after the other, until either side runs out; and fences. The pieces
 * of the two sides need not correspond. The library decides by their sum.
 *
 * A destination may overlap neither another destination nor a source: with many
 * pieces there is no memmove(). Sources may overlap sources.
 *
 *	0		Done; *moved says how much.
 *	-EINVAL		hints, NULL for bytes, more than NTCOPY_IOV_MAX elements, or
 *			an overlap.
 *	-EOVERFLOW	A length, or the sum of a side's lengths.
 *	-ENOMEM		No memory to look for overlaps with (24 bytes a piece).
 */
int ntcopy_copyv(const struct iovec *dst, size_t dst_count, const struct iovec *src,
		 size_t src_count, unsigned int hints, struct ntcopy_moved *moved);

/*
 * A transfer in pieces that come one by one, each of which is treated as a part
 * of the whole. A gigabyte in pieces of 64 KiB pushes a gigabyte through the
 * caches, though no single call shows it. The total is of different bytes:
 * pieces that go into the same small buffer again and again stay in the cache,
 * and are no stream.
 */
typedef struct ntcopy_stream ntcopy_stream;

/*
 * Make a stream: of total_bytes, or one that counts as long as it has become,
 * because its end is not known. One that turns out longer than total_bytes is as
 * long as it gets. Free it with ntcopy_stream_destroy().
 *
 *	0		Done; *stream is the stream. Otherwise it is NULL.
 *	-EINVAL		hints, or stream is NULL.
 *	-ENOMEM		No memory for it.
 */
int ntcopy_stream_known(uint64_t total_bytes, unsigned int hints, ntcopy_stream **stream);
int ntcopy_stream_growing(unsigned int hints, ntcopy_stream **stream);

/*
 * Copy or fill the next piece, with the stream's hints, and fence where it is
 * non-temporal. Otherwise as ntcopy_copy() and ntcopy_fill(); a stream that is
 * NULL or finished is -EINVAL.
 */
int ntcopy_stream_copy(ntcopy_stream *stream, void *dst, const void *src, size_t len,
		       ntcopy_path *path);
int ntcopy_stream_fill(ntcopy_stream *stream, void *dst, int value, size_t len,
		       ntcopy_path *path);

/*
 * The same without a fence: ntcopy_stream_fence(), ntcopy_stream_finish() or
 * ntcopy_stream_destroy() makes it, and none that isn't needed. Until then no
 * thread may use the destination, as with ntcopy_copy_unfenced(). That call must
 * come from the thread that copied: before another thread gets the stream, this
 * one calls ntcopy_stream_fence().
 */
int ntcopy_stream_copy_unfenced(ntcopy_stream *stream, void *dst, const void *src, size_t len,
				ntcopy_path *path);
int ntcopy_stream_fill_unfenced(ntcopy_stream *stream, void *dst, int value, size_t len,
				ntcopy_path *path);

/* Fences what is unfenced; the stream goes on. 0, or -EINVAL if it is NULL or finished. */
int ntcopy_stream_fence(ntcopy_stream *stream);

/* What went by so far, finished or not. 0, or -EINVAL if the stream is NULL. */
int ntcopy_stream_moved(const ntcopy_stream *stream, struct ntcopy_moved *moved);

/*
 * Ends a stream: fences what is unfenced, and says how much went by. It takes no
 * more pieces; it still wants ntcopy_stream_destroy(). Finishing twice answers
 * the same twice. 0, or -EINVAL if the stream is NULL.
 */
int ntcopy_stream_finish(ntcopy_stream *stream, struct ntcopy_moved *moved);

/* Fences what is unfenced, and frees a stream, finished or not. NULL is nothing to free. */
void ntcopy_stream_destroy(ntcopy_stream *stream);

/* Sockets ----------------------------------------------------------------- */

/* Who takes a hint. */
#define NTCOPY_SUPPORT_NONE	0	/* neither: sends are ordinary sends */
#define NTCOPY_SUPPORT_KERNEL	1	/* the kernel's own socket layer */
#define NTCOPY_SUPPORT_MODULE	2	/* a loaded module */

/*
 * Opts a socket in, once, before its first hinted send: on a socket that did not
 * opt in the kernel ignores MSG_NTCOPY. setting says which sends are hinted, those
 * by write() included (<ntcopy/uapi.h>): from so many bytes on, 256 KiB for a stream
 * (1 MiB by the module) and 4 KiB for datagrams if nothing was measured, and those by ntcopy_send() with its
 * hint and with MSG_NTCOPY; NTCOPY_FLAGGED the latter alone; 0 none. The kernel is
 * asked first, then the module, which attaches the socket. Called again it changes
 * the setting. What a listener accepts has its setting.
 *
 *	>= 0		NTCOPY_SUPPORT_*: who took it, for ntcopy_send().
 *			NTCOPY_SUPPORT_NONE is not an error: the socket works as ever.
 *	-EINVAL		setting; or the kernel has SO_NTCOPY, but not this value.
 *	-EBADF		fd is not open, or was opened with O_PATH.
 *	-ENOTSOCK	fd is not a socket.
 *	-ENOMEM		The module has no memory for it.
 *	-EMFILE, -ENFILE	No descriptor left for the module's device, which the
 *			first call opens (close-on-exec) and the library keeps.
 */
int ntcopy_socket_enable(int fd, int setting);

/*
 * Takes back what ntcopy_socket_enable() did, and says by whom: no send of the
 * socket is hinted, and the module lets go of it. Errors as there.
 */
int ntcopy_socket_disable(int fd);

/*
 * Who takes this socket's hints, and in *setting which of its sends are hinted:
 * 0 for one that did not opt in. The module rounds a number up to a power of two from
 * 256 KiB on. NTCOPY_SUPPORT_NONE for one that isn't attached to the module. Errors as
 * there.
 */
int ntcopy_socket_mode(int fd, int *setting);

/*
 * Who would take hints: asks the kernel with a throw-away socket, then the module.
 * NTCOPY_SUPPORT_*, or the negative errno of socketpair(2): -EMFILE and so on.
 * -EPROTO: a module is loaded that speaks another series of its interface than this
 * library, so one of the two is too old for the other. `ntcopy module status` says
 * which. Sockets work as without a module then.
 */
int ntcopy_socket_probe(void);

/*
 * send(2) and sendmsg(2) with hints for the copy that the kernel makes, whose
 * destination is the kernel's buffer: NTCOPY_DST_NONTEMPORAL if you don't expect
 * these bytes to be read while they are in cache. The hint travels as MSG_NTCOPY,
 * and costs no system call.
 *
 * support is what ntcopy_socket_enable() answered for this socket, or for the
 * listener that accepted it; with NTCOPY_SUPPORT_NONE these are the plain calls. It
 * is believed: on a socket that did not opt in the kernel ignores the flag, or, as
 * kernels do that don't know it, refuses it (TLS). The bits of the source mean
 * nothing here yet and do no harm. Bytes, errors, order and
 * partial sends are the same with and without. SIGPIPE comes, as with send(2), unless
 * flags has MSG_NOSIGNAL, and NULL for bytes is -EFAULT.
 *
 *	>= 0		The bytes that were taken. What was done with the hint is
 *			told by `ntcopy stat`.
 *	-EINVAL		hints; support; and what send(2) refuses with it.
 *	any other	Those of send(2), negative.
 */
ssize_t ntcopy_send(int fd, const void *buf, size_t len, int flags, unsigned int hints,
		    int support);
ssize_t ntcopy_sendmsg(int fd, const struct msghdr *msg, int flags, unsigned int hints,
		       int support);

#ifdef __cplusplus
}
#endif

#endif /* LIBNTCOPY_H */
