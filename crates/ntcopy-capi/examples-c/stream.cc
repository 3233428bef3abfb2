// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A stream in C++: an owner that frees it, and errors as exceptions.
//
//	c++ -std=c++17 stream.cc $(pkg-config --cflags --libs ntcopy) -o stream
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <numeric>
#include <system_error>
#include <vector>

#include <ntcopy.h>

namespace {

void check(int result)
{
	if (result < 0)
		throw std::system_error(-result, std::generic_category(), "ntcopy");
}

class Stream {
public:
	Stream(std::uint64_t total_bytes, unsigned int hints)
	{
		ntcopy_stream *made = nullptr;

		check(ntcopy_stream_known(total_bytes, hints, &made));
		stream_.reset(made);
	}

	// Where the ranges overlap, as memmove(). Returns the path's name.
	const char *copy(void *to, const void *from, std::size_t len)
	{
		ntcopy_path path = 0;

		check(ntcopy_stream_copy(stream_.get(), to, from, len, &path));
		return ntcopy_path_name(path);
	}

	ntcopy_moved finish()
	{
		ntcopy_moved moved{};

		check(ntcopy_stream_finish(stream_.get(), &moved));
		return moved;
	}

private:
	struct Destroy {
		void operator()(ntcopy_stream *stream) const { ntcopy_stream_destroy(stream); }
	};
	std::unique_ptr<ntcopy_stream, Destroy> stream_;
};

} // namespace

int main()
try {
	constexpr std::size_t piece_bytes = 64 << 10;
	std::vector<unsigned char> from(16 << 20), to(from.size());
	const char *path = nullptr;

	std::iota(from.begin(), from.end(), static_cast<unsigned char>(0));
	Stream stream(from.size(), NTCOPY_DST_NONTEMPORAL);
	for (std::size_t at = 0; at < from.size(); at += piece_bytes)
		path = stream.copy(&to[at], &from[at], std::min(piece_bytes, from.size() - at));
	const ntcopy_moved moved = stream.finish();
	std::cout << moved.bytes << " bytes, " << moved.nontemporal_bytes
		  << " of them non-temporally, the last piece by " << path << '\n';
	return to == from ? 0 : 1;
} catch (const std::exception &error) {
	std::cerr << "stream: " << error.what() << '\n';
	return 1;
}
