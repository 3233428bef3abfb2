/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Loaded late, with its own calls bound to its own dependencies first.
 */
#include <unistd.h>

ssize_t plugin_write(int fd, const void *bytes, size_t size);

ssize_t plugin_write(int fd, const void *bytes, size_t size)
{
	return write(fd, bytes, size);
}
