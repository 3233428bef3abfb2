/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sends with the hint from C++, and prints what the kernel counted. On a kernel
 * without MSG_NTCOPY the same sends are plain.
 *
 *	c++ -std=c++17 -I../uapi send.cc -o send && ./send
 */
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include <ntcopy/uapi.h>

namespace {

[[noreturn]] void fail(const char *what)
{
	throw std::system_error(errno, std::generic_category(), what);
}

class Socket {
public:
	explicit Socket(int fd) : fd(fd) {}
	~Socket() { close(fd); }
	Socket(const Socket &) = delete;
	Socket &operator=(const Socket &) = delete;

	/* Whether the kernel takes hints on this socket from now on. */
	bool opt_in()
	{
		const int sends = NTCOPY_FLAGGED;

		if (setsockopt(fd, SOL_SOCKET, SO_NTCOPY, &sends, sizeof(sends)) == 0)
			return true;
		if (errno != ENOPROTOOPT)
			fail("SO_NTCOPY");
		return false;
	}

	std::size_t send_hinted(const char *bytes, std::size_t len)
	{
		const ssize_t sent = send(fd, bytes, len, MSG_NTCOPY);

		if (sent < 0)
			fail("send");
		return static_cast<std::size_t>(sent);
	}

	void receive(char *bytes, std::size_t len)
	{
		if (recv(fd, bytes, len, MSG_WAITALL) != static_cast<ssize_t>(len))
			fail("recv");
	}

private:
	int fd;
};

/* /proc/net/netstat has a line of names, and below it one of values. */
std::map<std::string, std::uint64_t> read_counters()
{
	std::map<std::string, std::uint64_t> all;
	std::ifstream file(NTCOPY_STAT_PATH);
	std::string name_line, value_line, name, value;

	std::getline(file, name_line);
	std::getline(file, value_line);
	std::istringstream names(name_line), values(value_line);
	while (names >> name && values >> value)
		if (name.rfind("Ntcopy", 0) == 0)
			all[name] = std::stoull(value);
	return all;
}

int run()
{
	constexpr std::size_t piece_bytes = 64 << 10, pieces = 256;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		fail("socketpair");
	Socket here(pair[0]), there(pair[1]);
	std::cout << (here.opt_in() ? "the kernel takes the hint\n"
				    : "this kernel has no SO_NTCOPY: plain sends\n");

	auto before = read_counters();
	std::vector<char> read_back(piece_bytes);
	std::size_t total = 0;
	for (std::size_t piece = 0; piece < pieces; piece++) {
		const std::vector<char> source(piece_bytes, static_cast<char>(piece));

		for (std::size_t done = 0; done < piece_bytes;) {
			const std::size_t sent = here.send_hinted(source.data() + done, piece_bytes - done);

			there.receive(read_back.data(), sent);
			if (!std::equal(read_back.begin(), read_back.begin() + static_cast<long>(sent),
					source.begin() + static_cast<long>(done))) {
				std::cerr << "a byte is wrong\n";
				return 4;
			}
			done += sent;
			total += sent;
		}
	}
	std::cout << "sent " << total << " bytes\n";
	for (const auto &[name, bytes] : read_counters())
		std::cout << name << ' ' << bytes - before[name] << '\n';
	return 0;
}

} // namespace

int main()
{
	try {
		return run();
	} catch (const std::exception &error) {
		std::cerr << error.what() << '\n';
		return 1;
	}
}
