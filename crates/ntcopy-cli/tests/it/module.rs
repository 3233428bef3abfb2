//! `ntcopy module` without a kernel to load anything into: machines that were recorded, and a tree
//! that builds modules as the kernel's does, on a scale of one file.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::common::{
    ends, good,
    house::{self, House},
    json,
    signal::{self, Signal},
    text, wait_until,
};

const RELEASE: &str = "6.12.99+deb12-cloud-amd64";

/// What the kernel's Makefile does for `M=DIR modules`, where the module comes out with the name of
/// the kernel that it is for. `gcc` is called, so that a wrong compiler shows.
const MAKEFILE: &str = "\
CC = gcc
modules:
\t@test -f $(M)/Kbuild && test -f $(M)/ntcopy/uapi.h
\t@echo '  CC [M]  main.o'
\t@sh slow.sh
\t@echo 'int x;' > $(M)/x.c && $(CC) $(OPTION) -c $(M)/x.c -o $(M)/x.o
\t@printf '\\177ELF\\0version=9.9\\0vermagic=%s SMP \\0' $$(cat include/config/kernel.release) \\
\t\t> $(M)/ntcopy.ko
";

/// A machine with a kernel and, maybe, its headers.
struct Machine(House);

impl Machine {
    fn new() -> Self {
        let house = House::new();
        house.put("root/proc/sys/kernel/osrelease", &format!("{RELEASE}\n"));
        house.put("root/proc/modules", "");
        Self(house)
    }

    fn with_headers() -> Self {
        let machine = Self::new();
        let build = format!("root/lib/modules/{RELEASE}/build");
        let put = |name: &str, text: &str| machine.0.put(&format!("{build}/{name}"), text);
        put("Makefile", MAKEFILE);
        put("slow.sh", "");
        put("include/config/auto.conf", "CONFIG_MODULES=y\n");
        put("include/config/kernel.release", &format!("{RELEASE}\n"));
        put("Module.symvers", "");
        put("scripts/mod/modpost", "");
        machine
    }

