//! `ntcopy set`: the sockets of a program that runs, hinted from outside, and back.

pub mod guard;
pub mod hold;
mod json;
pub mod notes;
mod off;
mod refusal;
pub mod setter;
mod show;
mod sockets;
pub mod text;
pub mod tree;
pub mod way;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use ntcopy::socket;
use ntcopy::uapi;
use ntcopy_inflight::Pid;
use ntcopy_record::units::Bytes;

use self::guard::{Woken, Worker};
use self::notes::Notes;
use self::setter::{Numbers, Setter};
use self::tree::Tree;
use self::way::Way;
use super::hinted::{self, Family, families, number};
use super::{NOT_AVAILABLE, failed, not_available, usage};
use crate::say;

/// How long `--watch` waits between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// What was accepted while the listeners were set is looked for again so often, at most.
const MOST_LOOKS: usize = 3;

const HELP: &str = "\
Examples:
  sudo ntcopy set --pid $(pidof -s memcached)      its sockets, and those that they accept
  sudo ntcopy set --pid 4711 --watch               those that it makes later, too
  sudo ntcopy set --pid 4711 --show                what they have
  sudo ntcopy set --pid 4711 --off                 back

The program and its descendants are not stopped. Each socket's descriptor is copied for \
microseconds, so a peer's end of file may come as much later. What a listener accepts has its \
number from then on.

Not covered without --watch: sockets that the program makes by connect() or receives later, and \
connections that wait to be accepted; by the module, also the one that an accept() returns which \
waited already. A listener that another process keeps, such as systemd, has its number after a \
restart of the program, too.

What was found is kept in /run/ntcopy until --off (of another user than root in \
$XDG_RUNTIME_DIR/ntcopy). --off puts it back; connections that were accepted since get what was \
found on their listener. A socket that somebody else has set since is left alone, and named. With \
the module sends are plain at once, and it can be unloaded when these sockets are closed.

It takes the right to trace the program: the same user where kernel.yama.ptrace_scope is 0, else \
root.

Exit codes: 0 done; 1 some of it could not be done; 2 usage; 3 nothing could be done here.";

#[derive(clap::Args)]
#[command(
    about = "Hint the sockets of a program that runs already, and take it back",
    override_usage = "ntcopy set --pid PID [OPTIONS]",
    after_help = HELP
)]
pub struct Args {
    /// The process; its descendants are meant, too
    #[arg(long, value_name = "PID")]
    pid: Pid,
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["off", "show"],
          help = hinted::min_bytes_help("; 0: none"))]
    min_bytes: Option<Bytes>,
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_possible_values = true,
          conflicts_with_all = ["off", "show"], help = hinted::family_help("set"))]
    family: Vec<Family>,
    /// Look again each second, until Ctrl-C or the program ends
    #[arg(long, conflicts_with_all = ["off", "show"])]
    watch: bool,
    /// Put back what was found on the sockets
    #[arg(long, conflicts_with = "show")]
    off: bool,
    /// Change nothing; say what each socket has
    #[arg(long)]
    show: bool,
    /// Print an object; with --watch one a line
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let bytes = args.min_bytes.filter(|bytes| bytes.0 > 0).map(number).transpose();
    let bytes = bytes.map_err(usage)?.or(args.min_bytes.map(|_| 0));
    let work = |worker: &Worker| {
        let worked = if args.show {
            show(&args)
        } else if args.off {
            off(&args)
        } else {
            set(&args, bytes, worker)
        };
        worked.unwrap_or_else(|error| failed(&error))
    };
    Ok(ExitCode::from(guard::guarded(work).context("cannot start a process to work in")?))
}

fn tree_and_way(args: &Args) -> anyhow::Result<(Tree, Way)> {
    let tree = Tree::of(args.pid);
    let tree = tree.map_err(|_| not_available(format!("there is no process {}", args.pid)))?;
    Ok((tree, Way::here().map_err(not_available)?))
}

fn set(args: &Args, bytes: Option<i32>, worker: &Worker) -> anyhow::Result<u8> {
    let (mut tree, way) = tree_and_way(args)?;
    if socket::sysctl() == Some(uapi::SYSCTL_OFF) {
        eprintln!("ntcopy: {}", super::stat::OFF);
    }
    let numbers = Numbers::taken(&way, bytes).context("a socket of this program's own")?;
    let notes = Notes::open(&tree.root).context("cannot keep what is found on the sockets")?;
    let mut setter = Setter::new(way, families(&args.family), numbers, Some(notes));
    for _ in 0..MOST_LOOKS {
        if setter.look(&mut tree)? == 0 {
            break;
        }
    }
    if args.json {
        println!("{}", serde_json::to_string(&json::done(args.pid, &setter, args.watch))?);
    } else {
        print!("{}", text::done(&tree.root, &setter, args.watch));
    }
    if args.watch {
        watch(&mut tree, &mut setter, worker, args.json)?;
        setter.finish(&tree);
        return Ok(0);
    }
    let is_whole = setter.looks.refused.is_empty() && setter.done.failed.is_empty();
    Ok(exit_code(is_whole, setter.done.sockets() + setter.done.had))
}

/// By whether all could be done, and what was done.
fn exit_code(is_whole: bool, sockets: usize) -> u8 {
    match (is_whole, sockets) {
        (true, _) => 0,
        (false, 0) => NOT_AVAILABLE,
        (false, _) => 1,
    }
}

/// Looks again and again. Somebody may have put all back meanwhile: then it is over as well.
fn watch(
    tree: &mut Tree,
    setter: &mut Setter,
    worker: &Worker,
    is_json: bool,
) -> anyhow::Result<()> {
    let pid = tree.root.pid;
    loop {
        if worker.wait(BETWEEN_LOOKS, None) == Woken::Signal || tree.is_over() {
            return Ok(());
        }
        if setter.is_taken_back() {
            eprintln!("ntcopy: taken back by `ntcopy set --off`");
            return Ok(());
        }
        if setter.look(tree)? == 0 {
            continue;
        }
        if is_json {
            println!("{}", serde_json::to_string(&json::done(pid, setter, true))?);
        } else {
            print!("{}", text::line(setter));
        }
    }
}

fn off(args: &Args) -> anyhow::Result<u8> {
    let (mut tree, way) = tree_and_way(args)?;
    let notes = Notes::open(&tree.root).context("cannot read what was found on the sockets")?;
    let lock = notes.lock()?;
    let (restored, looks) = off::restore(&way, &mut tree, notes.all());
    drop(lock);
    let is_whole = restored.failed.is_empty() && looks.refused.is_empty();
    if is_whole {
        notes.remove().context("cannot forget what was found on the sockets")?;
    }
    if args.json {
        say::object(&json::restored(args.pid, &way, &restored, &looks))?;
    } else {
        print!("{}", text::restored(&tree.root, &way, &restored, &looks));
    }
    Ok(exit_code(is_whole, restored.restored + restored.accepted))
}

fn show(args: &Args) -> anyhow::Result<u8> {
    let (mut tree, way) = tree_and_way(args)?;
    let notes = Notes::read_all().unwrap_or_default();
    let (sockets, looks) = show::look(&way, &mut tree, &notes);
    if args.json {
        say::object(&json::shown(args.pid, &way, &sockets, &looks))?;
    } else {
        print!("{}", show::text(&tree.root, &way, &sockets, &looks));
    }
    Ok(exit_code(looks.refused.is_empty(), sockets.len()))
}
