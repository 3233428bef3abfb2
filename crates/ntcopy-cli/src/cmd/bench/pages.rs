//! `ntcopy bench pages`: clearing and copying pages.

mod fork;

use std::process::ExitCode;

use clap::ValueEnum;
use ntcopy_bench::experiment::bulk::{Action, ReadBack};
use ntcopy_bench::experiments::pages;
use ntcopy_bench::experiments::pages::fork::{ForkMode, ForkSettings};
use ntcopy_record::ExperimentKind;
use ntcopy_record::units::Bytes;

use super::args::Common;

const EXAMPLES: &str = "\
Examples:
  ntcopy bench pages --quick                             18 cells, about a minute
  ntcopy bench pages --action copy --read-back all       the question of 2004
  ntcopy bench pages --buffer 32KiB,256KiB --modes movnti,sse-nt-t0
  ntcopy bench pages --form fork --kernel um             the fork() loop, 32 cells, some minutes

Form pages, in user space. A call clears or copies every page of a buffer, each fenced by \
itself, and then reads back nothing, some of it (100 bytes of each page) or all of it.

Ways: rep-b (rep stosb, rep movsb: what the others are compared with), rep-q, sse-t0, sse-nta \
(normal stores; PREFETCHT0 or PREFETCHNTA on the source), sse-nt-t0, sse-nt-nta (non-temporal \
stores), movnti, movdir64b, clzero.

Form fork: alloc(buffer); for (;;) { fork(); use(buffer); }. Parent or child writes to the \
buffer while the other waits, one byte a page or every byte, and the kernel copies the pages. \
Modes: temporal (the baseline), nt (the kernel clears and copies non-temporally), nt-copy (it \
only copies so). Only --kernel um can be switched; this kernel shows the baseline. \
/proc/vmstat's counters must agree with the mode in every sample.";

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Pages,
    Fork,
}

/// Arguments of `bench pages`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct PagesArgs {
    /// pages (the routines, in user space) or fork (the fork() loop)
    #[arg(long, value_name = "FORM", default_value = "pages")]
    form: Form,
    /// Form pages: ways to compare with rep-b; form fork: modes to compare with temporal [default of
    /// fork: nt,nt-copy]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    modes: Vec<String>,
    /// Form pages: clear, copy [default: both]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    action: Vec<Action>,
    /// Form pages: what is read afterwards: none, some, all [default: each]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    read_back: Vec<ReadBack>,
    /// Sizes of the buffer, whole pages of 4 KiB [default: see --list]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    buffer: Vec<Bytes>,
}

impl PagesArgs {
    fn buffer_bytes(&self) -> Vec<u64> {
        self.buffer.iter().map(|size| size.0).collect()
    }

    fn fork_modes(&self) -> Result<Vec<ForkMode>, String> {
        let one = |mode: &String| mode.parse().map_err(|error| format!("--modes {error}"));
        self.modes.iter().map(one).collect()
    }

    fn fork_settings(&self, common: &Common, modes: Vec<ForkMode>) -> ForkSettings {
        ForkSettings {
            modes,
            buffer_bytes: self.buffer_bytes(),
            pairs: common.extent.pairs,
            quick: common.extent.quick,
        }
    }

    /// An option that the form does not have, in words.
    fn of_the_other_form(&self, common: &Common) -> Option<String> {
        let of_pages =
            [("action", !self.action.is_empty()), ("read-back", !self.read_back.is_empty())];
        let of_fork = [("kernel", common.kernel != "host")];
        let (others, form, hint) = match self.form {
            Form::Pages => (&of_fork[..], "fork", "add --form fork"),
            Form::Fork => (&of_pages[..], "pages", "leave out --form fork"),
        };
        let (option, _) = others.iter().find(|(_, is_given)| *is_given)?;
        Some(format!("--{option} is of --form {form}: {hint}"))
    }

    fn settings(&self, common: &Common) -> pages::Settings {
        pages::Settings {
            peers: self.modes.clone(),
            actions: self.action.clone(),
            read_back: self.read_back.clone(),
            buffer_bytes: self.buffer_bytes(),
            pairs: common.extent.pairs,
            quick: common.extent.quick,
        }
    }
}

pub fn run(common: &Common, args: &PagesArgs) -> anyhow::Result<ExitCode> {
    if let Some(option) = args.of_the_other_form(common) {
        eprintln!("ntcopy: {option}");
        return Ok(ExitCode::from(2));
    }
    if args.form == Form::Fork {
        return match args.fork_modes() {
            Ok(modes) => fork::run(common, args, &modes),
            Err(why) => {
                eprintln!("ntcopy: {why}");
                Ok(ExitCode::from(2))
            }
        };
    }
    let settings = args.settings(common);
    super::bulk::run(common, &ExperimentKind::Pages, &args.modes, &|room| {
        pages::plan(&settings, room)
    })
}
