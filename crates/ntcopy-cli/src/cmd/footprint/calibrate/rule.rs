//! The kernel rule's number, from sends: plain and obeyed ones, by how much is in flight.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ntcopy_bench::run::Stop;
use ntcopy_record::advice::{CacheBytes, Gains, cache_bytes_by};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Record};

use super::Args;
use crate::cmd::{Ended, bench};

const SYSCTL: &str = "net.core.ntcopy_cache_bytes";
/// One object is sent again and again, with a quarter of a MiB in flight to beyond most caches.
const SOCKETS: &str = "1,2,3,4,6,8,12,16,24,32,48,64,96,128,192,256,384";
const OBJECT: &str = "256KiB";

/// What came of it.
pub struct Measured {
    number: CacheBytes,
    kernel: String,
    record: PathBuf,
    took: Duration,
}

/// Measures, by this program's own experiment, which says why it could not.
pub fn measure(args: &Args, kernel: &str) -> anyhow::Result<Measured> {
    let begin = Instant::now();
    let place = bench::record_dir(None, &ExperimentKind::Unix)?;
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let arguments = ["bench", "unix", "--kernel", kernel, "--modes", "nt", "--quick"];
    let mut command = bench::anew(&arguments)?;
    command.args(["--sockets", args.sockets.as_deref().unwrap_or(SOCKETS)]);
    command.args(["--object", OBJECT, "--dataset", OBJECT, "--out"]).arg(&place);
    if args.allow_not_a_timing {
        command.arg("--allow-not-a-timing");
    }
    let code = bench::until_ended(command, &stop)?;
    if code != 0 {
        return Err(Ended { code, why: String::new() }.into());
    }
    let record = Record::read(&place)?;
    let number = cache_bytes_by(&record).context("the record holds no sends to compare")?;
    let kernel = format!("{} ({})", record.machine.kernel_release, record.machine.kernel_kind);
    Ok(Measured { number, kernel, record: place, took: begin.elapsed() })
}

impl Measured {
    /// The line for `/etc/sysctl.d`, and what it rests on.
    pub fn text(&self) -> String {
        let CacheBytes { bytes, gains, gain } = &self.number;
        let figure = gain
            .as_ref()
            .map_or(String::new(), |gain| format!(": {gain} over {} cells", gain.cells));
        let from = Bytes(*bytes);
        let says = match gains {
            Gains::From => format!("Obeyed hints win with {from} and more in flight{figure}."),
            Gains::Everywhere => {
                format!("Obeyed hints win from the least in flight that was measured on{figure}.")
            }
            Gains::Nowhere => format!(
                "Obeyed hints win nowhere: with {from} all that was measured is copied normally. \
                 The kernel's default may be as good; ntcopy advise does not set this."
            ),
        };
        format!(
            "{SYSCTL} = {bytes}\n{says}\nMeasured in {:.0} s, in {}.\n",
            self.took.as_secs_f64(),
            self.kernel
        )
    }

    /// Says where the record is, and what to do with the number.
    pub fn say_where(&self) {
        eprintln!("record: {}; ntcopy advise goes by it", self.record.display());
    }
}
