//! Assembles the kernel's own page routines into the bench, for x86-64.

use std::env;

/// The source that the kernel patch adds as arch/x86/lib/page_nt_64.S, byte for byte.
const SOURCE: &str = "../../kernel/asm/page_nt_64.S";
/// What stands in for the kernel's headers.
const SHIM: &str = "src/experiments/bulk/run/pages/page_nt/shim";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed={SHIM}");
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("x86_64") {
        return;
    }
    cc::Build::new()
        .file(SOURCE)
        .include(SHIM)
        // An object that doesn't say so makes the stack of every program executable.
        .asm_flag("-Wa,--noexecstack")
        .compile("ntcopy_page_nt");
}
