//! `ntcopy ddio` on machines laid out below a folder: `tests/ddio/README.md` says what they are.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const MSR: u64 = 0xc8b;

/// A machine, laid out as its kernel would.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new(name: &str) -> Machine {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ddio").join(name);
        let machine = Machine { folder: tempfile::tempdir().expect("a folder") };
        let text = |file: &str| fs::read_to_string(from.join(file)).unwrap_or_default();
        machine.write("proc/cpuinfo", text("cpuinfo").as_bytes());
        machine.write("proc/sys/kernel/random/boot_id", b"first\n");
        let cpus = "sys/devices/system/cpu";
        for line in text("topology").lines() {
            let (package, cpu) = line.split_once(' ').expect("package and CPU");
            let path = format!("{cpus}/cpu{cpu}/topology/physical_package_id");
            machine.write(&path, format!("{package}\n").as_bytes());
        }
        for (name, value) in ["ways_of_associativity", "size"].iter().zip(text("llc").lines()) {
            machine.write(&format!("{cpus}/cpu0/cache/index3/{name}"), value.as_bytes());
        }
        for line in text("msr").lines() {
            let [cpu, register, value] = words(line);
            let at = hex(register);
            let mut bytes = vec![0; at as usize];
            bytes.extend(hex(value).to_le_bytes());
            machine.write(&format!("dev/cpu/{cpu}/msr"), &bytes);
        }
        for block in text("lspci").split("\n\n").filter(|block| !block.trim().is_empty()) {
            machine.device(block);
        }
        for line in text("net").lines() {
            let (device, name) = line.split_once(' ').expect("device and name");
            let path = format!("sys/bus/pci/devices/{device}/net/{name}");
            fs::create_dir_all(machine.at(&path)).expect("a folder");
        }
        machine
    }

    /// One device of `lspci -Dxxxx`.
    fn device(&self, block: &str) {
        let mut lines = block.trim().lines();
        let address = lines.next().and_then(|line| line.split(' ').next()).expect("an address");
        let mut bytes = vec![0; 4096];
        for line in lines {
            let (offset, values) = line.split_once(": ").expect("an offset");
            for (number, value) in values.split_whitespace().enumerate() {
                bytes[hex(offset) as usize + number] = hex(value) as u8;
            }
        }
        self.write(&format!("sys/bus/pci/devices/{address}/config"), &bytes);
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, bytes).expect("a file");
    }

    /// Every file below it, to see that nothing was touched.
    fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        files(self.folder.path(), &mut found);
        found.sort();
        found
    }

    fn msr(&self, cpu: u32) -> u64 {
        let mut bytes = [0; 8];
        let file = File::open(self.at(&format!("dev/cpu/{cpu}/msr"))).expect("the register file");
        file.read_exact_at(&mut bytes, MSR).expect("the register");
        u64::from_le_bytes(bytes)
    }

    fn perfctrlsts_0(&self, port: &str) -> u32 {
        let mut bytes = [0; 4];
        let file = File::open(self.at(&format!("sys/bus/pci/devices/{port}/config")));
        file.expect("the port").read_exact_at(&mut bytes, 0x180).expect("the register");
        u32::from_le_bytes(bytes)
    }

    fn ddio(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ntcopy"));
        command.arg("ddio").args(arguments).arg("--sysroot").arg(self.folder.path());
        command.output().expect("the program starts")
    }

    /// What it prints when all goes well; no line of it is wider than a terminal.
    fn says(&self, arguments: &[&str]) -> String {
        let output = self.ddio(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        if !arguments.contains(&"--json") {
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
        text
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let text = self.says(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }

    /// Its exit code and what it says on standard error, having changed nothing.
    fn refuses(&self, arguments: &[&str]) -> (i32, String) {
        let before = self.everything();
        let output = self.ddio(arguments);
        assert_eq!(self.everything(), before, "{arguments:?} changed something");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().expect("an exit code"), said)
    }
}

fn files(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            files(&path, found);
        } else {
            let mut bytes = Vec::new();
            File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)).expect("a file");
            found.push((path, bytes));
        }
    }
}

fn words<const N: usize>(line: &str) -> [&str; N] {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.try_into().unwrap_or_else(|words| panic!("{words:?}"))
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a hexadecimal number")
}

