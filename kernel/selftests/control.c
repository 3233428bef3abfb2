// SPDX-License-Identifier: GPL-2.0
/* What rides along with the data of a unix socket: descriptors, credentials. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "identical.h"

FIXTURE(riding) {};
FIXTURE_SETUP(riding) {}
FIXTURE_TEARDOWN(riding) {}

FIXTURE_VARIANT(riding) {
	const struct family *family;
	const struct mode *mode;
};

FIXTURE_VARIANT_ADD(riding, unix_stream_obeyed) { VARIANT(unix_stream, obeyed) };
FIXTURE_VARIANT_ADD(riding, unix_dgram_obeyed) { VARIANT(unix_dgram, obeyed) };
FIXTURE_VARIANT_ADD(riding, unix_seqpacket_obeyed) { VARIANT(unix_seqpacket, obeyed) };
FIXTURE_VARIANT_ADD(riding, unix_stream_socket) { VARIANT(unix_stream, socket) };
FIXTURE_VARIANT_ADD(riding, unix_stream_all) { VARIANT(unix_stream, all) };

union control {
	char space[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	struct cmsghdr align;
};

static void note_arrived(struct scene *scene, struct msghdr *msg)
{
	struct cmsghdr *cmsg;
	struct stat status;
	struct ucred cred;
	int fd, ret;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_type == SCM_RIGHTS) {
			memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
			ret = fstat(fd, &status);
			note(scene, "a file: %d, device %d", ret, (int)status.st_rdev);
			close(fd);
		} else {
			memcpy(&cred, CMSG_DATA(cmsg), sizeof(cred));
			note(scene, "from %d:%d, us: %d", cred.uid, cred.gid,
			     cred.pid == getpid());
		}
	}
}

static void fill_control(struct msghdr *msg, union control *control, int fd)
{
	struct ucred cred = { .pid = getpid(), .uid = 1234, .gid = 2345 };
	struct cmsghdr *cmsg;

	memset(control, 0, sizeof(*control));
	msg->msg_control = control;
	msg->msg_controllen = sizeof(*control);
	cmsg = CMSG_FIRSTHDR(msg);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	cmsg = CMSG_NXTHDR(msg, cmsg);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_CREDENTIALS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(cred));
	memcpy(CMSG_DATA(cmsg), &cred, sizeof(cred));
}

/* A descriptor and another process' credentials, with data on each side of them. */
static void send_control(struct scene *scene, unsigned char *data, size_t len, int fd)
{
	unsigned char *got = pages(30);
	struct iovec iov = { .iov_base = data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control;
	ssize_t ret;

	fill_control(&msg, &control, fd);
	ret = sendmsg(scene->pair.tx, &msg, scene->mode->flag);
	if (scene_account(scene, "sendmsg with control", len, ret) < 0)
		return;
	iov.iov_base = got;
	iov.iov_len = len;
	memset(&control, 0, sizeof(control));
	msg.msg_controllen = sizeof(control);
	ret = recvmsg(scene->pair.rx, &msg, MSG_DONTWAIT);
	note(scene, "recvmsg: %zd, flags %x", ret, msg.msg_flags);
	if (ret > 0 && memcmp(got, data, ret))
		scene->transcript->wrong = true;
	note_arrived(scene, &msg);
	if (ret > 0 && ret < (ssize_t)len)
		scene_expect(scene, data + ret, len - ret);
}

static void scene_riding(struct scene *scene)
{
	static const size_t lengths[] = { 1, 4096, 50000, 100001 };
	unsigned char *data = pages(26);
	int fd = open("/dev/null", O_RDONLY), one = 1;
	size_t i;

	/* The module leaves a send to the plain copy if something rides along. */
	if (via_module())
		scene->transcript->mixed = true;
	fill(data, 26 * 4096, 55);
	scene_open(scene);
	setsockopt(scene->pair.rx, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		send_control(scene, data, lengths[i], fd);
		scene_both(scene, data + 1, 3000);
	}
	/* A descriptor that is none. */
	send_control(scene, data, 5000, -1);
}

TEST_FAMILY(riding, descriptors_and_credentials)
{
	identical(_metadata, scene_riding, variant->family, variant->mode);
}

int main(int argc, char **argv)
{
	return ntcopy_main(argc, argv);
}
