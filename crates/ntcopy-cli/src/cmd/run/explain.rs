//! `--explain`: what would happen, and why.

use ntcopy::socket::Support;

use super::elf::Elf;
use super::program::{Step, What};
use super::{Hinting, Mode, Settings};

pub fn print(hinting: &Hinting) {
    let Hinting { program, settings, support, library, obstacles, .. } = hinting;
    for (at, step) in program.steps.iter().enumerate() {
        let role = if at == 0 { "program" } else { "run by" };
        println!("{role:<10}{}: {}", step.path.display(), describe(step));
    }
    println!("{:<10}{}", "kernel", taker(*support));
    if let Some(library) = library {
        println!("{:<10}{}", "library", library.display());
    }
    if settings.filters > 0 {
        let count = settings.filters;
        println!("{:<10}{count} in force here (seccomp), which allow what is done", "filters");
    }
    for (name, value) in settings.environment() {
        println!("{:<10}{name}={value}", "setting");
    }
    if let Some(remark) = super::remark() {
        println!("{:<10}{remark}", "but");
    }
    for obstacle in obstacles {
        println!("{:<10}{obstacle}", "obstacle");
    }
    println!("{:<10}{}", "so", outcome(settings, obstacles.is_empty()));
}

fn describe(step: &Step) -> String {
    match &step.what {
        What::Elf(Elf::Dynamic(loader)) => format!("dynamically linked, started by {loader}"),
        What::Elf(Elf::Static) => "statically linked".into(),
        What::Elf(Elf::Go) => "built by Go".into(),
        What::Elf(Elf::OtherMachine) => "for another processor".into(),
        What::Script => "a script".into(),
        What::Unknown(why) => format!("cannot be looked into: {why}"),
    }
}

fn taker(support: Option<Support>) -> &'static str {
    match support {
        Some(Support::Kernel) => "knows MSG_NTCOPY",
        Some(Support::Module) => "has the module that knows MSG_NTCOPY, on unix streams and UDP",
        Some(Support::None) => "does not know MSG_NTCOPY",
        None => "was not asked",
    }
}

fn outcome(settings: &Settings, is_hinted: bool) -> String {
    if !is_hinted {
        return "nothing would be hinted, and the program is not started without --anyway".into();
    }
    let Settings { min_bytes, families, mode, .. } = settings;
    match mode {
        Mode::Adaptive => format!(
            "sends of {min_bytes} bytes or more on {families} sockets would carry MSG_NTCOPY, and \
             opt their socket in"
        ),
        Mode::Nt => format!(
            "{families} sockets would opt in with all their sends, at the first of {min_bytes} \
             bytes or more"
        ),
    }
}
