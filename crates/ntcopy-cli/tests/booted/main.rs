//! The program, the suite and the module in booted kernels. What one user-mode kernel is enough for
//! runs in `make test`; the reason of an ignored test names the target that runs it.

#[path = "../common/mod.rs"]
mod common;

mod commands;
mod examples;
mod kernel_boot;
mod kernel_package;
mod kernel_qemu;
mod module_booted;
mod room;
mod set;
mod um;
