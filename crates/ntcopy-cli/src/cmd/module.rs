//! `ntcopy module`: the module for kernels that don't know the flag.

mod args;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use ntcopy::socket;
use ntcopy::uapi::ModuleInfo;
use ntcopy_kernel::module::{self, Status, Sysroot};
use ntcopy_kernel::{BuildOptions, Cache, Error, Kind, progress};

use crate::say;
pub use args::Args;
use args::{BuildArgs, LoadArgs, StatusArgs};

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    Ok(match args {
        Args::Build(args) => build(&args)?,
        Args::Load(args) => load(&args)?,
        Args::Unload => unload()?,
        Args::Status(args) => status(&args)?,
    })
}

fn build(args: &BuildArgs) -> Result<ExitCode, Error> {
    let mut progress = progress::for_stderr();
    let compiler = args.cc.as_deref();
    if let Some(name) = &args.kernel {
        let kernel = BuildOptions::from_env(Kind::parse(name)?)?;
        let (_, path) = module::build_for(&kernel, compiler, progress.as_mut())?;
        let path = path.display();
        eprintln!(
            "ntcopy: this boots the kernel and loads it: ntcopy kernel boot --kernel {name} -- sh \
             -c 'ntcopy module load {path} && ntcopy module status'"
        );
        println!("{path}");
        return Ok(ExitCode::SUCCESS);
    }
    let sysroot = Sysroot(args.sysroot.clone());
    let headers = match &args.headers {
        Some(folder) => folder.clone(),
        None => own_headers(&sysroot)?,
    };
    let built = module::build(&headers, compiler, &Cache::locate()?, progress.as_mut())?;
    let path = built.path.display();
    let runs = Status::gather(&sysroot, None).is_ok_and(|status| status.release == built.release);
    let place = if runs { String::new() } else { format!("where Linux {} runs, ", built.release) };
    eprintln!("ntcopy: {place}this loads it: sudo ntcopy module load {path}");
    println!("{path}");
    Ok(ExitCode::SUCCESS)
}

/// The running kernel's headers, if it takes modules at all.
fn own_headers(sysroot: &Sysroot) -> Result<PathBuf, Error> {
    let status = Status::gather(sysroot, None)?;
    status.check_series()?;
    let release = &status.release;
    if !status.takes_modules {
        return Err(Error::NotHere(format!(
            "the running kernel, {release}, takes no modules (CONFIG_MODULES is off). For another \
             one: --headers or --kernel"
        )));
    }
    module::check_release(release)?;
    status.headers.ok_or_else(|| {
        Error::NotHere(format!(
            "the headers of Linux {release} are not here: install their package, \
             linux-headers-{release} in Debian, or name their folder with --headers DIR"
        ))
    })
}

fn load(args: &LoadArgs) -> Result<ExitCode, Error> {
    match module::load(args.file.as_deref(), &Cache::locate()?)? {
        Some(path) => println!("loaded {}", path.display()),
        None => println!("the module is loaded already; ntcopy module status tells which"),
    }
    Ok(ExitCode::SUCCESS)
}

fn unload() -> Result<ExitCode, Error> {
    println!("{}", if module::unload()? { "unloaded" } else { "the module is not loaded" });
    Ok(ExitCode::SUCCESS)
}

fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let sysroot = Sysroot(args.sysroot.clone());
    // A machine that was recorded has neither a cache of ours nor a device.
    let cache = if sysroot.is_live() { Cache::locate().ok() } else { None };
    let status = Status::gather(&sysroot, cache.as_ref())?;
    let info = if sysroot.is_live() { socket::module_info() } else { Ok(None) };
    let holders = module::holders(&sysroot);
    let found = Found { status, info, holders };
    if args.json {
        say::object(&text::object(&found))?;
    } else {
        print!("{}", text::render(&found));
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything that status tells of.
pub struct Found {
    /// What the kernel's files say.
    pub status: Status,
    /// What the module says, or why it could not be asked.
    pub info: Result<Option<ModuleInfo>, socket::Errno>,
    /// The processes that have its device open, as far as this user may see.
    pub holders: Vec<(u32, String)>,
}