#[test]
fn a_skylake_server_shows_its_ways_and_its_ports() {
    let machine = Machine::new("skylake-sp");
    let text = machine.says(&["status"]);
    assert!(text.contains("0x600  way 10 [##.........] way 0"), "{text}");
    assert!(text.contains("2 of 11 ways, 4.0 MiB of 22.0 MiB"), "{text}");
    let on = "0000:17:00.0  on    Use_Allocating_Flow_Wr=1 NoSnoopOpWrEn=0 TPHDIS=0";
    assert!(text.contains(on), "{text}");
    assert!(text.contains("0000:18:00.0 network (ens1f0)"), "{text}");
    let off = "0000:85:02.0  off   Use_Allocating_Flow_Wr=0 NoSnoopOpWrEn=1 TPHDIS=1";
    assert!(text.contains(off), "{text}");
    assert!(text.contains("0000:86:00.0 storage"), "{text}");
    assert!(!text.contains("00:1c.0"), "a port of the chipset has no such switch: {text}");

    let object = machine.json(&["status"]);
    assert_eq!(object["packages"].as_array().map(Vec::len), Some(2));
    assert_eq!(object["packages"][1]["cpu"], 16);
    assert_eq!(object["packages"][1]["value"], "0x600");
    assert_eq!(object["packages"][1]["ways"], 2);
    assert_eq!(object["ports"][0]["on"], true);
    assert_eq!(object["ports"][1]["on"], false);
    assert!(object["not_writable"].is_null());
}

#[test]
fn a_dry_run_writes_nothing_and_says_what_it_would() {
    let machine = Machine::new("skylake-sp");
    let before = machine.everything();
    let text = machine.says(&["ways", "4"]);
    assert!(text.contains("package 0 (CPU 0): 0x600 -> 0x780"), "{text}");
    assert!(text.contains("old  way 10 [##.........] way 0  2 of 11 ways"), "{text}");
    assert!(text.contains("new  way 10 [####.......] way 0  4 of 11 ways"), "{text}");
    assert!(text.contains("Nothing was written"), "{text}");
    machine.says(&["off"]);
    let object = machine.json(&["ways", "11"]);
    assert_eq!((&object["dry_run"], &object["changes"][1]["new"]), (&true.into(), &"0x7ff".into()));
    assert_eq!(machine.everything(), before);
}

#[test]
fn ways_are_written_in_every_package_and_restored_to_what_was_first() {
    let machine = Machine::new("skylake-sp");
    machine.says(&["ways", "4", "--yes"]);
    assert_eq!((machine.msr(0), machine.msr(16)), (0x780, 0x780));
    // A second change does not make the first one what is restored.
    let object = machine.json(&["ways", "6", "--yes"]);
    assert_eq!(object["changes"][0]["old"], "0x780");
    assert_eq!(object["changes"][0]["written"], true);
    assert_eq!(machine.msr(0), 0x7e0);
    assert!(machine.says(&["status"]).contains("`ntcopy ddio restore` takes it back"));

    let text = machine.says(&["restore"]);
    assert!(text.contains("0x7e0 -> 0x600") && text.contains("Nothing was written"), "{text}");
    assert_eq!(machine.msr(0), 0x7e0);
    machine.says(&["restore", "--yes"]);
    assert_eq!((machine.msr(0), machine.msr(16)), (0x600, 0x600));
    assert_eq!(machine.refuses(&["restore", "--yes"]).0, 1, "there is nothing left to restore");
}

#[test]
fn a_port_is_switched_alone_and_no_other_bit_with_it() {
    let machine = Machine::new("skylake-sp");
    let text = machine.says(&["off", "--port", "17:00.0", "--yes"]);
    assert!(text.contains("0x00183091 -> 0x00183011"), "{text}");
    assert!(text.contains("Use_Allocating_Flow_Wr 1 -> 0"), "{text}");
    assert!(text.contains("TPHDIS is 0"), "{text}");
    assert_eq!(machine.perfctrlsts_0("0000:17:00.0"), 0x0018_3011);
    assert_eq!(machine.perfctrlsts_0("0000:85:02.0"), 0x0018_3019);

    machine.says(&["on", "--yes"]);
    assert_eq!(machine.perfctrlsts_0("0000:17:00.0"), 0x0018_3091);
    assert_eq!(machine.perfctrlsts_0("0000:85:02.0"), 0x0018_3099);
    assert!(machine.says(&["on"]).contains("It is so already"));

    machine.says(&["restore", "--yes"]);
    assert_eq!(machine.perfctrlsts_0("0000:17:00.0"), 0x0018_3091);
    assert_eq!(machine.perfctrlsts_0("0000:85:02.0"), 0x0018_3019);
}

