/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What ntcopy.h of 0.1.0 declared, for x86-64. It must compile beside every later
 * header of the same soname: a declaration that was changed is a conflict here.
 * Written once, at the release; never edited.
 */
#include <stddef.h>
#include <ntcopy.h>

int ntcopy_copy(void *dst, const void *src, size_t len, unsigned int hints, ntcopy_path *path);
int ntcopy_copy_unfenced(void *dst, const void *src, size_t len, unsigned int hints, ntcopy_path *path);
int ntcopy_copyv(const struct iovec *dst, size_t dst_count, const struct iovec *src, size_t src_count, unsigned int hints, struct ntcopy_moved *moved);
void ntcopy_fence(void);
int ntcopy_fill(void *dst, int value, size_t len, unsigned int hints, ntcopy_path *path);
int ntcopy_fill_unfenced(void *dst, int value, size_t len, unsigned int hints, ntcopy_path *path);
int ntcopy_init(const char **message);
int ntcopy_path_is_nontemporal(ntcopy_path path);
const char *ntcopy_path_name(ntcopy_path path);
int ntcopy_path_source_is_nontemporal(ntcopy_path path);
ssize_t ntcopy_send(int fd, const void *buf, size_t len, int flags, unsigned int hints, int support);
ssize_t ntcopy_sendmsg(int fd, const struct msghdr *msg, int flags, unsigned int hints, int support);
int ntcopy_socket_disable(int fd);
int ntcopy_socket_enable(int fd, int setting);
int ntcopy_socket_mode(int fd, int *setting);
int ntcopy_socket_probe(void);
int ntcopy_stream_copy(ntcopy_stream *stream, void *dst, const void *src, size_t len, ntcopy_path *path);
int ntcopy_stream_copy_unfenced(ntcopy_stream *stream, void *dst, const void *src, size_t len, ntcopy_path *path);
void ntcopy_stream_destroy(ntcopy_stream *stream);
int ntcopy_stream_fence(ntcopy_stream *stream);
int ntcopy_stream_fill(ntcopy_stream *stream, void *dst, int value, size_t len, ntcopy_path *path);
int ntcopy_stream_fill_unfenced(ntcopy_stream *stream, void *dst, int value, size_t len, ntcopy_path *path);
int ntcopy_stream_finish(ntcopy_stream *stream, struct ntcopy_moved *moved);
int ntcopy_stream_growing(unsigned int hints, ntcopy_stream **stream);
int ntcopy_stream_known(uint64_t total_bytes, unsigned int hints, ntcopy_stream **stream);
int ntcopy_stream_moved(const ntcopy_stream *stream, struct ntcopy_moved *moved);
const char *ntcopy_version(void);

_Static_assert(NTCOPY_AUTO == 0, "NTCOPY_AUTO");
_Static_assert(NTCOPY_SRC_TEMPORAL == 1, "NTCOPY_SRC_TEMPORAL");
_Static_assert(NTCOPY_SRC_NONTEMPORAL == 2, "NTCOPY_SRC_NONTEMPORAL");
_Static_assert(NTCOPY_DST_TEMPORAL == 4, "NTCOPY_DST_TEMPORAL");
_Static_assert(NTCOPY_DST_NONTEMPORAL == 8, "NTCOPY_DST_NONTEMPORAL");
_Static_assert(NTCOPY_TEMPORAL == 5, "NTCOPY_TEMPORAL");
_Static_assert(NTCOPY_NONTEMPORAL == 10, "NTCOPY_NONTEMPORAL");
_Static_assert(NTCOPY_IOV_MAX == 1024, "NTCOPY_IOV_MAX");
_Static_assert(NTCOPY_SUPPORT_NONE == 0, "NTCOPY_SUPPORT_NONE");
_Static_assert(NTCOPY_SUPPORT_KERNEL == 1, "NTCOPY_SUPPORT_KERNEL");
_Static_assert(NTCOPY_SUPPORT_MODULE == 2, "NTCOPY_SUPPORT_MODULE");
_Static_assert(sizeof(ntcopy_path) == 4, "sizeof(ntcopy_path)");
_Static_assert(sizeof(struct ntcopy_moved) == 16, "sizeof(struct ntcopy_moved)");
_Static_assert(offsetof(struct ntcopy_moved, bytes) == 0, "offsetof(struct ntcopy_moved, bytes)");
_Static_assert(offsetof(struct ntcopy_moved, nontemporal_bytes) == 8, "offsetof(struct ntcopy_moved, nontemporal_bytes)");
