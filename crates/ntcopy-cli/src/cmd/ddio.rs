//! `ntcopy ddio`: how much of the cache devices' writes get on Intel servers, and the switch of a
//! root port. `docs/reference/hardware.md` has the sources of the registers' layouts.

mod machine;

use std::path::PathBuf;
use std::process::ExitCode;

use self::machine::{ALLOCATE, DdioMachine, Register};
use super::Ended;

const HELP: &str = "\
Examples:
  sudo ntcopy ddio status
  sudo ntcopy ddio ways 4                     what would be written
  sudo ntcopy ddio ways 4 --yes               writes it
  sudo ntcopy ddio off 0000:17:00.0 --yes     for the devices behind that root port

Known are Skylake-SP, Cascade Lake-SP and, of Ice Lake-SP, the ways only. Without --yes nothing is \
written. What is written is read back, and lasts until the next boot; the old values are printed. \
It has run on no real machine yet, only on ones laid out as published.

Exit codes: 0 done; 1 a register could not be read or written; 2 usage; 3 not available here: a \
guest, or a CPU whose registers are not known.";

#[derive(clap::Args)]
#[command(
    about = "Show and set how Intel servers put devices' writes into the cache",
    after_help = HELP
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// Read and write below DIR instead of /
    #[arg(long, value_name = "DIR", default_value = "/", hide = true, global = true)]
    sysroot: PathBuf,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Show cache ways and root ports
    Status,
    /// Let devices' writes allocate in the N highest ways of the last-level cache
    Ways {
        /// How many ways: 2 or more, as the hardware wants it
        #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
        ways: u32,
        #[command(flatten)]
        write: Write,
    },
    /// Let writes from behind a root port allocate in the last-level cache
    On {
        /// Its address, as `status` has it
        port: String,
        #[command(flatten)]
        write: Write,
    },
    /// Send writes from behind a root port to memory
    Off {
        /// Its address, as `status` has it
        port: String,
        #[command(flatten)]
        write: Write,
    },
}

#[derive(clap::Args)]
struct Write {
    /// Write; without it, say what would be written
    #[arg(long)]
    yes: bool,
}

/// A register, what it holds, and what it is to hold.
type Change = (Register, u64, u64);

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let machine = DdioMachine::find(&args.sysroot)?;
    let (changes, write) = match &args.verb {
        Verb::Status => {
            status(&machine);
            return Ok(ExitCode::SUCCESS);
        }
        Verb::Ways { ways, write } => (to_ways(&machine, *ways)?, write),
        Verb::On { port, write } => (vec![switched(&machine, port, true)?], write),
        Verb::Off { port, write } => (vec![switched(&machine, port, false)?], write),
    };
    apply(&machine, &changes, write.yes)?;
    Ok(ExitCode::SUCCESS)
}

fn status(machine: &DdioMachine) {
    println!("{}\n\nWays that devices' writes allocate in (MSR 0xC8B)", machine.generation.name);
    for register in &machine.ways {
        let (name, of) = (&register.name, machine.llc_ways);
        match machine.read(register) {
            Ok(value) => println!("  {name}  {value:#x}  {} of {of} ways", value.count_ones()),
            Err(Ended { why, .. }) => println!("  {why}"),
        }
    }
    println!("\nRoot ports of the CPU (perfctrlsts_0, configuration space 0x180)");
    for port in &machine.ports {
        match &port.registers {
            Ok([first, second]) => println!(
                "  {}  {} Use_Allocating_Flow_Wr={} NoSnoopOpWrEn={} TPHDIS={}",
                port.address,
                if first & ALLOCATE != 0 { "on " } else { "off" },
                first >> 7 & 1,
                first >> 3 & 1,
                second >> 9 & 1
            ),
            Err(Ended { why, .. }) => println!("  {}  {why}", port.address),
        }
        port.behind.iter().for_each(|device| println!("    {device}"));
    }
}

fn to_ways(machine: &DdioMachine, wanted: u32) -> Result<Vec<Change>, Ended> {
    let of = machine.llc_ways;
    if wanted > of {
        let why = format!("{wanted} ways: the last-level cache has {of} ways");
        return Err(Ended { code: 2, why });
    }
    let all = u64::MAX >> (64 - of);
    let change = |register: &Register| {
        let old = machine.read(register)?;
        if old & all == 0 || old & !all != 0 {
            return Err(machine::unavailable(format!(
                "{} holds {old:#x}, which is no set of the cache's {of} ways: it is not the \
                 register that it is taken for",
                register.name
            )));
        }
        Ok((register.clone(), old, all & !(all >> wanted)))
    };
    machine.ways.iter().map(change).collect()
}

fn switched(machine: &DdioMachine, address: &str, on: bool) -> Result<Change, Ended> {
    let port = machine.ports.iter().find(|port| port.address == address).ok_or_else(|| {
        let why = format!("{address} is no root port of the CPU; `ntcopy ddio status` names them");
        Ended { code: 2, why }
    })?;
    let [old, _] = port.registers.clone()?;
    let new = if on { old | ALLOCATE } else { old & !ALLOCATE };
    Ok((Register::switch(address), old.into(), new.into()))
}

fn apply(machine: &DdioMachine, changes: &[Change], yes: bool) -> Result<(), Ended> {
    for (register, old, new) in changes {
        println!("{}: {old:#x} -> {new:#x}", register.name);
        if yes && old != new {
            machine.write(register, *new)?;
        }
    }
    let closing = match (changes.iter().any(|(_, old, new)| old != new), yes) {
        (false, _) => "It is so already: nothing to write.",
        (true, false) => "Nothing was written. With --yes it is.",
        (true, true) => "Written, and read back. The next boot brings the old values back.",
    };
    println!("{closing}");
    Ok(())
}
