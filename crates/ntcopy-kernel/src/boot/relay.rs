//! Passing the command's output on, byte by byte.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use super::Output;
use crate::error::{Context, Error, Result};

/// For an error that has no number.
const EIO: u8 = rustix::io::Errno::IO.raw_os_error() as u8;

/// Two threads, so that a reader who stops reading our output stops the guest's command and
/// nothing else.
pub(super) struct Relays {
    out: JoinHandle<Vec<u8>>,
    err: JoinHandle<Vec<u8>>,
    meters: [Arc<Meter>; 2],
    failed: UnixStream,
    /// Keeps the socket open when both threads have ended: its end is no failure.
    _sender: UnixStream,
}

impl Relays {
    /// Starts passing on from the two lines.
    pub(super) fn start(out: UnixStream, err: UnixStream, output: Output) -> Result<Self> {
        let (failed, sender) = UnixStream::pair().doing("making", "a pair of sockets")?;
        let clone = || sender.try_clone().doing("opening", "a pair of sockets");
        let (out_failed, err_failed) = (clone()?, clone()?);
        let copy = |fd: BorrowedFd<'_>| -> Result<Option<File>> {
            match output {
                Output::Inherit => {
                    let fd = fd.try_clone_to_owned().doing("opening", "the standard output")?;
                    Ok(Some(File::from(fd)))
                }
                Output::Capture => Ok(None),
            }
        };
        let stdout = copy(std::io::stdout().as_fd())?;
        let stderr = copy(std::io::stderr().as_fd())?;
        // What this process printed before comes first.
        let _ = std::io::stdout().flush();
        let meters = [Arc::<Meter>::default(), Arc::default()];
        let [out_meter, err_meter] = meters.clone();
        Ok(Self {
            out: thread::spawn(move || relay(out, stdout, &out_failed, &out_meter)),
            err: thread::spawn(move || relay(err, stderr, &err_failed, &err_meter)),
            meters,
            failed,
            _sender: sender,
        })
    }

    /// Readable when our own output took no more.
    pub(super) fn failed(&self) -> BorrowedFd<'_> {
        self.failed.as_fd()
    }

    /// Why it took no more, once that is readable.
    pub(super) fn failure(&self) -> std::io::Error {
        let mut errno = [EIO];
        let _ = (&self.failed).read(&mut errno);
        std::io::Error::from_raw_os_error(errno[0].into())
    }

    /// Whether all of this output has come.
    pub(super) fn have(&self, sent_bytes: [u64; 2]) -> bool {
        self.meters.iter().zip(sent_bytes).all(|(meter, sent)| meter.bytes() >= sent)
    }

    /// What has come, and whether it is our own output that takes no more for the moment.
    pub(super) fn progress(&self) -> (u64, bool) {
        let bytes = self.meters.iter().map(|meter| meter.bytes()).sum();
        (bytes, self.meters.iter().any(|meter| meter.blocked.load(Ordering::Relaxed)))
    }

    /// Waits for the end of both lines, after the guest is gone.
    pub(super) fn finish(self) -> Result<Passed> {
        let panicked = |_| Error::Guest("a thread that passes output on panicked".into());
        let stdout = self.out.join().map_err(panicked)?;
        let stderr = self.err.join().map_err(panicked)?;
        Ok(Passed { stdout, stderr, bytes: self.meters.map(|meter| meter.bytes()) })
    }
}

#[derive(Default)]
pub(super) struct Passed {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    /// What came over either line, captured or not.
    pub(super) bytes: [u64; 2],
}

#[derive(Default)]
struct Meter {
    bytes: AtomicU64,
    /// Set while it waits for its target.
    blocked: AtomicBool,
}

impl Meter {
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }
}

/// Copies to the end. A target that fails is reported, and the line is drained all the same, so
/// that the guest is never stuck.
fn relay(
    mut line: UnixStream,
    target: Option<File>,
    failed: &UnixStream,
    meter: &Meter,
) -> Vec<u8> {
    let mut captured = Vec::new();
    let mut target = target;
    let capture = target.is_none();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let n = match line.read(&mut chunk) {
            Ok(0) | Err(_) => return captured,
            Ok(n) => n,
        };
        meter.blocked.store(true, Ordering::Relaxed);
        if capture {
            captured.extend_from_slice(&chunk[..n]);
        } else if let Some(file) = &mut target
            && let Err(error) = file.write_all(&chunk[..n])
        {
            target = None;
            // A byte each into a socket with room; the reader lives as long as the guest.
            let errno = error.raw_os_error().and_then(|errno| u8::try_from(errno).ok());
            let _ = (&mut &*failed).write(&[errno.unwrap_or(EIO)]);
        }
        meter.blocked.store(false, Ordering::Relaxed);
        meter.bytes.fetch_add(n as u64, Ordering::Release);
    }
}
