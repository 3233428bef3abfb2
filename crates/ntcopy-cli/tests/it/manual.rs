//! What a shell makes of the completions, and `man` of the pages.

#[path = "../../examples/manual/pages.rs"]
mod pages;

use std::fs;
use std::path::Path;
use std::process;

use clap::Command;
use tempfile::TempDir;

use crate::common::project;
use crate::help_wrapping::all;

/// A folder with the pages and the completions.
fn written() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    pages::write(folder.path()).expect("written");
    folder
}

fn is_here(program: &str) -> bool {
    let is_here = process::Command::new(program).arg("--version").output().is_ok();
    if !is_here {
        println!("not run: no {program} here");
    }
    is_here
}

#[test]
fn each_shell_reads_its_script() {
    let folder = written();
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let file = folder.path().join(shell);
        let script = fs::read_to_string(&file).expect("a script");
        assert!(script.contains("retention") && script.contains("published"), "{shell}");
        if !is_here(shell) {
            continue;
        }
        let output =
            process::Command::new(shell).arg(check).arg(&file).output().expect("it starts");
        assert!(output.status.success() && output.stderr.is_empty(), "{shell}: {output:?}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("one").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

#[test]
fn every_command_has_its_page() {
    let folder = written();
    let page = |command: &Command| {
        let name = pages::name(command);
        let is_of_system = ["ntcopy-ddio", "ntcopy-module"].iter().any(|of| name.starts_with(of));
        format!("{name}.{}", if is_of_system { 8 } else { 1 })
    };
    let mut expected: Vec<String> = all().iter().map(page).collect();
    expected.extend(["proxyd.8", "storaged.8"].map(str::to_owned));
    expected.sort();
    assert_eq!(names(&folder.path().join("man")), expected);
}

#[test]
fn a_page_names_no_page_that_is_not_there() {
    let folder = written();
    let folder = folder.path().join("man");
    let there = names(&folder);
    let mut named = 0;
    for page in &there {
        let text = fs::read_to_string(folder.join(page)).expect("a page");
        // A line of its own below .TP, as `ntcopy\-ddio(8)`.
        let names = text.lines().filter_map(|line| {
            let (name, section) = line.strip_suffix(')')?.split_once('(')?;
            let is_name = name.starts_with("ntcopy") && !name.contains(' ');
            is_name.then(|| format!("{}.{section}", name.replace("\\-", "-")))
        });
        for name in names {
            assert!(there.contains(&name), "{page} names {name}");
            named += 1;
        }
    }
    assert!(named > 30, "{named} names");
    let first = fs::read_to_string(folder.join("ntcopy.1")).expect("a page");
    assert!(first.contains("\nntcopy\\-ddio(8)\n") && first.contains("\nntcopy\\-bench(1)\n"));
    let ddio = fs::read_to_string(folder.join("ntcopy-ddio.8")).expect("a page");
    assert!(ddio.contains(".TH ntcopy-ddio 8 ") && ddio.contains("ntcopy\\-ddio\\-status(8)"));
}

#[test]
fn pages_are_pages() {
    let folder = written();
    let folder = folder.path().join("man");
    let page = fs::read_to_string(folder.join("ntcopy-bench-unix.1")).expect("a page");
    assert!(page.contains(".TH ntcopy-bench-unix 1 "), "{page}");
    // Examples stay lines.
    assert!(
        page.contains(".nf\n  ntcopy bench unix \\-\\-kernel um \\-\\-sockets 1,8,64 "),
        "{page}"
    );
    if !is_here("groff") {
        return;
    }
    for name in names(&folder) {
        let output = process::Command::new("groff")
            .args(["-man", "-ww", "-Tutf8"])
            .arg(folder.join(&name))
            .output()
            .expect("groff starts");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && words.is_empty(), "{name}: {words}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_said() {
    let words = format!("{:#}", pages::write(Path::new("/proc/ntcopy")).expect_err("no folder"));
    assert!(words.contains("/proc/ntcopy/man: the folder cannot be made"), "{words}");
}

/// Installs the help below a folder.
fn installed() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let build = TempDir::new().expect("a folder");
    pages::write(&build.path().join("manual")).expect("written");
    let script = project().join("scripts/install.sh");
    let mut install = process::Command::new(script);
    install
        .arg("help")
        .env("BUILD", build.path())
        .env("PREFIX", "/usr")
        .env("DESTDIR", folder.path());
    let output = install.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    folder
}

#[test]
fn what_is_installed_lies_where_shells_and_man_look() {
    let folder = installed();
    let share = folder.path().join("usr/share");
    for file in [
        "bash-completion/completions/ntcopy",
        "zsh/site-functions/_ntcopy",
        "fish/vendor_completions.d/ntcopy.fish",
        "man/man1/ntcopy.1",
        "man/man1/ntcopy-bench-unix.1",
        "man/man8/ntcopy-ddio.8",
    ] {
        assert!(share.join(file).is_file(), "{file}");
    }
    let zsh = fs::read_to_string(share.join("zsh/site-functions/_ntcopy")).expect("a script");
    assert!(zsh.starts_with("#compdef ntcopy"), "{zsh}");
}
