//! `ntcopy kernel package`: on a small tree, what surrounds compiler and packer; and once for real,
//! a kernel that is booted out of the package that it came in.

mod house;
mod signal;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use house::{House, children, text};
use ntcopy_kernel::{Boot, BuildOptions, Built, Flavour, Kind, Output as Kept, Release, progress};
use signal::Signal;

/// A tree whose makefile packs what it compiled, on a scale of two files.
const MAKEFILE: &str = "\
VERSION = 7
PATCHLEVEL = 3
SUBLEVEL = 99
EXTRAVERSION =
RELEASE = 7.3.99-test
olddefconfig:
\tgrep -v CONFIG_LOSES_ITS_PARENT .config > new && mv new .config
all: kernel/one.o kernel/two.o
\tmkdir -p include/config && echo $(RELEASE) > include/config/kernel.release
kernel/%.o: kernel/%.c
\t@echo '  CC      $@'
\t@sh slow.sh $@
\tgcc -Werror -c $< -o $@
bindeb-pkg: all
\tmkdir -p deb/DEBIAN deb/boot
\tcp kernel/one.o deb/boot/vmlinuz-$(RELEASE)
\tprintf 'Package: linux-image-$(RELEASE)\\nVersion: $(KDEB_PKGVERSION)\\nArchitecture: amd64\\n\
Maintainer: t\\nDescription: t\\n' > deb/DEBIAN/control
\tdpkg-deb --build deb ../linux-image-$(RELEASE)_$(KDEB_PKGVERSION)_amd64.deb
\ttouch ../linux-libc-dev_1_amd64.deb
";

const CONFIG: &str = "CONFIG_X86_64=y\nCONFIG_NET=y\nCONFIG_LOSES_ITS_PARENT=y\n\
    CONFIG_SYSTEM_TRUSTED_KEYS=\"debian/certs/debian-uefi-certs.pem\"\n";

/// What the check for programs looks for and a machine may lack; none of them is called here.
const PROGRAMS: [&str; 7] =
    ["dpkg-buildpackage", "dh_builddeb", "rsync", "depmod", "cpio", "python3", "bc"];

fn workplace() -> House {
    let house = House::new();
    house.put("linux/Makefile", MAKEFILE);
    house.put("linux/Kbuild", "obj-y += kernel/\n");
    house.put("linux/kernel/Makefile", "obj-y := one.o two.o\n");
    house.put("linux/kernel/two.c", "int two;\n");
    let kconfig = "config X86_64\nconfig NET\nconfig LOSES_ITS_PARENT\n";
    house.put("linux/Kconfig", kconfig);
    house.put("config", CONFIG);
    for program in PROGRAMS {
        let name = format!("tools/{program}");
        house.put(&name, "#!/bin/sh\nexit 1\n");
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(house.path(&name), executable).unwrap();
    }
    house
}

/// `ntcopy kernel package` there, with these arguments beside.
fn package(house: &House, arguments: &[&str]) -> Command {
    let config = house.path("config");
    let out = house.path("out");
    let mut all = vec!["package", "--config", config.to_str().unwrap()];
    all.extend(["--localversion", "-test", "--out", out.to_str().unwrap(), "-j1"]);
    all.extend(arguments);
    let mut ntcopy = house.ntcopy(&all);
    // What is really here comes first.
    let path = std::env::var("PATH").unwrap();
    ntcopy.env("PATH", format!("{path}:{}", house.path("tools").display()));
    ntcopy
}

