//! Builds a kernel before the program `ntcopy` is there: `scripts/demo.sh` has it compiled while
//! the crates are.
//!
//! usage: `kernel_build KERNEL...`. The first of them that the cache has is taken; where it has
//! none, the last one is built. Prints its name.

use std::process::ExitCode;

use ntcopy_kernel::{BuildOptions, Cache, Error, Kind, State, build, list, progress};

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    match taken(&names) {
        Ok(kind) => {
            println!("{kind}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("kernel_build: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn taken(names: &[String]) -> Result<Kind, Error> {
    let kinds = names.iter().map(|name| Kind::parse(name)).collect::<Result<Vec<Kind>, Error>>()?;
    let Some(last) = kinds.last().copied() else { return Kind::parse("") };
    // A tree of the user's own may have changed since: only a build looks at it.
    if std::env::var_os("NTCOPY_LINUX").is_none_or(|tree| tree.is_empty()) {
        let kept = list(&Cache::locate()?)?;
        let has = |kind: &Kind| {
            kept.iter().any(|one| one.state == State::Current && one.meta.kind == kind.name())
        };
        if let Some(kind) = kinds.into_iter().find(has) {
            return Ok(kind);
        }
    }
    build(&BuildOptions::from_env(last)?, progress::for_stderr().as_mut())?;
    Ok(last)
}
