//! `cargo xtask help` says what there is.
//!
//! Exit codes: 0 done; 1 failed; 2 usage; 3 not available here; 130 interrupted.

use std::path::Path;
use std::process::ExitCode;

use xtask::{Error, all, documents, mutations, programs, selftests, soak, test};

const USAGE: &str = "\
usage: cargo xtask COMMAND

test                      every test that one user-mode kernel is enough for
test-all [NAME...] [-- ARGUMENT...]
                          everything else, or what is named; arguments are for its scripts
test-all list             what there is
docs                      what the documents have from bench/record/INDEX.toml
selftests DIR PROGRAM...  builds programs of kernel/selftests into a folder
mutations [NAME...]       mistakes in the kernel, one at a time: would the suite notice?
soak [MINUTES [SEED]]     random sends compared between settings, then races on the module
holes [CASES]             gathered sends from memory with missing pages, plain against hinted
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(words: &[&str]) -> Result<(), Error> {
    match words {
        ["test"] => test::run(),
        ["test-all", "list"] => all::list(),
        ["test-all", rest @ ..] => all::run(rest),
        ["docs"] => documents::write(),
        ["selftests", folder, programs @ ..] => selftests::build(Path::new(folder), programs),
        ["mutations", names @ ..] => mutations::run(&programs::ntcopy()?, names),
        ["soak", rest @ ..] => soak(rest),
        ["holes", rest @ ..] => {
            soak::holes(&programs::ntcopy()?, number(rest, 0)?.unwrap_or(100_000) as usize)
        }
        ["help"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => Err(Error::Usage(USAGE.to_owned())),
    }
}

fn number(words: &[&str], at: usize) -> Result<Option<u32>, Error> {
    words.get(at).map(|word| word.parse().map_err(|_| Error::Usage(USAGE.to_owned()))).transpose()
}

fn soak(words: &[&str]) -> Result<(), Error> {
    let minutes = u64::from(number(words, 0)?.unwrap_or(10));
    let seed = number(words, 1)?.unwrap_or_else(std::process::id);
    let ntcopy = programs::ntcopy()?;
    let sends = soak::Soak { kernel: "um", cpus: 1, seed, minutes, programs: 200 };
    soak::run(&ntcopy, &sends)?;
    soak::module(&ntcopy, "x86+module", seed, minutes.min(5))
}
