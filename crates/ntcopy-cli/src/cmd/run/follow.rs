//! A program that the library does not reach, followed from outside.
//!
//! The program takes this process, with its number, so who follows is another one: not its child,
//! which it might wait for, and out of the terminal's reach. It ends when the program has ended.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, IntoRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use ntcopy_inflight::Process;
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::HintOptions;
use crate::cmd::set::guard::{self, Woken, Worker};
use crate::cmd::set::notes::Notes;
use crate::cmd::set::setter::{Numbers, Setter};
use crate::cmd::set::text;
use crate::cmd::set::tree::Tree;
use crate::cmd::set::way::Way;

/// A program mostly makes its listeners when it begins.
const BEGINNING: Duration = Duration::from_secs(1);
const AT_THE_BEGINNING: Duration = Duration::from_millis(20);
const LATER: Duration = Duration::from_secs(1);

/// Has this process followed from the moment on in which it becomes another program.
pub fn start(how: &HintOptions) -> io::Result<()> {
    let process = Process::read(std::process::id())?;
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty())?;
    let (until_exec, held_until_exec) = io::pipe()?;
    let (mut number, own_number) = io::pipe()?;
    // SAFETY: this program has no thread but this one, whose locks and memory the child has whole.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {
            drop(held_until_exec);
            let keep = [until_exec.as_raw_fd(), own_number.as_raw_fd(), pidfd.as_raw_fd()];
            become_nobodys_child(&keep);
            let follower = Follower { process, pidfd, how: how.clone() };
            let _ = follower.begin(until_exec.into(), own_number.into());
            std::process::exit(0)
        }
        child => wait_for(child),
    }
    drop(own_number);
    let mut follower = [0; 4];
    number.read_exact(&mut follower)?;
    // Where that is asked for (kernel.yama.ptrace_scope=1), it may look into the program; elsewhere
    // there is nothing to allow.
    // SAFETY: numbers alone.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::from(u32::from_ne_bytes(follower))) };
    // Closed by exec.
    let _ = held_until_exec.into_raw_fd();
    Ok(())
}

fn wait_for(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: the status is written to a variable of its type.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// In a session of its own, with none of the descriptors that the program is to have but standard
/// error: a copy of one would keep it open.
fn become_nobodys_child(keep: &[RawFd]) {
    // SAFETY: numbers alone. The parent of what goes on here has ended.
    unsafe {
        libc::setsid();
        if libc::fork() != 0 {
            libc::_exit(0);
        }
    }
    let numbers = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> =
        numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers {
        if number != libc::STDERR_FILENO && !keep.contains(&number) {
            // SAFETY: nothing in this process uses it any more.
            unsafe { libc::close(number) };
        }
    }
    // What is opened next has the numbers of standard input and output.
    for _ in 0..2 {
        let _ =
            File::options().read(true).write(true).open("/dev/null").map(IntoRawFd::into_raw_fd);
    }
}

struct Follower {
    /// What becomes the program.
    process: Process,
    pidfd: OwnedFd,
    how: HintOptions,
}

impl Follower {
    fn begin(self, until_exec: OwnedFd, own_number: OwnedFd) -> io::Result<()> {
        File::from(own_number).write_all(&std::process::id().to_ne_bytes())?;
        // Nothing is ever written there.
        File::from(until_exec).read_to_end(&mut Vec::new())?;
        guard::guarded(|worker| {
            if let Err(why) = self.follow(worker) {
                eprintln!("ntcopy: cannot follow the program: {why}");
            }
            0
        })
        .map(drop)
    }

    fn follow(&self, worker: &Worker) -> Result<(), String> {
        let Ok(mut tree) = Tree::of(self.process.pid) else { return Ok(()) };
        if tree.root.started != self.process.started {
            return Ok(());
        }
        let way = Way::here()?;
        let in_words = |error: io::Error| error.to_string();
        let numbers = Numbers::taken(&way, self.how.min_bytes).map_err(in_words)?;
        // Without them `ntcopy set --off` puts nothing back.
        let notes = Notes::open(&tree.root).ok();
        let mut setter = Setter::new(way, self.how.families.clone(), numbers, notes);
        let begun = Instant::now();
        let mut is_over = false;
        while !is_over {
            setter.look(&mut tree).map_err(in_words)?;
            let pause = if begun.elapsed() < BEGINNING { AT_THE_BEGINNING } else { LATER };
            is_over =
                setter.is_taken_back() || worker.wait(pause, Some(&self.pidfd)) != Woken::Time;
        }
        // Its descendants go on, and have sockets that nobody looks at any more.
        setter.look(&mut tree).map_err(in_words)?;
        eprintln!("ntcopy: {}", words(&tree, &setter));
        setter.finish(&tree);
        Ok(())
    }
}

fn words(tree: &Tree, setter: &Setter) -> String {
    let name = ntcopy_record::foreign::visible(&tree.root.name);
    let (late, listeners) = (setter.late_listeners(), setter.done.listeners());
    let mut words = format!("{name}, followed from outside: ");
    words += &match setter.done.sockets() {
        0 => "no socket was set".to_owned(),
        _ => text::sockets(&setter.done, setter.numbers),
    };
    if listeners > 0 {
        words += &format!("; {late} of {listeners} listening had accepted connections before");
    }
    for why in setter.done.failed.keys().chain(setter.looks.refused.values()) {
        words += &format!("; could not set: {why}");
    }
    words
}
