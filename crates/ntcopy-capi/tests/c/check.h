/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the C tests share. A test ends with 0 (passed), 1 (failed; the line and
 * the values are on standard error) or 77 (can't be asked here, with the reason).
 * With an argument it runs under a checker that is slow, and that takes a pointer
 * to nothing for a mistake even where the kernel is asked to refuse it.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                  \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

#define CHECK_IS(expression, expected)                                                    \
	do {                                                                              \
		long long is_ = (long long)(expression), must_ = (long long)(expected);   \
		if (is_ != must_) {                                                       \
			fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__,        \
				__LINE__, #expression, is_, must_);                       \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

#endif
