// SPDX-License-Identifier: MIT OR Apache-2.0

// Sends with the hint from Go, and prints what the kernel counted. On a kernel
// without MSG_NTCOPY the same sends are plain.
//
//	go run send.go
package main

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
)

// The numbers of uapi/ntcopy/uapi.h.
const (
	msgNtcopy     = 0x1000000
	soNtcopy      = 0x4e54
	ntcopyFlagged = 0x7fffffff
)

const (
	pieceBytes = 64 << 10
	pieces     = 256
)

// optIn says whether the kernel takes hints on this socket from now on.
func optIn(fd int) (bool, error) {
	err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, soNtcopy, ntcopyFlagged)
	if errors.Is(err, syscall.ENOPROTOOPT) {
		return false, nil
	}
	return err == nil, err
}

// counters has what the kernel has counted so far, in bytes, by name: /proc/net/netstat has a line
// of names, and below it one of values.
func counters() (map[string]uint64, error) {
	text, err := os.ReadFile("/proc/net/netstat")
	if err != nil {
		return nil, err
	}
	lines := strings.SplitN(string(text), "\n", 3)
	if len(lines) < 2 {
		return nil, errors.New("/proc/net/netstat has no counters")
	}
	names, values := strings.Fields(lines[0]), strings.Fields(lines[1])
	all := map[string]uint64{}
	for i := 0; i < len(names) && i < len(values); i++ {
		if !strings.HasPrefix(names[i], "Ntcopy") {
			continue
		}
		if all[names[i]], err = strconv.ParseUint(values[i], 10, 64); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// again calls a system call until no signal interrupts it: Go's own run-time sends some.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

// pass sends a piece and compares what arrives; it gives the bytes sent.
func pass(pair [2]int, source, readBack []byte) (int, error) {
	total := 0
	for total < len(source) {
		left := source[total:]
		sent, err := again(func() (int, error) {
			return syscall.SendmsgN(pair[0], left, nil, nil, msgNtcopy)
		})
		if err != nil {
			return total, err
		}
		for got := 0; got < sent; {
			n, err := again(func() (int, error) { return syscall.Read(pair[1], readBack[got:sent]) })
			if err != nil {
				return total, err
			}
			got += n
		}
		if !bytes.Equal(readBack[:sent], left[:sent]) {
			return total, errors.New("a byte is wrong")
		}
		total += sent
	}
	return total, nil
}

func run() error {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	taken, err := optIn(pair[0])
	if err != nil {
		return err
	}
	if taken {
		fmt.Println("the kernel takes the hint")
	} else {
		fmt.Println("this kernel has no SO_NTCOPY: plain sends")
	}
	before, err := counters()
	if err != nil {
		return err
	}
	total := 0
	readBack := make([]byte, pieceBytes)
	for piece := 0; piece < pieces; piece++ {
		sent, err := pass(pair, bytes.Repeat([]byte{byte(piece)}, pieceBytes), readBack)
		if err != nil {
			return err
		}
		total += sent
	}
	fmt.Printf("sent %d bytes\n", total)
	after, err := counters()
	if err != nil {
		return err
	}
	names := make([]string, 0, len(after))
	for name := range after {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Println(name, after[name]-before[name])
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
