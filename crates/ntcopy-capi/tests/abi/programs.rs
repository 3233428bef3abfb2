//! Examples and C tests: compiled, linked both ways, run.

use std::path::{Path, PathBuf};
use std::process::Command;

use ntcopy::arch;

use crate::compilers::{CLANG, CLANGXX, Compiler, GCC, GXX, Link, program, sources};
use crate::installed::{crate_dir, run, scratch};

/// Runs a test program: 77 is a test that can't be asked here.
pub fn run_test(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let words = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {}
        Some(77) => println!("not run: {command:?}: {words}"),
        _ => panic!("{command:?}: {}\n{words}", output.status),
    }
}

/// An example that needs more than C99 says so in its first lines.
fn is_for(source: &Path, standard: &str) -> bool {
    let text = std::fs::read_to_string(source).expect("a source file");
    standard != "-std=c99" || !text.contains("-std=c11")
}

fn compile_and_run_all(compiler: &Compiler) {
    if !compiler.is_here() {
        return;
    }
    let mut ran = 0;
    for folder in ["examples-c", "tests/c"] {
        for source in sources(folder, compiler.extension) {
            for standard in compiler.standards {
                for link in [Link::Shared, Link::Static] {
                    if is_for(&source, standard) {
                        run_test(&mut program(&compiler.compile(&source, standard, link, &[])));
                        ran += 1;
                    }
                }
            }
        }
    }
    assert!(ran > 0, "no {} files found", compiler.extension);
}

#[test]
fn c_programs_by_gcc() {
    compile_and_run_all(&GCC);
}

#[test]
fn cxx_programs_by_gcc() {
    compile_and_run_all(&GXX);
}

#[test]
#[ignore = "make test-c"]
fn c_programs_by_clang() {
    compile_and_run_all(&CLANG);
}

#[test]
#[ignore = "make test-c"]
fn cxx_programs_by_clang() {
    compile_and_run_all(&CLANGXX);
}

/// The names of the instruction sets that this CPU has, as `NTCOPY_ISA` takes them.
pub fn instruction_sets() -> Vec<&'static str> {
    let copies = arch::COPY_BACKENDS.iter().filter(|backend| backend.is_available());
    let fills = arch::FILL_BACKENDS.iter().filter(|backend| backend.is_available());
    let mut names: Vec<_> =
        copies.map(|backend| backend.isa).chain(fills.map(|backend| backend.isa)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn the_bytes_are_right_by_every_instruction_set_of_this_cpu() {
    let bytes = crate_dir().join("tests/c/bytes.c");
    let bytes = GCC.compile(&bytes, "-std=c11", Link::Shared, &[]);
    let names = instruction_sets();
    assert!(names.contains(&"libc"), "{names:?}");
    for isa in names {
        run_test(program(&bytes).env("NTCOPY_ISA", isa));
    }
}

fn settings() -> Command {
    let source = crate_dir().join("tests/c/settings.c");
    program(&GCC.compile(&source, "-std=c11", Link::Shared, &[]))
}

#[test]
fn the_path_and_the_message_follow_the_environment() {
    let plain = run(&mut settings());
    assert!(!plain.contains("message"), "{plain}");
    let forced = run(settings().env("NTCOPY_ISA", "libc"));
    assert_eq!(forced, "path: libc\n");

    let bad = run(settings().env("NTCOPY_ISA", "mmx"));
    let message = bad.lines().nth(1).unwrap_or_default();
    assert!(message.starts_with("message: NTCOPY_ISA=\"mmx\": "), "{bad}");
    assert!(bad.starts_with(plain.trim_end()), "what is wrong is left out: {bad}");

    let bad = run(settings().env("NTCOPY_PROFILE", "/nonexistent/ntcopy.toml"));
    assert!(bad.contains("/nonexistent/ntcopy.toml"), "{bad}");
}

/// A kernel that has the option, played by a program of the preload library's tests.
fn kernel_that_opts_sockets_in() -> PathBuf {
    let root = crate_dir().join("../..");
    let made = scratch("programs").join("fake");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-pthread", "-D_GNU_SOURCE", "-I"]).arg(root.join("uapi"));
    compiler.arg(root.join("crates/ntcopy-preload/tests/c/fake.c")).arg("-o").arg(&made);
    run(compiler.arg("-ldl"));
    made
}

#[test]
fn sockets_opt_in_on_a_kernel_that_has_the_option() {
    let made = |source: &str| GCC.compile(&crate_dir().join(source), "-std=c99", Link::Shared, &[]);
    let (sockets, send) = (made("tests/c/sockets.c"), made("examples-c/send.c"));
    let kernel = kernel_that_opts_sockets_in();
    run(program(&kernel).arg("taken").arg(&sockets));
    let said = run(program(&kernel).arg("taken").arg(&send));
    assert_eq!(said, "the kernel was given the hint\n");
    // It has the option, but not the values: the example says so, and ends.
    let output = program(&kernel).arg("refused").arg(&send).output().expect("it starts");
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), words.as_ref()), (Some(1), "send: Invalid argument\n"));
}
