//! `ntcopy module` on the distribution's own kernels, 6.12 and 7.3, in QEMU: built against their own
//! headers, loaded, used by the library, unloaded; refused where it must be. And on the user-mode
//! kernel that is built for it, where it is measured.
//!
//! Where QEMU is not installed, or the packages or a kernel's own gcc are not to be had, these print
//! why and do nothing.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use ntcopy::Hint;
use ntcopy::socket::{self, Errno, SendFlags, Setting, Support};
use ntcopy::uapi::MODULE_MIN_BYTES;
use xtask::suite::{self, Kernel};

use crate::common::{
    PROGRAM, ends, good, is_not_available, measured, ntcopy,
    preload::{PYTHON, SENDER, SENT_BYTES, hinted, library, rises},
    project, text,
};

/// The module for a kernel, built; or nothing, with a word, where there are no packages.
fn module(kernel: &str) -> Option<PathBuf> {
    if Command::new("qemu-system-x86_64").arg("--version").output().is_err() {
        println!("not run: QEMU is not installed (scripts/setup.sh kernels)");
        return None;
    }
    built(kernel)
}

fn built(kernel: &str) -> Option<PathBuf> {
    let built = ntcopy(&["module", "build", "--kernel", kernel]);
    let is_missing = is_not_available(&built, "");
    (!is_missing).then(|| PathBuf::from(good(&built).trim()))
}

/// A script of the guest's shell, in which `$1` is the program, `$2` this test, `$3` and so on are
/// modules, and `says COMMAND…` prints what a command says on both its outputs, and its exit code.
fn boot(kernel: &str, modules: &[&Path], script: &str) -> String {
    let says = "says() { \"$@\" 2>&1; echo \"= $?\"; }\n";
    let this = std::env::current_exe().expect("this test has a path");
    let output = Command::new(PROGRAM)
        .args(["kernel", "boot", "--kernel", kernel, "--timeout", "400"])
        .args(["--", "sh", "-c", &format!("{says}{script}"), "module", PROGRAM])
        .arg(this)
        .args(modules)
        .stdin(Stdio::null())
        .output()
        .expect("it can be run");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", text(&output.stderr));
    said
}

/// Holds what was said against parts that must be there, in their order.
fn assert_in_order(said: &str, parts: &[&str]) {
    let mut rest = said;
    for part in parts {
        let Some(at) = rest.find(part) else {
            panic!("no '{part}' where it should be in:\n{said}")
        };
        rest = &rest[at + part.len()..];
    }
}

/// Loaded in two ways, used by the library, looked at, unloaded.
const SERVES: &str = r#"
    says "$1" module unload
    xz --check=crc32 -c "$3" > /run/ntcopy.ko.xz
    PATH=/nowhere says "$1" module load /run/ntcopy.ko.xz
    says "$1" module unload
    gzip -c "$3" > /run/ntcopy.ko.gz
    PATH=/nowhere says "$1" module load /run/ntcopy.ko.gz
    says "$1" module load /run/ntcopy.ko.gz
    says "$1" module unload
    PATH=/nowhere says "$1" module load "$3"
    says "$1" module load "$3"
    says "$2" --ignored --exact module_booted::inside_a_guest_the_library_attaches_sends_and_lets_go
    says "$1" module status
    says "$1" probe
    says "$1" module unload
    test -e /dev/ntcopy || echo no device left
"#;

fn assert_it_served(said: &str) {
    assert_in_order(
        said,
        &[
            "the module is not loaded\n= 0",
            "loaded /run/ntcopy.ko.xz\n= 0",
            "unloaded\n= 0",
            "takes gzip, which is not here, to unpack\n= 3",
            "loaded /run/ntcopy.ko.gz\n= 0",
            "unloaded\n= 0",
            "loaded /",
            "= 0",
            "the module is loaded already",
            "= 0",
            "test result: ok. 1 passed",
            "= 0",
            "The module is loaded.",
            "attached          0 sockets",
            "detached, open    0 sockets",
            "= 0",
            "by the module, on sockets that opt in",
            "= 0",
            "unloaded\n= 0",
            "no device left",
        ],
    );
}

