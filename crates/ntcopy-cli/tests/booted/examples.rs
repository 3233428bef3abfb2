//! The examples are what they say: each is compiled and run, on this kernel whether it has the
//! flag or not, and in a booted one that has it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use ntcopy::uapi;

use crate::common::{beside, good, in_um, preload::PYTHON, project};

const SENT_BYTES: u64 = 16 << 20;

/// An example that can be run here.
struct Example {
    name: &'static str,
    /// What starts it, for a shell.
    command: String,
}

fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("version").output();
    found.is_ok_and(|output| output.status.success())
}

/// Compiles one with a compiler's options and gives the program.
fn compiled(name: &'static str, compiler: &str, options: &[&str], more: &[&str]) -> Example {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples");
    fs::create_dir_all(&folder).expect("a folder for programs");
    let program = folder.join(name.replace('.', "-"));
    let mut command = Command::new(compiler);
    command.args(options).arg("-o").arg(&program);
    command.arg(project().join("examples").join(name)).args(more);
    good(&command.output().unwrap_or_else(|error| panic!("{compiler}: {error}")));
    Example { name, command: program.display().to_string() }
}

/// Each one, compiled once. Those that can't be had here are named.
fn examples() -> &'static [Example] {
    static EXAMPLES: OnceLock<Vec<Example>> = OnceLock::new();
    EXAMPLES.get_or_init(|| {
        let header = format!("-I{}", project().join("uapi").display());
        let warn = ["-Wall", "-Wextra", "-Werror", "-O2", &header];
        let rust = beside(&["-p", "ntcopy", "--example", "send"]).join("examples/send");
        let python = project().join("examples/send.py");
        let c11 = [&warn[..], &["-std=c11", "-D_GNU_SOURCE", "-pthread"]].concat();
        // It answers, and so is run by `bench http --stack haproxy+backend.c`.
        compiled("backend.c", "cc", &c11, &[]);
        let mut all = vec![
            compiled("send.c", "cc", &c11, &[]),
            compiled("send.cc", "c++", &[&warn[..], &["-std=c++17"]].concat(), &[]),
            Example { name: "send.rs", command: rust.display().to_string() },
            Example { name: "send.py", command: format!("{PYTHON} {}", python.display()) },
        ];
        if Path::new("/usr/include/liburing.h").exists() {
            let options = [&warn[..], &["-std=gnu11"]].concat();
            all.push(compiled("uring.c", "cc", &options, &["-luring"]));
        } else {
            println!("not run: uring.c, as liburing-dev is not installed (scripts/setup.sh c)");
        }
        if is_there("go") {
            all.push(compiled("send.go", "go", &["build"], &[]));
        } else {
            println!("not run: send.go, as there is no go");
        }
        all
    })
}

/// What one printed: the bytes that it sent, and what was counted.
fn told(name: &str, text: &str) -> (u64, BTreeMap<String, u64>) {
    let mut sent = None;
    let mut counted = BTreeMap::new();
    for line in text.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["sent", bytes, "bytes"] => sent = bytes.parse().ok(),
            [counter, bytes] if counter.starts_with("Ntcopy") => {
                counted.insert(counter.to_owned(), bytes.parse().expect("a number"));
            }
            _ => {}
        }
    }
    (sent.unwrap_or_else(|| panic!("{name} says not what it sent: {text}")), counted)
}

#[test]
#[ignore = "make test-c"]
fn each_of_them_runs_on_this_kernel_and_says_whether_it_takes_the_hint() {
    let support = ntcopy::socket::kernel_support();
    let is_taken = support != ntcopy::socket::Support::None;
    let takes = match support {
        ntcopy::socket::Support::None => "this kernel has no SO_NTCOPY: plain sends\n",
        _ => "the kernel takes the hint\n",
    };
    for example in examples() {
        let output = Command::new("sh").args(["-c", &example.command]).output().expect("a shell");
        if output.status.code() == Some(3) && example.name == "uring.c" {
            println!("not run: {}", String::from_utf8_lossy(&output.stderr).trim());
            continue;
        }
        let text = good(&output);
        assert!(text.starts_with(takes), "{}: {text}", example.name);
        let (sent, counted) = told(example.name, &text);
        assert_eq!(sent, SENT_BYTES, "{}", example.name);
        let hinted = counted.get(uapi::STAT_HINTED).copied().unwrap_or(0);
        assert!(hinted >= if is_taken { sent } else { 0 }, "{counted:?}");
    }
}

#[test]
#[ignore = "make test-c"]
fn in_a_kernel_with_the_flag_every_byte_of_each_is_counted_unless_hints_are_ignored() {
    let mut script = "set -e\n".to_owned();
    // um has no io_uring: the suite tries that in x86.
    let has = |example: &&Example| example.name != "uring.c";
    let examples: Vec<&Example> = examples().iter().filter(has).collect();
    for setting in [uapi::SYSCTL_OFF, uapi::SYSCTL_OBEY] {
        script.push_str(&format!("echo {setting} >/proc/sys/net/core/ntcopy\n"));
        for example in &examples {
            script
                .push_str(&format!("echo '== {} {setting}'\n{}\n", example.name, example.command));
        }
    }
    let text = in_um(&script);
    let parts: Vec<_> = text.split("== ").skip(1).collect();
    assert_eq!(parts.len(), 2 * examples.len(), "{text}");
    for part in parts {
        let (title, said) = part.split_once('\n').expect("a title and what it said");
        assert!(said.starts_with("the kernel takes the hint\n"), "{part}");
        let (sent, counted) = told(title, said);
        let hinted = if title.ends_with(" 0") { 0 } else { SENT_BYTES };
        assert_eq!(sent, SENT_BYTES, "{part}");
        for name in [uapi::STAT_HINTED, uapi::STAT_BYPASSED] {
            assert_eq!(counted[name], hinted, "{name}: {part}");
        }
    }
}
