// SPDX-License-Identifier: GPL-2.0
/*
 * IPV6_ADDRFORM, which writes the operations of IPv4 over those of an attached UDP
 * socket of IPv6: it is a socket like any other then, and the module is free when
 * it is closed.
 */
#include "module.h"
#include "module_replace.h"

TEST_F(module, keeps_one_that_does_not_become_ipv4)
{
	int pair[2], ret;

	ASSERT_EQ(open_mapped(pair), 0);
	EXPECT_EQ(attach(pair[0], NTCOPY_SOCK_OBEY), 0);
	EXPECT_EQ(attach(pair[1], NTCOPY_SOCK_OBEY), 0);
	ret = setsockopt(pair[0], IPPROTO_IPV6, IPV6_ADDRFORM, (void *)8, 4);
	EXPECT_EQ(own_error(ret), -EFAULT);
	EXPECT_EQ(become_ipv4(pair[1]), -ENOPROTOOPT);
	EXPECT_EQ(mode_of(pair[0]), NTCOPY_SOCK_OBEY);
	EXPECT_EQ(mode_of(pair[1]), NTCOPY_SOCK_OBEY);
	EXPECT_SENT(pair, 0, 60000);
	close(pair[0]);
	close(pair[1]);
}

TEST_F(module, lets_go_one_that_becomes_ipv4)
{
	int mode, pair[2];

	for (mode = NTCOPY_SOCK_NONE; mode <= NTCOPY_SOCK_OBEY; mode++) {
		ASSERT_EQ(open_mapped(pair), 0);
		EXPECT_EQ(attach(pair[0], mode), 0);
		EXPECT_SENT(pair, MSG_NTCOPY, mode == NTCOPY_SOCK_NONE ? 0 : 60000);
		EXPECT_EQ(become_ipv4(pair[0]), 0);
		EXPECT_EQ(mode_of(pair[0]), -1);
		EXPECT_SENT(pair, MSG_NTCOPY, 0);
		EXPECT_EQ(detach(pair[0]), 0);
		EXPECT_EQ(become_ipv4(pair[0]), -ENOPROTOOPT);
		/* It holds on to the module until it is closed, and a little longer. */
		EXPECT_LE(self->refcnt + 1, refcnt());
		close(pair[0]);
		close(pair[1]);
	}
}

TEST_F(module, lets_go_one_that_was_detached)
{
	int pair[2];

	ASSERT_EQ(open_mapped(pair), 0);
	EXPECT_EQ(attach(pair[0], NTCOPY_SOCK_OBEY), 0);
	EXPECT_EQ(detach(pair[0]), 0);
	EXPECT_EQ(become_ipv4(pair[0]), 0);
	EXPECT_EQ(info().attached, self->before.attached);
	EXPECT_EQ(info().lingering, self->before.lingering + 1);
	EXPECT_SENT(pair, MSG_NTCOPY, 0);
	close(pair[0]);
	close(pair[1]);
}

/* One of IPv4 by then, and as such it never lets go of the module by itself. */
TEST_F(module, takes_one_again_that_became_ipv4)
{
	int pair[2];

	ASSERT_EQ(open_mapped(pair), 0);
	EXPECT_EQ(attach(pair[0], NTCOPY_SOCK_EVERY), 0);
	EXPECT_EQ(become_ipv4(pair[0]), 0);
	EXPECT_EQ(attach(pair[0], NTCOPY_SOCK_OBEY), 0);
	EXPECT_EQ(mode_of(pair[0]), NTCOPY_SOCK_OBEY);
	EXPECT_SENT(pair, 0, 60000);
	EXPECT_EQ(refcnt(), self->refcnt + 2);
	EXPECT_EQ(detach(pair[0]), 0);
	EXPECT_EQ(attach(pair[0], NTCOPY_SOCK_EVERY), 0);
	EXPECT_SENT(pair, 0, 60000);
	close(pair[0]);
	close(pair[1]);
}

/* Who attaches it after that attaches one of IPv4. */
TEST_F(module, takes_one_that_became_ipv4_before)
{
	int pair[2];

	ASSERT_EQ(open_mapped(pair), 0);
	EXPECT_EQ(become_ipv4(pair[0]), 0);
	EXPECT_EQ(attach(pair[0], NTCOPY_SOCK_OBEY), 0);
	EXPECT_SENT(pair, 0, 60000);
	EXPECT_EQ(refcnt(), self->refcnt + 1);
	close(pair[0]);
	close(pair[1]);
}

int main(int argc, char **argv)
{
	return module_main(argc, argv);
}