/// Programs that were never changed, under `ntcopy run`: without it, with it, obeyed, and where it
/// is to leave their sockets alone. After each, what the module has counted so far.
fn starts(sender: &Path) -> String {
    let run = |more: &str| format!("\"$1\" run --library '{}' {more} --", library());
    let begins = [String::new(), run(""), run("--min-bytes 512k"), run("--family tcp")];
    let programs: String = begins
        .iter()
        .map(|begin| {
            let sender = sender.display();
            format!("says {begin} {PYTHON} '{sender}'\nsays \"$1\" stat --json\n")
        })
        .collect();
    format!(
        "echo unchanged programs\nsays \"$1\" module load \"$3\"\n{programs}says \"$1\" module unload\n"
    )
}

fn sender() -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(SENDER.as_bytes()).expect("our file");
    file
}

fn assert_it_hinted_what_was_started(said: &str) {
    let at = said.find("unchanged programs\n").expect("it came so far");
    let said = said[at..].split("refusals\n").next().unwrap_or_default();
    assert_eq!(rises(said, hinted), [0, SENT_BYTES, SENT_BYTES, 0], "{said}");
    let bypassed = |object: &serde_json::Value| object["bypassed_bytes"].as_u64();
    assert_eq!(rises(said, bypassed), [0, SENT_BYTES, SENT_BYTES, 0], "{said}");
    assert!(!said.contains("= 1\n"), "{said}");
    assert_in_order(said, &["loaded /", "bypassed_bytes", "unloaded\n= 0"]);
}

/// The module of another kernel, a file that is none, a user who may not; then a kernel that takes
/// signed modules only, which cannot be taken back.
const REFUSES: &str = r#"
    echo refusals
    says "$1" module load "$4"
    says "$1" module load /etc/passwd
    says setpriv --reuid 1000 --clear-groups "$1" module unload
    echo 1 > /sys/module/module/parameters/sig_enforce
    says "$1" module load "$3"
    says "$1" module status
"#;

fn assert_it_refused(said: &str) {
    let at = said.find("refusals\n").expect("it came so far");
    let parts = [
        "it is no module, or one of another kernel (Exec format error",
        "the kernel's log: ntcopy: version magic '7.3",
        "= 1",
        "the kernel refuses /etc/passwd: it is no module",
        "= 1",
        "the module is not loaded\n= 0",
        "this kernel takes signed modules alone",
        "the kernel's log: Loading of unsigned module is rejected",
        "= 1",
        "The module is not loaded.",
    ];
    assert_in_order(&said[at..], &parts);
}

/// A copy that says of itself that it is for another kernel.
fn of_another_kernel(module: &Path, folder: &Path) -> PathBuf {
    let mut bytes = std::fs::read(module).unwrap();
    for (own, other) in [("vermagic=6.12", "vermagic=7.34"), ("-amd64 SMP ", "-amd64 UP  ")] {
        let mut places = bytes.windows(own.len());
        let at = places.position(|place| place == own.as_bytes()).expect("it names its kernel");
        bytes[at..at + own.len()].copy_from_slice(other.as_bytes());
    }
    let copy = folder.join("ntcopy.ko");
    std::fs::write(&copy, bytes).unwrap();
    copy
}

// A boot takes minutes of an emulator's time: one for all that the older kernel is to show.
#[test]
#[ignore = "make test-module"]
fn the_module_serves_the_library_on_debian_s_kernel_6_12_or_says_why_not() {
    let Some(module) = module("stock") else { return };
    let folder = tempfile::tempdir().unwrap();
    let newer = of_another_kernel(&module, folder.path());
    let sender = sender();
    let starts = starts(sender.path());
    let said = boot("stock", &[&module, &newer], &format!("{SERVES}{starts}{REFUSES}"));
    assert_it_served(&said);
    assert_it_hinted_what_was_started(&said);
    assert_it_refused(&said);
}

#[test]
#[ignore = "make test-module"]
fn the_module_serves_the_library_on_debian_s_kernel_7_3() {
    let Some(module) = module("stock:7.3") else { return };
    let sender = sender();
    let starts = starts(sender.path());
    let said = boot("stock:7.3", &[&module], &format!("{SERVES}{starts}"));
    assert_it_served(&said);
    assert_it_hinted_what_was_started(&said);
}

