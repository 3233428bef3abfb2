//! The program `ntcopy`, end to end: on the kernel that runs the tests, and where a module says so
//! in the user-mode kernel that knows the flag.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../ntcopy-report/tests/common/mod.rs"]
mod synthetic;

mod advise;
mod advise_running;
mod bench_app;
mod bench_bulk;
mod bench_faults;
mod bench_http;
mod bench_net;
mod bench_unix;
mod bench_usage;
mod calibrate;
mod compare;
mod ddio;
mod endless_records;
mod footprint;
mod foreign_text;
mod help_wrapping;
mod kernel_build;
mod kernel_kinds;
mod kernel_kvm;
mod manual;
mod module;
mod printing;
mod probe_output;
mod report_files;
mod run;
mod stat_output;
mod survey;
mod temporary_files;
mod together;
mod turns;
