//! `ntcopy module`: the module for kernels that don't know the flag.

mod args;
mod text;

use std::process::ExitCode;

use ntcopy::socket;
use ntcopy::uapi::ModuleInfo;
use ntcopy_kernel::module::{self, ModuleBuild, Status, Sysroot};
use ntcopy_kernel::{BuildOptions, Cache, Error, Kind, progress};

pub use args::Args;
use args::{BuildArgs, LoadArgs, StatusArgs};

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let result = match args {
        Args::Build(args) => build(args),
        Args::Load(args) => load(&args),
        Args::Unload => unload(),
        Args::Status(args) => return status(&args),
    };
    Ok(result.unwrap_or_else(|error| {
        eprintln!("ntcopy: {error}");
        ExitCode::from(error.exit_code())
    }))
}

fn build(args: BuildArgs) -> Result<ExitCode, Error> {
    let mut options = ModuleBuild {
        release: args.kernel_release,
        headers: args.headers,
        out: args.out,
        compiler: args.cc,
        cache: Cache::locate()?,
        rebuild: args.force,
        jobs: cpus(),
        root: args.sysroot,
    };
    let mut progress = progress::for_stderr();
    let is_for_this_kernel = match &args.kernel {
        Some(name) => {
            let kernel = BuildOptions::from_env(Kind::parse(name)?)?;
            options.take_kernel(&kernel, progress.as_mut())?;
            false
        }
        None if options.headers.is_none() && options.release.is_none() => {
            options.release = Some(this_kernel(&Sysroot(options.root.clone()))?);
            true
        }
        None => false,
    };
    let module = module::build(&options, progress.as_mut())?;
    println!("{}", module.display());
    if is_for_this_kernel {
        eprintln!("ntcopy: this loads it: sudo ntcopy module load {}", module.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The running kernel's release, if it takes modules at all.
fn this_kernel(sysroot: &Sysroot) -> Result<String, Error> {
    let status = Status::gather(sysroot, None)?;
    status.check_series()?;
    if !status.takes_modules {
        return Err(Error::NotHere(format!(
            "the running kernel, {}, takes no modules (CONFIG_MODULES is off). For another one: \
             --kernel-release, --headers or --kernel",
            status.release
        )));
    }
    Ok(status.release)
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn load(args: &LoadArgs) -> Result<ExitCode, Error> {
    match module::load(args.file.as_deref(), &Cache::locate()?)? {
        Some(path) => println!("loaded {}", path.display()),
        None => println!("the module is loaded already; ntcopy module status tells which"),
    }
    Ok(ExitCode::SUCCESS)
}

fn unload() -> Result<ExitCode, Error> {
    // A device that cannot be asked holds nothing up: the kernel knows who holds the module.
    let info = socket::module_info().ok().flatten().unwrap_or_default();
    let was_there = module::unload(info.attached, info.lingering)?;
    println!("{}", if was_there { "unloaded" } else { "the module is not loaded" });
    Ok(ExitCode::SUCCESS)
}

fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let sysroot = Sysroot(args.sysroot.clone());
    // A machine that was recorded has neither a cache of ours nor a device.
    let cache = if sysroot.is_live() { Cache::locate().ok() } else { None };
    let status = match Status::gather(&sysroot, cache.as_ref()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("ntcopy: {error}");
            return Ok(ExitCode::from(error.exit_code()));
        }
    };
    let info = if sysroot.is_live() { socket::module_info() } else { Ok(None) };
    let holders = module::holders(&sysroot);
    let found = Found { status, info, holders };
    let text = if args.json { text::json(&found) } else { text::render(&found) };
    print!("{text}");
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
