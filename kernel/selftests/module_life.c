// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets that are accepted on an attached one, who may share one, and that
 * nothing is left of those that are closed.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "module.h"

#define CYCLES		10000
/* KASAN keeps what was freed last, up to a 32nd of the memory: it comes before. */
#define WARM_UP		5000
#define CYCLE_BYTES	40000
/* Cycles that leaked all of it would be 400 MB. */
#define LEAK_KIB	40000

FIXTURE(accepted)
{
	struct ntcopy_module_info before;
	long refcnt;
	int server, pair[2];
	struct sockaddr_storage addr;
	socklen_t len;
};

FIXTURE_VARIANT(accepted)
{
	const struct family *family;
};

FIXTURE_VARIANT_ADD(accepted, unix_stream) { .family = &unix_stream };

FIXTURE_SETUP(accepted)
{
	ASSERT_EQ(set_mode("1"), 0);
	opt_in = false;
	self->before = info();
	self->refcnt = refcnt();
	self->pair[0] = -1;
	self->pair[1] = -1;
	self->server = socket(variant->family->domain, SOCK_STREAM, 0);
	self->len = listening_address(variant->family, &self->addr);
	ASSERT_EQ(bind(self->server, (void *)&self->addr, self->len), 0);
	ASSERT_EQ(listen(self->server, 8), 0);
	self->len = sizeof(self->addr);
	ASSERT_EQ(getsockname(self->server, (void *)&self->addr, &self->len), 0);
}

FIXTURE_TEARDOWN(accepted)
{
	int i;

	close(self->pair[0]);
	close(self->pair[1]);
	close(self->server);
	for (i = 0; i < 500 && refcnt() != self->refcnt; i++)
		usleep(20000);
	EXPECT_EQ(info().attached, self->before.attached);
	EXPECT_EQ(info().lingering, self->before.lingering);
	EXPECT_EQ(refcnt(), self->refcnt);
}

TEST_F(accepted, have_what_the_listener_has)
{
	int number, i;

	for (i = 0; i < 3; i++) {
		number = some_number(i);
		EXPECT_EQ(attach(self->server, number), 0);
		self->pair[1] = connect_one(&self->addr, self->len);
		self->pair[0] = accept(self->server, NULL, NULL);
		EXPECT_EQ(number_of(self->pair[0]), number);
		EXPECT_EQ(number_of(self->pair[1]), -1);
		EXPECT_EQ(info().attached, self->before.attached + 2);
		EXPECT_SENT(self->pair, MSG_NTCOPY, number ? 60000 : 0);
		close(self->pair[0]);
		close(self->pair[1]);
	}
}

TEST_F(accepted, have_nothing_of_a_detached_listener)
{
	EXPECT_EQ(attach(self->server, NTCOPY_MODULE_MIN_BYTES), 0);
	EXPECT_EQ(detach(self->server), 0);
	self->pair[1] = connect_one(&self->addr, self->len);
	self->pair[0] = accept(self->server, NULL, NULL);
	EXPECT_EQ(number_of(self->pair[0]), -1);
	EXPECT_EQ(info().lingering, self->before.lingering + 1);
	EXPECT_SENT(self->pair, MSG_NTCOPY, 0);
}

TEST_F(accepted, are_not_there_if_nobody_connects)
{
	int i;

	EXPECT_EQ(attach(self->server, NTCOPY_MODULE_MIN_BYTES), 0);
	ASSERT_EQ(fcntl(self->server, F_SETFL, O_NONBLOCK), 0);
	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(accept(self->server, NULL, NULL), -1);
		ASSERT_EQ(errno, EAGAIN);
	}
	EXPECT_EQ(info().attached, self->before.attached + 1);
	EXPECT_EQ(refcnt(), self->refcnt + 1);
}

/* A socket in the backlog, and one that is accepted and closed at once. */
TEST_F(accepted, may_be_closed_before_they_are_accepted)
{
	int i;

	EXPECT_EQ(attach(self->server, NTCOPY_MODULE_MIN_BYTES), 0);
	for (i = 0; i < 100; i++) {
		self->pair[1] = connect_one(&self->addr, self->len);
		close(self->pair[1]);
		close(accept(self->server, NULL, NULL));
	}
	self->pair[1] = connect_one(&self->addr, self->len);
}

static long available_kib(void)
{
	static const char name[] = "MemAvailable:";
	char text[4096], *at;

	if (read_file("/proc/meminfo", text, sizeof(text)) < 0)
		return -1;
	at = strstr(text, name);
	return at ? atol(at + strlen(name)) : -1;
}

static void cycle(struct __test_metadata *_metadata, int i)
{
	static unsigned char data[CYCLE_BYTES];
	struct pair pair = { .tx = -1, .rx = -1 };
	bool sender_first = i / 2 % 2;

	ASSERT_EQ(unix_stream.open(&unix_stream, &pair), 0);
	ASSERT_EQ(attach(pair.tx, some_number(i / 3)), 0);
	ASSERT_EQ(send(pair.tx, data, CYCLE_BYTES, MSG_NTCOPY), CYCLE_BYTES);
	if (i % 7 == 0)
		ASSERT_EQ(detach(pair.tx), 0);
	if (i % 2)
		ASSERT_EQ(recv(pair.rx, data, CYCLE_BYTES, MSG_WAITALL), CYCLE_BYTES);
	close(sender_first ? pair.tx : pair.rx);
	close(sender_first ? pair.rx : pair.tx);
}

/* Nothing is left of them, read or unread. */
TEST_F_TIMEOUT(module, leaves_nothing_behind, 2 * TIMEOUT_SECONDS)
{
	long before, gone;
	int i;

	for (i = 0; i < WARM_UP; i++)
		cycle(_metadata, i);
	before = available_kib();
	ASSERT_LT(0, before);
	for (i = 0; i < CYCLES; i++)
		cycle(_metadata, i);
	gone = before - available_kib();
	/* What was read last is given back a little later. */
	for (i = 0; i < 500 && gone >= LEAK_KIB; i++) {
		usleep(20000);
		gone = before - available_kib();
	}
	EXPECT_LT(gone, LEAK_KIB) {
		TH_LOG("%ld KiB are gone", gone);
	}
}

int main(int argc, char **argv)
{
	return module_main(argc, argv);
}
