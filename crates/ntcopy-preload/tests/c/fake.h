/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FAKE_H
#define FAKE_H

/* An option of the kernel that fake.c plays: how often SO_NTCOPY was set. */
#define FAKE_SETS	(SO_NTCOPY + 1)

#endif
