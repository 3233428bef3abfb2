//! A sandbox that says yes to whatever is set: a filter of system calls has `setsockopt` answer 0.

use std::os::unix::net::UnixStream;
use std::thread;

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter, sock_fprog};

use super::*;

/// Puts this thread, and none else, under the filter.
fn say_yes_to_setsockopt() {
    let statement = |code: u32, k: u32| sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let number = libc::SYS_setsockopt as u32;
    let program = [
        // The first word of what a filter sees is the call's number.
        statement(BPF_LD | BPF_W | BPF_ABS, 0),
        sock_filter { jf: 1, ..statement(BPF_JMP | BPF_JEQ | BPF_K, number) },
        // An error of 0 is none: the call is not made, and answers 0.
        statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO),
        statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: both calls change this thread alone, and the filter is read while the call lasts.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter), 0);
    }
}

#[test]
fn a_yes_that_nothing_follows_is_no_support() {
    let (socket, _peer) = UnixStream::pair().unwrap();
    let answer = thread::spawn(move || {
        say_yes_to_setsockopt();
        assert_eq!(set_unread(socket.as_fd(), Setting::Flagged), Ok(()), "the filter stands");
        (set_option(socket.as_fd(), Setting::Flagged), enable(&socket, Setting::Flagged))
    });
    let (set, enabled) = answer.join().unwrap();
    assert_eq!(set, Err(Errno::NOPROTOOPT));
    assert_ne!(enabled, Ok(Support::Kernel));
}
