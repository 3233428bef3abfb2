//! The suite of kernel/selftests in a booted kernel: its programs, and what they have to say.

use std::path::Path;
use std::time::Duration;

use ntcopy_kernel::Built;

use crate::error::Error;
use crate::guests::{self, Guests};
use crate::tap::{Report, section};

/// The programs of the suite, and how many tests each has. One that runs fewer has lost some.
pub const PROGRAMS: [(&str, usize); 11] = [
    ("options", 78),
    ("outside", 3),
    ("counters", 25),
    ("bytes", 199),
    ("edges", 104),
    ("gone", 36),
    ("holes", 18),
    ("flags", 56),
    ("control", 5),
    ("calls", 180),
    ("ntcopy_pages", 90),
];

/// The programs that try the module itself, where it is what takes the hints.
const MODULE_PROGRAMS: [&str; 4] = ["module", "module_life", "module_memory", "module_races"];

/// What the module has not, as the reason of a skipped test begins: it takes unix streams alone, and
/// of their numbers powers of two from 256 KiB on; it has no state for a socket that could remember
/// a rest, and nothing of the kernel's that sets or shows an option.
const MODULE_LACKS: [&str; 5] = [
    "the module has no",
    "the module takes other numbers",
    "the module remembers no rest",
    "the module does not change sock_diag",
    "the module knows no BPF",
];

/// A kernel that the suite runs in.
pub struct Kernel {
    pub name: &'static str,
    /// What it lacks, as the reason of a skipped test begins.
    pub lacks: &'static [&'static str],
    /// The size of the biggest send, in MiB: 64 where the kernel is fast.
    pub big_mib: u32,
    /// When to give up, in seconds.
    pub limit_s: u64,
}

/// A program, and how many tests it has, if that is known.
pub type Program = (&'static str, Option<usize>);

/// All that a kernel with the patches has to pass.
pub fn all() -> Vec<Program> {
    PROGRAMS.map(|(name, tests)| (name, Some(tests))).into()
}

/// What there is of sockets, for a kernel without the patches that clear and copy pages.
pub fn of_sockets() -> Vec<Program> {
    all().into_iter().filter(|(name, _)| *name != "ntcopy_pages").collect()
}

/// The module's own programs, then what there is of sockets, but for what the kernel's own means
/// show and set from outside.
pub fn of_module() -> Vec<Program> {
    let of_sockets = of_sockets().into_iter().filter(|(name, _)| *name != "outside");
    MODULE_PROGRAMS.map(|name| (name, None)).into_iter().chain(of_sockets).collect()
}

pub fn names(programs: &[Program]) -> Vec<&'static str> {
    programs.iter().map(|(name, _)| *name).collect()
}

/// Runs these in a kernel: an error with everything that is not as it must be.
pub fn must_pass(ntcopy: &Path, kernel: &Kernel, programs: &[Program]) -> Result<(), Error> {
    check(ntcopy, kernel, &guests::kernel(kernel.name)?, programs, None)
}

/// The same through `ntcopy.ko`, which is built for the kernel.
pub fn must_pass_through(ntcopy: &Path, kernel: &Kernel) -> Result<(), Error> {
    let (built, module) = guests::module(kernel.name)?;
    check(ntcopy, kernel, &built, &of_module(), Some(&module))
}

fn check(
    ntcopy: &Path,
    kernel: &Kernel,
    built: &Built,
    programs: &[Program],
    module: Option<&Path>,
) -> Result<(), Error> {
    let names = names(programs);
    let guests = Guests::new(ntcopy, "suite", &names)?;
    let each = guests.each(&names);
    let words = module.map_or(each.clone(), |module| guests.through(module, &each));
    let boot = guests.command(built, &words);
    let mut boot = boot.env("NTCOPY_SELFTEST_BIG_MIB", kernel.big_mib.to_string());
    (boot.cpus, boot.timeout) = (1, Some(Duration::from_secs(kernel.limit_s)));
    let tried = guests.run(built, "suite", boot)?;
    let mut faults = tried.faults;
    let of_module: &[&str] = if module.is_some() { &MODULE_LACKS } else { &[] };
    let lacks = [kernel.lacks, of_module].concat();
    for (name, tests) in programs {
        let report = Report::read(section(&tried.stdout, name));
        faults += &report.faults(name, *tests, &lacks);
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(Error::Failed(format!("{faults}\n{}", tried.stdout)))
}
