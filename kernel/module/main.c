// SPDX-License-Identifier: GPL-2.0
/*
 * ntcopy.ko: MSG_NTCOPY for sockets that are attached through /dev/ntcopy, on a
 * kernel that does not know it.
 */

#include <linux/compat.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/ioctl.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/sockptr.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "module.h"

static int info(struct ntcopy_module_info __user *user)
{
	struct ntcopy_module_info info = { .version = NTCOPY_VERSION_CODE, .series = 3 };

	ntcopy_count_sockets(&info.attached, &info.lingering);
	return copy_to_user(user, &info, sizeof(info)) ? -EFAULT : 0;
}

static int call(struct socket *sock, unsigned int cmd, struct ntcopy_socket *arg)
{
	switch (cmd) {
	case NTCOPY_IOC_ATTACH:
		return ntcopy_attach(sock, arg->min_bytes);
	case NTCOPY_IOC_DETACH:
		return ntcopy_detach(sock);
	}
	return ntcopy_query(sock, arg);
}

/* The number of an attachment has a meaning, that of the others has none. */
static bool is_valid(unsigned int cmd, const struct ntcopy_socket *arg)
{
	if (arg->flags || arg->reserved)
		return false;
	return cmd == NTCOPY_IOC_QUERY || !arg->min_bytes ||
	       (cmd == NTCOPY_IOC_ATTACH && arg->min_bytes >= NTCOPY_MIN_BYTES);
}

static int on_socket(unsigned int cmd, struct ntcopy_socket __user *user)
{
	struct ntcopy_socket arg;
	struct socket *sock;
	int ret;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (!is_valid(cmd, &arg))
		return -EINVAL;
	sock = sockfd_lookup(arg.fd, &ret);
	if (!sock)
		return ret;
	ret = call(sock, cmd, &arg);
	sockfd_put(sock);
	if (ret < 0 || cmd != NTCOPY_IOC_QUERY)
		return ret;
	return copy_to_user(user, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static long on_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case NTCOPY_IOC_ATTACH:
	case NTCOPY_IOC_DETACH:
	case NTCOPY_IOC_QUERY:
		return on_socket(cmd, user);
	case NTCOPY_IOC_INFO:
		return info(user);
	}
	/* One of ours, with an argument that is not. */
	if (_IOC_TYPE(cmd) == _IOC_TYPE(NTCOPY_IOC_ATTACH) &&
	    _IOC_NR(cmd) >= _IOC_NR(NTCOPY_IOC_ATTACH) &&
	    _IOC_NR(cmd) <= _IOC_NR(NTCOPY_IOC_INFO))
		return -EINVAL;
	return -ENOTTY;
}

static const struct file_operations fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= on_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.llseek		= noop_llseek,
};

/* Root's, and whose udev says. */
static struct miscdevice device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "ntcopy",
	.fops	= &fops,
	.mode	= 0660,
};

/* Whether the kernel has all this of its own. */
static int ask_kernel(void)
{
	struct socket *sock;
	int value = 0, ret;

	ret = sock_create_kern(&init_net, AF_UNIX, SOCK_STREAM, 0, &sock);
	if (ret < 0)
		return ret;
	ret = sock_setsockopt(sock, SOL_SOCKET, SO_NTCOPY, KERNEL_SOCKPTR(&value),
			      sizeof(value));
	sock_release(sock);
	if (ret == -ENOPROTOOPT)
		return 0;
	pr_err("ntcopy: this kernel has MSG_NTCOPY already: the module is not needed\n");
	return -EEXIST;
}

static int __init ntcopy_init(void)
{
	int ret = ask_kernel();

	if (ret < 0)
		return ret;
	ret = ntcopy_tables_init();
	if (ret < 0)
		return ret;
	ret = ntcopy_sysctl_init();
	if (ret < 0)
		goto free;
	ret = ntcopy_stat_init();
	if (ret < 0)
		goto unset;
	ret = misc_register(&device);
	if (ret < 0)
		goto unregister;
	return 0;
unregister:
	ntcopy_stat_exit();
unset:
	ntcopy_sysctl_exit();
free:
	ntcopy_tables_exit();
	return ret;
}

static void __exit ntcopy_exit(void)
{
	misc_deregister(&device);
	ntcopy_stat_exit();
	ntcopy_sysctl_exit();
	ntcopy_tables_exit();
}

module_init(ntcopy_init);
module_exit(ntcopy_exit);

MODULE_DESCRIPTION("MSG_NTCOPY for attached sockets: sends that bypass the CPU caches");
MODULE_VERSION(NTCOPY_VERSION);
MODULE_LICENSE("GPL");