#[test]
fn values_of_another_boot_are_not_restored() {
    let machine = Machine::new("skylake-sp");
    machine.says(&["ways", "4", "--yes"]);
    machine.write("proc/sys/kernel/random/boot_id", b"second\n");
    let (code, said) = machine.refuses(&["restore", "--yes"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("nothing to restore"), "{said}");
    // What is changed then is kept as this boot's.
    machine.says(&["ways", "5", "--yes"]);
    machine.says(&["restore", "--yes"]);
    assert_eq!(machine.msr(0), 0x780);
}

#[test]
fn an_ice_lake_server_has_ways_and_no_switch_in_its_ports() {
    let machine = Machine::new("ice-lake-sp");
    let text = machine.says(&["status"]);
    assert!(text.contains("0xc00  way 11 [##..........] way 0"), "{text}");
    assert!(text.contains("an extended capability (0x1901000b)"), "{text}");
    assert!(machine.json(&["status"])["ports"][0]["on"].is_null());
    for verb in ["on", "off"] {
        let (code, said) = machine.refuses(&[verb, "--yes"]);
        assert_eq!(code, 3, "{said}");
        assert!(said.contains("firmware"), "{said}");
    }
    machine.says(&["ways", "8", "--yes"]);
    assert_eq!(machine.msr(0), 0xff0);
    machine.says(&["restore", "--yes"]);
    assert_eq!(machine.msr(0), 0xc00);
}

#[test]
fn a_guest_an_unknown_cpu_and_other_makers_are_left_alone() {
    for (name, word) in [
        ("skylake-sp-guest", "guest of a hypervisor"),
        ("sapphire-rapids", "not among"),
        ("zen5", "Smart Data Cache Injection"),
        ("neoverse", "stash"),
    ] {
        let machine = Machine::new(name);
        for arguments in [&["ways", "4", "--yes"][..], &["off", "--yes"], &["on"], &["ways", "2"]] {
            let (code, said) = machine.refuses(arguments);
            assert_eq!(code, 3, "{name} {arguments:?}: {said}");
            assert!(said.contains(word), "{name}: {said}");
        }
        let output = machine.ddio(&["status"]);
        assert_eq!(output.status.code(), Some(3), "{name}: {output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(word), "{text}");
    }
}

#[test]
fn too_few_ways_too_many_and_ports_that_are_not_there_are_usage_errors() {
    let machine = Machine::new("skylake-sp");
    for (arguments, word) in [
        (&["ways", "1", "--yes"][..], "fewer than 2"),
        (&["ways", "0", "--yes"], "fewer than 2"),
        (&["ways", "12", "--yes"], "11 ways"),
        (&["ways", "many"], "not a number"),
        (&["off", "--port", "0000:00:1c.0", "--yes"], "0000:17:00.0, 0000:85:02.0"),
        (&["off", "--port", "18:00.0", "--yes"], "no root port of the CPU"),
        (&["nonsense"], "nonsense"),
    ] {
        let (code, said) = machine.refuses(arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

#[test]
fn a_register_that_is_not_what_it_should_be_is_not_written() {
    for (value, why) in [(0u64, "none"), (0x1600, "a bit beyond the cache's ways")] {
        let machine = Machine::new("skylake-sp");
        let file = File::options().write(true).open(machine.at("dev/cpu/16/msr")).expect("a file");
        file.write_all_at(&value.to_le_bytes(), MSR).expect("written");
        let (code, said) = machine.refuses(&["ways", "4", "--yes"]);
        assert_eq!(code, 3, "{why}: {said}");
    }
    let machine = Machine::new("skylake-sp");
    fs::remove_file(machine.at("dev/cpu/0/msr")).expect("removed");
    let (code, said) = machine.refuses(&["ways", "4", "--yes"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("modprobe msr"), "{said}");
    let text = machine.says(&["status"]);
    assert!(text.contains("modprobe msr") && text.contains("package 1  0x600"), "{text}");
}

#[test]
fn what_cannot_be_written_fails_and_says_so() {
    let machine = Machine::new("skylake-sp");
    // A link to nowhere where the folder of the old values should be: they cannot be kept.
    fs::create_dir_all(machine.at("run")).expect("a folder");
    std::os::unix::fs::symlink("nowhere", machine.at("run/ntcopy")).expect("a link");
    let (code, said) = machine.refuses(&["ways", "4", "--yes"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("nothing was written to the hardware"), "{said}");
}

#[test]
fn configuration_space_that_only_root_may_read_is_unknown_not_off() {
    let machine = Machine::new("skylake-sp");
    let path = "sys/bus/pci/devices/0000:17:00.0/config";
    let bytes = fs::read(machine.at(path)).expect("a file");
    machine.write(path, &bytes[..64]);
    let text = machine.says(&["status"]);
    assert!(text.contains("0000:17:00.0  unknown: only root may read that far"), "{text}");
    assert_eq!(machine.refuses(&["off", "--yes"]).0, 1);
    machine.says(&["off", "--port", "85:02.0"]);
}

#[test]
fn this_machine_is_told_or_refused_and_never_changed() {
    let status = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ntcopy"));
        command.arg("ddio").args(arguments).output().expect("the program starts")
    };
    let output = status(&["status", "--json"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    let object: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    if !object["not_writable"].is_null() {
        assert_eq!(status(&["ways", "4"]).status.code(), Some(3));
    }
}
