/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Loaded late, with its own calls bound to its own dependencies first.
 */
#include <sys/socket.h>

int plugin_socket(void);

int plugin_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0);
}
