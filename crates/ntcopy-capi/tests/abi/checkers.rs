//! The C tests under AddressSanitizer and valgrind.

use std::path::Path;
use std::process::Command;

use crate::compilers::{CLANG, Compiler, GCC, Link, program, sources};
use crate::installed::{prefix, scratch};
use crate::programs::{instruction_sets, run_test};

const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"];

/// Whether a compiler has its sanitizers' libraries; says so where not.
fn has_sanitizers(compiler: &Compiler) -> bool {
    let folder = scratch("sanitizers");
    let source = folder.join(format!("empty-{}.c", compiler.program));
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("a scratch file");
    let mut command = Command::new(compiler.program);
    command.args(SANITIZERS).arg(&source).arg("-o").arg(source.with_extension("out"));
    let has = command.output().is_ok_and(|output| output.status.success());
    if !has {
        println!("not run: {} has no sanitizer libraries here", compiler.program);
    }
    has
}

fn sanitize_all(compiler: &Compiler) {
    if !compiler.is_here() || !has_sanitizers(compiler) {
        return;
    }
    for source in sources("tests/c", "c") {
        for link in [Link::Shared, Link::Static] {
            let path = compiler.compile(&source, "-std=c11", link, &SANITIZERS);
            run_test(&mut program(&path));
        }
    }
}

#[test]
#[ignore = "make test-c"]
fn c_tests_under_the_sanitizers_of_gcc() {
    sanitize_all(&GCC);
}

#[test]
#[ignore = "make test-c"]
fn c_tests_under_the_sanitizers_of_clang() {
    sanitize_all(&CLANG);
}

/// The instruction sets that valgrind can follow.
const VALGRIND_FOLLOWS: [&str; 5] = ["libc", "rep", "movnti", "sse2", "avx2"];

fn under_valgrind(path: &Path) -> Command {
    let mut command = Command::new("valgrind");
    command.args(["-q", "--error-exitcode=9", "--leak-check=full"]).arg(path).arg("checked");
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LD_LIBRARY_PATH", prefix().join("lib"));
    command
}

#[test]
#[ignore = "make test-c"]
fn c_tests_under_valgrind() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("not run: no valgrind here; Debian: apt-get install valgrind");
        return;
    }
    let mut followed = instruction_sets();
    followed.retain(|isa| VALGRIND_FOLLOWS.contains(isa));
    for source in sources("tests/c", "c") {
        let path = GCC.compile(&source, "-std=c11", Link::Shared, &[]);
        let is_about_bytes = source.ends_with("bytes.c");
        // What isn't about bytes is about arguments: one set will do.
        for isa in followed.iter().filter(|isa| is_about_bytes || **isa == "sse2") {
            run_test(under_valgrind(&path).env("NTCOPY_ISA", isa));
        }
    }
}