#[test]
#[ignore = "make test-module-suite"]
fn the_suite_passes_through_the_module_on_debian_s_kernels() {
    // What Debian's kernel lacks, on an emulated CPU.
    let lacks = &["no mode all", "udplite", "dccp"];
    for name in ["stock", "stock:7.3"] {
        if module(name).is_some() {
            let kernel = Kernel { name, lacks, big_mib: 4, limit_s: 1800 };
            let passed = suite::must_pass_through(Path::new(PROGRAM), &kernel);
            passed.unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

#[test]
#[ignore = "make test-module"]
fn the_suite_passes_through_the_module_in_a_user_mode_kernel() {
    if built("um+module").is_some() {
        let lacks = &["no mode all", "udplite", "mptcp", "sctp", "io_uring", "bpf", "no cgroup2"];
        let kernel = Kernel { name: "um+module", lacks, big_mib: 64, limit_s: 900 };
        let passed = suite::must_pass_through(Path::new(PROGRAM), &kernel);
        passed.unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
#[ignore = "make test-module"]
fn the_module_takes_hints_in_a_user_mode_kernel_and_they_can_be_measured() {
    let Some(module) = built("um+module") else { return };
    let script = r#"
        says "$1" module load
        says "$2" --ignored --exact module_booted::inside_a_guest_the_library_attaches_sends_and_lets_go
        says "$1" module unload"#;
    let said = boot("um+module", &[&module], script);
    assert_in_order(
        &said,
        &["loaded /", "= 0", "test result: ok. 1 passed", "= 0", "unloaded\n= 0"],
    );

    let programs = project().join("crates/ntcopy-cli/tests/guest/set.py");
    let script = format!(
        r#"
        says "$1" module load
        says python3 '{}' "$1" by_the_module_there_and_back by_the_module_under_load_nothing_is_lost
        says "$1" module unload"#,
        programs.display()
    );
    let said = boot("um+module", &[&module], &script);
    assert_in_order(
        &said,
        &[
            "ok by_the_module_there_and_back\n",
            "ok by_the_module_under_load_nothing_is_lost\n= 0",
            "unloaded\n= 0",
        ],
    );

    let small =
        ["--sockets", "2", "--object", "256KiB", "--dataset", "256KiB", "--modes", "hinted"];
    let (record, _) = measured(&[&["unix", "--kernel", "um+module"], &small[..]].concat());
    assert!(record.unavailable.is_empty(), "{:?}", record.unavailable);
    let hinted = record.samples.iter().filter(|sample| sample.mode == "hinted").count();
    assert_eq!(hinted, 5);
}

/// Bytes that no two neighbours share.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()
}

/// A send with the hint, on a socket whose hints are taken so.
fn send_hinted(here: impl AsFd, bytes: &[u8], support: Support) -> usize {
    socket::send(here, bytes, SendFlags::NOSIGNAL, Hint::Nontemporal, support).unwrap()
}

/// Sends all of the bytes with the hint, and gives what arrived.
fn send_all(here: impl AsFd, mut there: impl Read + Send + 'static, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len();
    let reader = thread::spawn(move || {
        let mut got = vec![0; length];
        there.read_exact(&mut got).map(|()| got)
    });
    let mut rest = bytes;
    while !rest.is_empty() {
        rest = &rest[send_hinted(&here, rest, Support::Module)..];
    }
    reader.join().unwrap().unwrap()
}

/// Bytes of sockets that opted in, of hinted sends, of sends past the caches.
fn counted() -> [u64; 3] {
    let counters = socket::counters().unwrap().expect("the module counts");
    [counters.bytes, counters.hinted_bytes, counters.bypassed_bytes]
}

/// The least number that there is, and what the module makes of it.
const PAGES: Setting = Setting::From(4096);
const LEAST: Setting = Setting::From(MODULE_MIN_BYTES.cast_unsigned());

fn attached() -> (u64, u64) {
    let info = socket::module_info().unwrap().expect("the module is there");
    (info.attached, info.lingering)
}

/// `ntcopy module unload` must fail, and `status` say why.
fn unload_is_refused(why: &str) {
    ends(&ntcopy(&["module", "unload"]), 1, &["the kernel keeps the module"]);
    let status = text(&ntcopy(&["module", "status"]).stdout);
    assert!(status.contains(why), "{status}");
}

#[test]
#[ignore = "runs in a guest that has the module; the other tests of this file start it"]
fn inside_a_guest_the_library_attaches_sends_and_lets_go() {
    assert_eq!(socket::kernel_support(), Support::Module);
    assert_eq!(attached(), (0, 0));
    let bytes = pattern(1 << 20);

    let (here, mut there) = UnixStream::pair().unwrap();
    assert_eq!(socket::mode(&here), Ok((Support::None, Setting::None)));
    let before = counted();
    for (setting, taken) in [
        (Setting::None, Setting::None),
        (Setting::Flagged, Setting::Flagged),
        (Setting::From((256 << 10) + 1), Setting::From(512 << 10)),
        (PAGES, LEAST),
    ] {
        // Before it has opted in, and with a setting that hints nothing.
        if setting == Setting::None {
            for support in [Support::None, Support::Module] {
                assert_eq!(send_hinted(&here, b"x", support), 1);
                there.read_exact(&mut [0]).unwrap();
            }
        }
        assert_eq!(socket::enable(&here, setting), Ok(Support::Module));
        assert_eq!(socket::mode(&here), Ok((Support::Module, taken)));
        assert_eq!(attached(), (1, 0), "attaching again attaches no second time");
        if setting == Setting::None {
            assert_eq!(send_hinted(&here, &bytes[..8192], Support::Module), 8192);
            there.read_exact(&mut [0; 8192]).unwrap();
            assert_eq!(counted(), before, "none of it was to be hinted");
        }
    }
    assert!(send_all(&here, there.try_clone().unwrap(), &bytes) == bytes);
    let length = bytes.len() as u64;
    assert_eq!(counted(), before.map(|count| count + length), "each byte is counted once");
    assert_eq!(send_hinted(&here, &bytes[..8192], Support::Module), 8192);
    there.read_exact(&mut [0; 8192]).unwrap();
    let [all, hinted, bypassed] = before.map(|count| count + length);
    assert_eq!(counted(), [all + 8192, hinted, bypassed], "a small send is not hinted");
    unload_is_refused("attached          1 socket\n");

    assert_eq!(socket::disable(&here), Ok(Support::Module));
    assert_eq!(socket::mode(&here), Ok((Support::None, Setting::None)));
    assert_eq!(attached(), (0, 1));
    unload_is_refused("detached, open    1 socket\n");
    (&here).write_all(b"still a socket").unwrap();
    let mut got = [0; 14];
    there.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"still a socket");
    drop(here);
    assert_eq!(attached(), (0, 0));
    // What is left is this process's own descriptor of the device.
    unload_is_refused(&format!("process {} (", std::process::id()));

    accepted_sockets_inherit(&bytes);
    tcp_is_plain(&bytes);
    what_cannot_be_helped_works_as_ever();
    assert_eq!(attached(), (0, 0));
}

fn accepted_sockets_inherit(bytes: &[u8]) {
    let place = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(place.path().join("listener")).unwrap();
    assert_eq!(socket::enable(&listener, PAGES), Ok(Support::Module));
    let client = UnixStream::connect(place.path().join("listener")).unwrap();
    let (server, _) = listener.accept().unwrap();
    assert_eq!(socket::mode(&server), Ok((Support::Module, LEAST)));
    assert_eq!(socket::mode(&client), Ok((Support::None, Setting::None)));
    assert_eq!(attached(), (2, 0));
    assert!(send_all(&server, client, bytes) == bytes);
}

/// The hint is not taken there, on a listener and on what it accepts, and no byte is counted.
fn tcp_is_plain(bytes: &[u8]) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(socket::enable(&listener, PAGES), Ok(Support::None));
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    for setting in [Setting::None, PAGES, Setting::Flagged] {
        assert_eq!(socket::enable(&server, setting), Ok(Support::None));
        assert_eq!(socket::mode(&server), Ok((Support::None, Setting::None)));
    }
    let before = counted();
    assert_eq!(send_hinted(&server, &bytes[..30_000], Support::None), 30_000);
    let mut got = vec![0; 30_000];
    client.read_exact(&mut got).unwrap();
    assert!(got == bytes[..30_000]);
    assert_eq!(counted(), before);
    assert_eq!(socket::disable(&server), Ok(Support::None));
}

fn what_cannot_be_helped_works_as_ever() {
    let (here, there) = UnixDatagram::pair().unwrap();
    assert_eq!(socket::enable(&here, PAGES), Ok(Support::None));
    assert_eq!(send_hinted(&here, b"datagram", Support::None), 8);
    let mut got = [0; 16];
    assert_eq!(there.recv(&mut got).unwrap(), 8);
    let file = std::fs::File::open("/dev/null").unwrap();
    assert_eq!(socket::enable(&file, PAGES), Err(Errno::NOTSOCK));
    assert_eq!(socket::disable(&file), Err(Errno::NOTSOCK));
}
