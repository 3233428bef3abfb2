// SPDX-License-Identifier: GPL-2.0
/* A TCP connection over a device that has a feature: the loopback takes few. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "scene.h"

#define OUR_DEVICE	"nt0"
#define OUR_ADDRESS	"10.78.84.1"
#define THEIR_DEVICE	"nt1"
#define THEIR_ADDRESS	"10.78.84.2"
#define PORT		20084
#define MOST_FEATURES	256

struct request {
	struct nlmsghdr head;
	struct ifinfomsg info;
	char attributes[256];
};

static struct rtattr *put(struct request *request, int type, const void *data, size_t len)
{
	struct rtattr *attribute = (void *)request + NLMSG_ALIGN(request->head.nlmsg_len);

	attribute->rta_type = type;
	attribute->rta_len = RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(attribute), data, len);
	request->head.nlmsg_len = NLMSG_ALIGN(request->head.nlmsg_len) +
				  RTA_ALIGN(attribute->rta_len);
	return attribute;
}

static void end_nested(struct request *request, struct rtattr *nested)
{
	nested->rta_len = (void *)request + request->head.nlmsg_len - (void *)nested;
}

static int ask_kernel(const struct request *request)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[512];
	} answer = { 0 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), ret;

	if (fd < 0)
		return -errno;
	ret = own_error(send(fd, request, request->head.nlmsg_len, 0));
	if (ret >= 0)
		ret = own_error(recv(fd, &answer, sizeof(answer), 0));
	close(fd);
	if (ret < 0)
		return ret;
	return answer.head.nlmsg_type == NLMSG_ERROR ? answer.error.error : -EPROTO;
}

/* Here, with the other end in another network namespace. */
static int make_veth(int their_namespace)
{
	struct request request = {
		.head.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
		.head.nlmsg_type = RTM_NEWLINK,
		.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK,
	};
	struct rtattr *link, *data, *peer;
	struct ifinfomsg info = { 0 };

	put(&request, IFLA_IFNAME, OUR_DEVICE, sizeof(OUR_DEVICE));
	link = put(&request, IFLA_LINKINFO, NULL, 0);
	put(&request, IFLA_INFO_KIND, "veth", sizeof("veth"));
	data = put(&request, IFLA_INFO_DATA, NULL, 0);
	peer = put(&request, VETH_INFO_PEER, &info, sizeof(info));
	put(&request, IFLA_IFNAME, THEIR_DEVICE, sizeof(THEIR_DEVICE));
	put(&request, IFLA_NET_NS_FD, &their_namespace, sizeof(their_namespace));
	end_nested(&request, peer);
	end_nested(&request, data);
	end_nested(&request, link);
	return ask_kernel(&request);
}

static void set_address(struct sockaddr *addr, const char *address)
{
	struct sockaddr_in *in = (void *)addr;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = inet_addr(address);
}

static int set_up(int fd, const char *name, const char *address)
{
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	set_address(&request.ifr_addr, address);
	if (ioctl(fd, SIOCSIFADDR, &request) < 0)
		return -errno;
	request.ifr_flags = IFF_UP;
	return own_error(ioctl(fd, SIOCSIFFLAGS, &request));
}

static int set_feature(int fd, const char *name, const char *feature)
{
	union {
		struct ethtool_gstrings head;
		char room[sizeof(struct ethtool_gstrings) + MOST_FEATURES * ETH_GSTRING_LEN];
	} names = { .head = { .cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_FEATURES } };
	union {
		struct ethtool_sfeatures head;
		char room[sizeof(struct ethtool_sfeatures) +
			  MOST_FEATURES / 32 * sizeof(struct ethtool_set_features_block)];
	} set = { .head = { .cmd = ETHTOOL_SFEATURES } };
	struct ifreq request = { 0 };
	unsigned int i;
	int ret;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	request.ifr_data = (void *)&names;
	if (ioctl(fd, SIOCETHTOOL, &request) < 0)
		return -errno;
	for (i = 0; i < names.head.len; i++) {
		if (!strcmp((char *)names.head.data + i * ETH_GSTRING_LEN, feature))
			break;
	}
	if (i == names.head.len)
		return -ENOENT;
	set.head.size = (names.head.len + 31) / 32;
	set.head.features[i / 32].valid = 1U << i % 32;
	set.head.features[i / 32].requested = 1U << i % 32;
	request.ifr_data = (void *)&set;
	ret = own_error(ioctl(fd, SIOCETHTOOL, &request));
	return ret > 0 ? -EINVAL : ret;	/* what it did not do as asked */
}

static int connect_over(int ours, int theirs, const char *feature, struct pair *pair)
{
	struct sockaddr_in to = { .sin_port = htons(PORT) };
	int server, ret;

	set_address((void *)&to, THEIR_ADDRESS);
	if (setns(theirs, CLONE_NEWNET))
		return -errno;
	server = socket(AF_INET, SOCK_STREAM, 0);
	ret = set_up(server, THEIR_DEVICE, THEIR_ADDRESS);
	if (!ret)
		ret = own_error(bind(server, (void *)&to, sizeof(to)));
	if (!ret)
		ret = own_error(listen(server, 1));
	if (setns(ours, CLONE_NEWNET) && !ret)
		ret = -errno;
	pair->tx = socket(AF_INET, SOCK_STREAM, 0);
	made_socket(pair->tx);
	if (!ret)
		ret = set_buffers(pair->tx);
	if (!ret)
		ret = set_up(pair->tx, OUR_DEVICE, OUR_ADDRESS);
	if (ret >= 0)
		ret = set_feature(pair->tx, OUR_DEVICE, feature);
	if (ret >= 0)
		ret = own_error(connect(pair->tx, (void *)&to, sizeof(to)));
	if (ret >= 0)
		ret = own_error(pair->rx = accept(server, NULL, NULL));
	close(server);
	return ret < 0 ? ret : 0;
}

/* The caller is in a network namespace of its own from then on, whatever comes of it. */
int open_over_device(const char *feature, struct pair *pair)
{
	int theirs, ours, ret;

	if (unshare(CLONE_NEWNET))
		return -errno;
	theirs = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (unshare(CLONE_NEWNET)) {
		ret = -errno;
		close(theirs);
		return ret;
	}
	ours = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	ret = make_veth(theirs);
	if (!ret)
		ret = connect_over(ours, theirs, feature, pair);
	close(theirs);
	close(ours);
	return ret;
}