fn run(house: &House, arguments: &[&str]) -> Output {
    package(house, arguments).output().unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The folders of builds.
fn builds(house: &House) -> Vec<PathBuf> {
    let folder = house.path("cache/builds");
    children(&folder).iter().map(|name| folder.join(name)).collect()
}

#[test]
fn packages_are_made_delivered_and_followed_by_what_to_type() {
    let house = workplace();
    let output = run(&house, &[]);
    let (said, told) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{told}");
    assert_eq!(children(&house.path("out")), ["linux-image-7.3.99-test_7.3.99-1_amd64.deb"]);
    let file = house.path("out/linux-image-7.3.99-test_7.3.99-1_amd64.deb");
    for part in [
        file.to_str().unwrap(),
        "sudo apt-get install /",
        "grub-reboot",
        "with Linux 7.3.99-test'",
        "apt-get purge linux-image-7.3.99-test",
        "1 settings could not stay, as what they depend on is not there: CONFIG_LOSES_ITS_PARENT",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    for part in [
        "Linux 7.3.99-test, 1 patches on ",
        "CONFIG_SYSTEM_TRUSTED_KEYS: \"debian/certs/debian-uefi-certs.pem\" is \"\" now",
        "about 2 objects",
        "not signed",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    // The patched source was compiled, and the user's own is as it was.
    let source = builds(&house)[0].join("source/kernel/one.c");
    assert!(fs::read_to_string(source).unwrap().contains("return 2;"));
    house.assert_nothing_half_done();
}

#[test]
fn what_is_missing_stands_in_the_plan_and_ends_the_build() {
    let house = workplace();
    let without = |arguments: &[&str]| {
        let path = house.path("tools");
        fs::remove_file(path.join("rsync")).ok();
        // Only gzip is the real program.
        fs::copy("/bin/gzip", path.join("gzip")).unwrap();
        package(&house, arguments).env("PATH", path).output().unwrap()
    };
    let plan = json(&without(&["--dry-run", "--json"]))["plan"].clone();
    let missing = plan["missing"].as_array().expect("what is missing").clone();
    assert!(missing.iter().any(|tool| tool["program"] == "rsync" && tool["package"] == "rsync"));
    assert!(!missing.iter().any(|tool| tool["program"] == "gzip"), "{missing:?}");
    assert_eq!(plan["objects"], 2, "the rest is printed all the same");
    let said = text(&without(&["--dry-run"]).stdout);
    let line = said.lines().find(|line| line.starts_with("missing ")).expect("a line of it");
    assert!(line.contains("; as root: apt-get install ") && line.contains("rsync"), "{line}");

    let refused = without(&[]);
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{told}");
    assert!(told.contains("apt-get install") && told.contains("rsync"), "{told}");
    assert!(builds(&house).is_empty(), "nothing was begun");
}

#[test]
fn a_dry_run_tells_it_all_and_leaves_nothing() {
    let house = workplace();
    let plan = &json(&run(&house, &["--dry-run", "--json"]))["plan"];
    assert_eq!(plan["version"], "7.3.99");
    assert_eq!((plan["builtin"].as_u64(), plan["modules"].as_u64()), (Some(3), Some(0)));
    assert_eq!(plan["objects"], 2);
    assert_eq!(plan["changes"][0]["symbol"], "CONFIG_LOCALVERSION");
    assert!(plan["room"]["needed_bytes"].as_u64() > Some(1_000_000_000));
    let time = &plan["time"];
    assert!(time["seconds"].as_u64().is_some() && time["object_ms"].as_u64() > Some(0), "{time}");
    assert!(time["basis"].as_str().unwrap().starts_with("no kernel was compiled here yet"));
    assert!(plan["download"].is_null(), "the source is a tree: {plan}");
    assert!(!house.path("cache").exists() && !house.path("out").exists());
}

/// What apt would say, by a script that takes its place.
const APT_CACHE: &str = "#!/bin/sh
case $1 in
pkgnames) printf 'linux-source-7.2\\nlinux-source-7.3\\nlinux-source-7.3-doc\\n' ;;
show) printf 'Package: %s\\nVersion: 7.3.9-1\\nArchitecture: all\\nSize: 123456789\\n\\n' linux-source-7.3 ;;
esac
";

#[test]
fn without_a_source_the_download_is_named_and_nothing_is_fetched() {
    let house = workplace();
    house.put("first/apt-cache", APT_CACHE);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(house.path("first/apt-cache"), executable).unwrap();
    let dry_run = |apt: &Path| {
        let mut ntcopy = package(&house, &["--dry-run", "--json"]);
        let path = std::env::var("PATH").unwrap();
        let tools = house.path("tools");
        ntcopy.env("PATH", format!("{}:{path}:{}", apt.display(), tools.display()));
        let output = ntcopy.env_remove("NTCOPY_LINUX").output().unwrap();
        json(&output)["plan"].clone()
    };
    let plan = dry_run(&house.path("first"));
    assert!(plan["version"].is_null() && plan["objects"].is_null(), "{plan}");
    assert!(plan["time"]["seconds"].is_null(), "there is nothing to count: {plan}");
    let download = &plan["download"];
    assert_eq!(download["name"], "linux-source-7.3", "{download}");
    assert_eq!(download["version"], "7.3.9-1");
    assert_eq!(download["size_bytes"], 123_456_789);
    // One that knows nothing.
    house.put("first/apt-cache", "#!/bin/sh\nexit 100\n");
    let download = &dry_run(&house.path("first"))["download"];
    assert_eq!(download["name"], "linux-source-7.*");
    assert!(download["size_bytes"].is_null() && download["basis"].as_str().unwrap().contains("MB"));
    assert!(!house.path("cache").exists() && !house.path("out").exists());
}

#[test]
fn what_was_interrupted_is_gone_on_with_and_done_again_only_where_it_must() {
    let house = workplace();
    let (mark, gate) = (house.path("mark"), house.path("gate"));
    let slow = format!(
        "case $1 in *two.o) touch {}; while ! test -e {}; do sleep 0.05; done;; esac\n",
        mark.display(),
        gate.display()
    );
    house.put("linux/slow.sh", &slow);
    let mut first =
        package(&house, &[]).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    while !mark.exists() {
        assert!(first.try_wait().unwrap().is_none(), "it ended before it began");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    signal::send(&first, Signal::INT);
    assert_eq!(first.wait().unwrap().code(), Some(130));
    let [build] = &builds(&house)[..] else { panic!("{:?}", builds(&house)) };
    assert!(build.join("source/kernel/one.o").is_file());
    assert!(!build.join("source/kernel/two.o").exists());
    fs::write(&gate, "").unwrap();
    let plan = &json(&run(&house, &["--dry-run", "--json"]))["plan"];
    assert_eq!((plan["is_resumed"].as_bool(), plan["compiled"].as_u64()), (Some(true), Some(2)));
    let made = json(&run(&house, &["--json"]));
    assert_eq!(made["packaged"]["release"], "7.3.99-test");
    let log = fs::read_to_string(build.join("build.log")).unwrap();
    assert_eq!(log.matches("CC      kernel/one.o").count(), 1, "{log}");
    assert_eq!(log.matches("CC      kernel/two.o").count(), 2, "{log}");
    // Asked again, it has nothing left to compile.
    json(&run(&house, &["--json"]));
    let log = fs::read_to_string(build.join("build.log")).unwrap();
    assert_eq!(log.matches("CC      kernel/").count(), 3, "{log}");
    assert_eq!(builds(&house).len(), 1);
    house.run(&["clean"]);
    assert!(builds(&house).is_empty());
}

#[test]
fn another_configuration_or_series_is_another_build() {
    let house = workplace();
    json(&run(&house, &["--json"]));
    house.put("config", &format!("{CONFIG}CONFIG_HZ=1000\n"));
    json(&run(&house, &["--json"]));
    house.patch("0001-two.patch", "\treturn 1;", "\treturn 3;");
    json(&run(&house, &["--json"]));
    assert_eq!(builds(&house).len(), 3);
}

#[test]
fn a_configuration_of_another_kernel_is_refused_with_the_names_and_leaves_nothing() {
    let house = workplace();
    let other: String = (0..9).map(|n| format!("CONFIG_OF_ANOTHER_KERNEL_{n}=m\n")).collect();
    house.put("config", &format!("{CONFIG}{other}"));
    let output = run(&house, &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for part in ["9 of the 12 settings", "CONFIG_OF_ANOTHER_KERNEL_8", "--drop-unknown"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(builds(&house).is_empty());
    let made = json(&run(&house, &["--drop-unknown", "--json"]));
    assert_eq!(made["plan"]["unknown"].as_array().map(Vec::len), Some(9));
}

#[test]
fn what_cannot_be_built_here_is_said_before_anything_is_begun() {
    let house = workplace();
    let code = |arguments: &[&str]| run(&house, arguments).status.code();
    assert_eq!(code(&["--localversion", "-Not_a_Package"]), Some(2));
    assert_eq!(code(&["--release", "5.4"]), Some(2));
    house.put("config", "CONFIG_ARM64=y\nCONFIG_NET=y\n");
    let output = run(&house, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("not of an x86-64 kernel"));
    house.put("config", CONFIG);
    let output = package(&house, &[]).env("PATH", house.path("nowhere")).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    for part in ["dh_builddeb", "apt-get install", "debhelper", "dpkg-dev", "gcc"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!house.path("cache").exists());
}

#[test]
fn a_compiler_s_error_is_shown_and_the_build_stays_to_be_mended() {
    let house = workplace();
    house.put("linux/kernel/two.c", "int two = broken_name;\n");
    let output = run(&house, &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("broken_name"), "{said}");
    let log = said.lines().find_map(|line| line.strip_prefix("the whole log: ")).unwrap();
    assert!(fs::read_to_string(log).unwrap().contains("CC      kernel/two.o"));
}

/// A small kernel, that of `x86+plain`: with the same configuration and name its objects are those
/// that the compiler's cache has.
#[test]
#[ignore = "builds a kernel that takes minutes: make test-kernels"]
fn a_kernel_boots_out_of_its_package_and_knows_the_flag() {
    let kind = Kind::X86(Release::Newest, Flavour::Plain);
    let options = BuildOptions::from_env(kind).unwrap();
    let plain = ntcopy_kernel::build(&options, progress::for_stderr().as_mut()).unwrap();
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let out = folder.path().join("debs");
    let program = Path::new(env!("CARGO_BIN_EXE_ntcopy"));
    let output = Command::new(program)
        .args(["kernel", "package", "--json", "--localversion", "-ntcopy", "--config"])
        .arg(plain.dir.join("config"))
        .arg("--out")
        .arg(&out)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let made = json(&output);
    let release = made["packaged"]["release"].as_str().unwrap();
    assert!(release.ends_with("-ntcopy"), "{release}");
    let root = folder.path().join("root");
    let debs = made["packaged"]["debs"].as_array().unwrap();
    for deb in debs {
        let path = deb["path"].as_str().unwrap();
        let unpacked = Command::new("dpkg-deb").args(["-x", path]).arg(&root).status().unwrap();
        assert!(unpacked.success(), "{path}");
    }
    let mut control = Command::new("dpkg-deb");
    control.arg("-f").arg(debs[0]["path"].as_str().unwrap()).args(["Package", "Architecture"]);
    let control = text(&control.output().unwrap().stdout);
    assert_eq!(control, format!("Package: linux-image-{release}\nArchitecture: amd64\n"));
    let installed =
        Built { path: root.join(format!("boot/vmlinuz-{release}")), dir: root, ..plain };
    let script = "uname -r; cat /proc/sys/net/core/ntcopy; \"$1\" probe | grep MSG_NTCOPY";
    let boot = Boot::new(&installed, ["sh", "-c", script, "it", program.to_str().unwrap()]);
    let boot = boot.init(program).mem_bytes(768 << 20).output(Kept::Capture);
    let outcome = boot.run().unwrap();
    let said = text(&outcome.stdout);
    assert_eq!(outcome.code, 0, "{said}{}", text(&outcome.stderr));
    assert!(outcome.splats.is_empty(), "{:?}", outcome.complaints);
    assert!(said.starts_with(&format!("{release}\n1\n")), "{said}");
    assert!(said.contains("MSG_NTCOPY") && !said.contains("no MSG_NTCOPY"), "{said}");
}
