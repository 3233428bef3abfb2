//! `ntcopy kernel package`: on a small tree, what surrounds compiler and packer; and once for real,
//! a kernel that is booted out of the package that it came in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ntcopy_kernel::{Boot, BuildOptions, Built, Flavour, Kind, Output as Kept, Release, progress};

use crate::common::{
    ends,
    house::{House, children},
    text,
};

/// A tree whose makefile packs what it compiled, on a scale of one file.
const MAKEFILE: &str = "\
VERSION = 7
PATCHLEVEL = 3
SUBLEVEL = 99
EXTRAVERSION =
olddefconfig:
\tgrep -v CONFIG_LOSES_ITS_PARENT .config > new && mv new .config
bindeb-pkg:
\tgcc -Werror -c kernel/one.c -o kernel/one.o
\tcp kernel/one.c ../linux-image-7.3.99-ntcopy_$(KDEB_PKGVERSION)_amd64.deb
\tcp .config ../linux-headers-7.3.99-ntcopy_$(KDEB_PKGVERSION)_amd64.deb
\ttouch ../linux-libc-dev_1_amd64.deb ../linux-upstream_1.changes
";

/// What the kernel's own tool of this name does with the words that it is given.
const SETTINGS: &str = "#!/bin/sh\necho \"$@\" >> .config\n";

/// What the check for programs looks for and a machine may lack; none of them is called here.
const PROGRAMS: [&str; 6] =
    ["dpkg-buildpackage", "dh_builddeb", "rsync", "depmod", "cpio", "python3"];

fn executable(house: &House, name: &str, text: &str) {
    house.put(name, text);
    fs::set_permissions(house.path(name), fs::Permissions::from_mode(0o755)).unwrap();
}

fn workplace() -> House {
    let house = House::new();
    house.put("linux/Makefile", MAKEFILE);
    executable(&house, "linux/scripts/config", SETTINGS);
    house.put("config", "CONFIG_X86_64=y\nCONFIG_LOSES_ITS_PARENT=y\n");
    for program in PROGRAMS {
        executable(&house, &format!("tools/{program}"), "#!/bin/sh\nexit 1\n");
    }
    house
}

fn package(house: &House, arguments: &[&str]) -> Output {
    let (config, out) = (house.path("config"), house.path("out"));
    let all = ["package", "--config", config.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let mut ntcopy = house.ntcopy(&[&all[..], arguments].concat());
    // What is really here comes first.
    let path = std::env::var("PATH").unwrap();
    ntcopy.env("PATH", format!("{path}:{}", house.path("tools").display()));
    ntcopy.output().unwrap()
}

const IMAGE: &str = "linux-image-7.3.99-ntcopy_7.3.99-1_amd64.deb";
const HEADERS: &str = "linux-headers-7.3.99-ntcopy_7.3.99-1_amd64.deb";

#[test]
fn kernel_and_headers_are_delivered_with_the_patches_and_a_name_of_their_own() {
    let house = workplace();
    let output = package(&house, &["--no-debug-info"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut files = children(&house.path("out"));
    files.sort();
    assert_eq!(files, [HEADERS, IMAGE, "ntcopy-package.log"]);
    let paths = [HEADERS, IMAGE].map(|name| house.path("out").join(name).display().to_string());
    assert_eq!(text(&output.stdout).lines().collect::<Vec<_>>(), paths);
    assert!(fs::read_to_string(&paths[1]).unwrap().contains("return 2;"));
    let config = fs::read_to_string(&paths[0]).unwrap();
    assert!(config.starts_with("CONFIG_X86_64=y\n--set-str LOCALVERSION -ntcopy "), "{config}");
    for part in ["--set-str SYSTEM_TRUSTED_KEYS ", "--enable DEBUG_INFO_NONE"] {
        assert!(config.contains(part), "{part} in {config}");
    }
    // The user's own source is as it was, and nothing of the build is left.
    house.assert_nothing_half_done();
    assert!(children(&house.path("cache/builds")).is_empty());
}

#[test]
fn what_fails_is_shown_with_its_log() {
    let house = workplace();
    house.patch("0001-two.patch", "\treturn 1;", "\treturn broken_name;");
    let said = ends(&package(&house, &[]), 1, &["broken_name"]);
    let log = said.lines().find_map(|line| line.strip_prefix("the whole log: ")).unwrap();
    assert!(fs::read_to_string(log).unwrap().contains("broken_name"));
    assert!(children(&house.path("cache/builds")).is_empty());
}

#[test]
fn missing_programs_are_named_all_at_once_before_anything_is_begun() {
    let house = workplace();
    let mut ntcopy = house.ntcopy(&["package"]);
    let output = ntcopy.env("PATH", house.path("nowhere")).output().unwrap();
    ends(&output, 3, &["dh_builddeb", "apt-get install", "debhelper", "dpkg-dev", "gcc"]);
    assert!(!house.path("cache").exists());
}

/// A small kernel, that of `x86+plain`: with the same configuration and name its objects are those
/// that the compiler's cache has.
#[test]
#[ignore = "make test-kernels"]
fn a_kernel_boots_out_of_its_package_and_knows_the_flag() {
    let kind = Kind::X86(Release::Newest, Flavour::Plain);
    let options = BuildOptions::from_env(kind).unwrap();
    let plain = ntcopy_kernel::build(&options, progress::for_stderr().as_mut()).unwrap();
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let out = folder.path().join("debs");
    let program = Path::new(env!("CARGO_BIN_EXE_ntcopy"));
    let output = Command::new(program)
        .args(["kernel", "package", "--config"])
        .arg(plain.dir.join("config"))
        .arg("--out")
        .arg(&out)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success());
    let (debs, release) = (text(&output.stdout), plain.meta.release.as_str());
    assert!(release.ends_with("-ntcopy"), "{release}");
    let root = folder.path().join("root");
    for path in debs.lines() {
        let unpacked = Command::new("dpkg-deb").args(["-x", path]).arg(&root).status().unwrap();
        assert!(unpacked.success(), "{path}");
    }
    let mut control = Command::new("dpkg-deb");
    control.arg("-f").arg(debs.lines().next().unwrap()).args(["Package", "Architecture"]);
    let control = text(&control.output().unwrap().stdout);
    assert_eq!(control, format!("Package: linux-image-{release}\nArchitecture: amd64\n"));
    let installed =
        Built { path: root.join(format!("boot/vmlinuz-{release}")), dir: root, ..plain.clone() };
    let script = "uname -r; cat /proc/sys/net/core/ntcopy; \"$1\" probe | grep MSG_NTCOPY";
    let mut boot = Boot::new(&installed, ["sh", "-c", script, "it", program.to_str().unwrap()]);
    (boot.init, boot.mem_bytes) = (Some(program.into()), 768 << 20);
    boot.output = Kept::Capture;
    let outcome = boot.run().unwrap();
    let said = text(&outcome.stdout);
    assert_eq!(outcome.code, 0, "{said}{}", text(&outcome.stderr));
    assert!(outcome.fault_reports.is_empty(), "{:?}", outcome.fault_reports);
    assert!(said.starts_with(&format!("{release}\n1\n")), "{said}");
    assert!(said.contains("MSG_NTCOPY") && !said.contains("no MSG_NTCOPY"), "{said}");
}
