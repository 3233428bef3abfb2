//! One at a time in the cache.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::Cache;
use crate::error::{Context, Result};
use crate::interrupt::Interrupts;
use crate::progress::Progress;

/// The cache's lock. The kernel gives it back when this is dropped, or the process dies.
pub(crate) struct Lock {
    _file: File,
}

/// What is locked by itself: packages for real machines take hours, and a module is not to wait for
/// a kernel.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// And all that is not the others'.
    Kernels,
    Modules,
    Builds,
}

impl Cache {
    /// Takes a lock, waiting for whoever has it, and clears away what dead processes left.
    pub(crate) fn lock(
        &self,
        part: Part,
        interrupts: &Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<Lock> {
        let (name, folders) = match part {
            Part::Kernels => ("lock", vec![self.kernels(), self.packages()]),
            Part::Modules => ("modules.lock", vec![self.modules()]),
            Part::Builds => ("builds.lock", vec![self.builds()]),
        };
        let root = self.root();
        fs::create_dir_all(root).doing("creating the cache", root)?;
        let path = root.join(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).doing("opening", &path)?;
        let mut waiting = false;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return Err(errno).doing("locking", &path),
            }
            if !waiting {
                waiting = true;
                let mut holder = String::new();
                // Only for the message; the number may be missing for a moment.
                let _ = file.read_to_string(&mut holder);
                let holder = holder.trim();
                progress.note(&format!(
                    "waiting for another ntcopy (process {holder}) that is at work in {}",
                    root.display()
                ));
            }
            interrupts.check()?;
            thread::sleep(Duration::from_millis(200));
        }
        let written = file.rewind().and_then(|()| file.set_len(0)).and_then(|()| {
            let text = format!("{}\n", std::process::id());
            file.write_all(text.as_bytes())
        });
        written.doing("writing", &path)?;
        self.sweep(&folders)?;
        Ok(Lock { _file: file })
    }
}