    fn build_file(&self, name: &str) -> std::path::PathBuf {
        self.0.path(&format!("root/lib/modules/{RELEASE}/build/{name}"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut ntcopy = Command::new(env!("CARGO_BIN_EXE_ntcopy"));
        ntcopy.arg("module").args(arguments).stdin(Stdio::null());
        if arguments[0] == "build" || arguments[0] == "status" {
            ntcopy.arg("--sysroot").arg(self.0.path("root"));
        }
        ntcopy.env("NTCOPY_CACHE", self.0.path("cache"));
        ntcopy
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Fails with this exit code, leaves nothing half-done, and gives what was said.
    fn fail(&self, code: i32, arguments: &[&str]) -> String {
        let said = ends(&self.run(arguments), code, &[]);
        let modules = house::children(&self.0.path("cache/modules"));
        assert!(modules.iter().all(|name| !name.starts_with('.')), "{modules:?}");
        said
    }

    fn status(&self) -> Value {
        json(&good(&self.run(&["status", "--json"])))
    }
}

#[test]
fn a_module_is_built_kept_and_built_again_when_something_changes() {
    let machine = Machine::with_headers();
    let built = machine.run(&["build"]);
    assert!(built.status.success(), "{}", text(&built.stderr));
    let path = text(&built.stdout).trim().to_owned();
    assert!(path.ends_with("/ntcopy.ko") && path.contains(RELEASE), "{path}");
    let said = text(&built.stderr);
    assert!(said.contains(&format!("sudo ntcopy module load {path}")), "{said}");
    let when = || fs::metadata(&path).unwrap().modified().unwrap();
    let first = when();
    let headers = machine.build_file("");
    let again = machine.run(&["build", "--headers", headers.to_str().unwrap()]);
    assert_eq!(text(&again.stdout).trim(), path);
    assert_eq!(when(), first, "it was there");
    fs::write(machine.build_file("Module.symvers"), "0x1 x vmlinux EXPORT_SYMBOL\n").unwrap();
    let other = text(&machine.run(&["build"]).stdout).trim().to_owned();
    assert_ne!(other, path, "other symbols make another module");
}

#[test]
fn headers_that_are_missing_come_with_the_package_that_brings_them() {
    let machine = Machine::new();
    let said = machine.fail(3, &["build"]);
    assert!(said.contains(&format!("linux-headers-{RELEASE}")), "{said}");
    let folder = machine.0.path("headers");
    let said = machine.fail(3, &["build", "--headers", folder.to_str().unwrap()]);
    assert!(said.contains(&format!("there is no folder {}", folder.display())), "{said}");
    fs::create_dir(&folder).unwrap();
    let said = machine.fail(3, &["build", "--headers", folder.to_str().unwrap()]);
    assert!(said.contains("modules_prepare"), "{said}");
    let machine = Machine::with_headers();
    fs::write(machine.build_file("include/config/auto.conf"), "CONFIG_NET=y\n").unwrap();
    assert!(machine.fail(3, &["build"]).contains("CONFIG_MODULES is off"));
}

#[test]
fn a_kernel_that_the_module_is_not_for_is_told_so_before_a_compiler_is_looked_for() {
    let machine = Machine::with_headers();
    let old = "6.1.0-56-amd64";
    fs::write(machine.build_file("include/config/kernel.release"), format!("{old}\n")).unwrap();
    let headers = machine.build_file("");
    let said = machine.fail(3, &["build", "--headers", headers.to_str().unwrap(), "--cc", "none"]);
    assert!(said.contains(&format!("not for {old}")), "{said}");
    // The running one, whatever headers it has.
    machine.0.put("root/proc/sys/kernel/osrelease", &format!("{old}\n"));
    let said = machine.fail(3, &["build"]);
    assert!(said.contains(&format!("not for {old}")), "{said}");
    let shown = text(&machine.run(&["status"]).stdout);
    assert!(shown.contains(&format!("not for {old}")), "{shown}");
}

#[test]
fn a_module_for_another_kernel_comes_with_where_it_is_loaded() {
    let machine = Machine::with_headers();
    machine.0.put("root/proc/sys/kernel/osrelease", "6.12.1-other\n");
    let headers = machine.build_file("");
    let built = machine.run(&["build", "--headers", headers.to_str().unwrap()]);
    let path = good(&built).trim().to_owned();
    let said = text(&built.stderr);
    let next = format!("where Linux {RELEASE} runs, this loads it: sudo ntcopy module load {path}");
    assert!(said.contains(&next), "{said}");
}

#[test]
fn a_kernel_without_modules_is_told_so() {
    let machine = Machine::new();
    fs::remove_file(machine.0.path("root/proc/modules")).unwrap();
    let said = machine.fail(3, &["build"]);
    assert!(said.contains("takes no modules") && said.contains("--headers"), "{said}");
    let shown = text(&machine.run(&["status"]).stdout);
    assert!(shown.starts_with("This kernel takes no modules."), "{shown}");
}

#[test]
fn a_compiler_that_is_not_the_kernel_s_is_named_and_may_be_overruled() {
    let machine = Machine::with_headers();
    let config = "CONFIG_MODULES=y\nCONFIG_CC_IS_GCC=y\nCONFIG_GCC_VERSION=30400\n\
                  CONFIG_CC_VERSION_TEXT=\"gcc-3 (Debian) 3.4.0\"\n";
    fs::write(machine.build_file("include/config/auto.conf"), config).unwrap();
    let said = machine.fail(3, &["build"]);
    assert!(said.contains("gcc-3 (Debian) 3.4.0") && said.contains("install gcc-3"), "{said}");
    let built = machine.run(&["build", "--cc", "gcc"]);
    assert!(built.status.success(), "{}", text(&built.stderr));
    // The kernel's flags are those of its own compiler.
    let makefile = fs::read_to_string(machine.build_file("Makefile")).unwrap();
    let makefile = makefile.replace("$(OPTION)", "-fno-such-option-of-any-compiler");
    fs::write(machine.build_file("Makefile"), makefile).unwrap();
    fs::write(machine.build_file("Module.symvers"), "0x1 x vmlinux EXPORT_SYMBOL\n").unwrap();
    let said = machine.fail(1, &["build", "--cc", "gcc"]);
    assert!(said.contains("-fno-such-option"), "{said}");
    let log = said.rsplit("the whole log: ").next().unwrap().trim();
    assert!(fs::read_to_string(log).unwrap().contains("-fno-such-option"), "{log}");
}

#[test]
fn a_signal_ends_the_build_and_leaves_nothing() {
    let machine = Machine::with_headers();
    let begun = machine.0.path("begun");
    let slow = format!("touch {}; sleep 600\n", begun.display());
    fs::write(machine.build_file("slow.sh"), slow).unwrap();
    let mut child = machine.command(&["build"]).stderr(Stdio::null()).spawn().unwrap();
    wait_until(Some(&mut child), || begun.exists());
    signal::send(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(house::children(&machine.0.path("cache/modules")).is_empty());
}

#[test]
fn a_kernel_that_takes_no_modules_is_refused_before_it_is_built() {
    let machine = Machine::new();
    assert!(machine.fail(2, &["build", "--kernel", "vms"]).contains("vms"));
    for name in ["um", "x86"] {
        let said = machine.fail(3, &["build", "--kernel", name]);
        for part in [name, "stock:7.3", "um+module"] {
            assert!(said.contains(part), "{part} in {said}");
        }
    }
    machine.fail(2, &["build", "--kernel", "stock", "--headers", "/"]);
}

#[test]
fn status_tells_of_a_module_that_is_loaded() {
    let machine = Machine::with_headers();
    let put = |name: &str, text: &str| machine.0.put(&format!("root/{name}"), text);
    put("proc/modules", "ntcopy 49152 2 - Live 0xffffffffc09f0000 (OE)\n");
    put("sys/module/ntcopy/version", "0.1.0\n");
    put("proc/net/ntcopy", "");
    put(&format!("lib/modules/{RELEASE}/updates/dkms/ntcopy.ko.xz"), "");
    let shown = text(&machine.run(&["status"]).stdout);
    for part in ["The module is loaded.", "version 0.1.0", "updates/dkms/ntcopy.ko.xz"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let object = machine.status();
    assert_eq!(object["kernel"]["release"], RELEASE);
    assert_eq!(
        (&object["module"]["version"], &object["module"]["references"]),
        (&Value::from("0.1.0"), &Value::from(2))
    );
}

#[test]
fn status_says_what_to_do_next() {
    let machine = Machine::new();
    let first = || text(&machine.run(&["status"]).stdout).lines().next().unwrap().to_owned();
    assert!(first().contains("install the kernel's headers"), "{}", first());
    assert!(machine.status()["module"].is_null());
    machine.0.put(&format!("root/lib/modules/{RELEASE}/build/Makefile"), "");
    assert!(first().ends_with("Next: ntcopy module build"), "{}", first());
    machine.0.put(&format!("root/lib/modules/{RELEASE}/extra/ntcopy.ko"), "");
    assert!(first().ends_with("Next: sudo ntcopy module load"), "{}", first());
    machine.0.put("root/proc/net/netstat", "TcpExt: NtcopyBytes\nTcpExt: 0\n");
    assert_eq!(first(), "This kernel knows MSG_NTCOPY itself. It needs no module.");
    assert_eq!(machine.status()["kernel"]["has_msg_ntcopy"], true);
}
