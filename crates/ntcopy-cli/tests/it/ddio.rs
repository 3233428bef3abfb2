//! `ntcopy ddio` on machines that are laid out below a folder as published: none was at hand. Of
//! public reports of real ones are `perfctrlsts_0` = 0x00183091, MSR 0xC8B = 0x600 and 0xc00, and
//! the capability 0x1901000b at 0x180 on Ice Lake-SP.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Command;

const CPU: &str = "Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz";
const PORT: &str = "sys/bus/pci/devices/0000:17:00.0/config";
const OTHER: &str = "sys/bus/pci/devices/0000:85:02.0/config";

struct Machine(tempfile::TempDir);

impl Machine {
    /// Two packages, each with a root port; a card behind the first.
    fn new(cpu: &str, model: u32, flags: &str, ways: u32, port: u32) -> Machine {
        let machine = Machine(tempfile::tempdir().unwrap());
        let cpuinfo = format!(
            "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: {model}\nmodel name\t: {cpu}\n\
             stepping\t: 4\nflags\t\t: fpu {flags}\n"
        );
        machine.write("proc/cpuinfo", cpuinfo.as_bytes());
        let cpus = "sys/devices/system/cpu";
        let cache = format!("{cpus}/cpu0/cache/index3/ways_of_associativity");
        machine.write(&cache, ways.to_string().as_bytes());
        for (package, cpu) in [("0", 0), ("1", 16)] {
            let topology = format!("{cpus}/cpu{cpu}/topology/physical_package_id");
            machine.write(&topology, package.as_bytes());
            let register = (3u64 << (ways - 2)).to_le_bytes();
            machine.write(&format!("dev/cpu/{cpu}/msr"), &[&[0; 0xc8b][..], &register].concat());
        }
        machine.write(PORT, &config(port, 0x18, [0x0018_3091, 0]));
        machine.write(OTHER, &config(port + (2 << 16), 0x86, [0x0018_3019, 0x200]));
        fs::create_dir_all(machine.at("sys/bus/pci/devices/0000:18:00.0/net/ens1f0")).unwrap();
        // A root port of the chipset is none of the CPU.
        let chipset = config(0xa190_8086, 1, [0; 2]);
        machine.write("sys/bus/pci/devices/0000:00:1c.0/config", &chipset);
        machine
    }

    fn skylake() -> Machine {
        Machine::new(CPU, 85, "", 11, 0x2030_8086)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), bytes).unwrap();
    }

    fn register<const N: usize>(&self, path: &str, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        File::open(self.at(path)).unwrap().read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    fn ways(&self) -> [u64; 2] {
        [0, 16].map(|cpu| u64::from_le_bytes(self.register(&format!("dev/cpu/{cpu}/msr"), 0xc8b)))
    }

    fn switches(&self) -> [u32; 2] {
        [PORT, OTHER].map(|path| u32::from_le_bytes(self.register(path, 0x180)))
    }

    fn ddio(&self, arguments: &str) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ntcopy"));
        command.arg("ddio").args(arguments.split(' ')).arg("--sysroot").arg(self.0.path());
        let output = command.output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code().unwrap(), said)
    }

    fn says(&self, arguments: &str, words: &[&str]) {
        let (code, said) = self.ddio(arguments);
        assert_eq!(code, 0, "{arguments}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{words:?} in {said}");
    }

    /// Ends with that code, and has changed nothing.
    fn refuses(&self, arguments: &str, code: i32, word: &str) {
        let state = || {
            [PORT, OTHER, "dev/cpu/0/msr", "dev/cpu/16/msr"]
                .map(|path| fs::read(self.at(path)).ok())
        };
        let before = state();
        let (ended, said) = self.ddio(arguments);
        assert_eq!((ended, said.contains(word)), (code, true), "{arguments}: {said}");
        assert_eq!(state(), before, "{arguments} changed something");
    }
}

/// Configuration space of a bridge, with one extended capability, which is not at 0x180.
fn config(device: u32, bus: u8, switch: [u32; 2]) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    put(0, device);
    put(0x08, 0x0604_0000);
    put(0x18, u32::from(bus) << 8);
    put(0x100, 0x0001_000b);
    put(0x180, switch[0]);
    put(0x184, switch[1]);
    bytes
}

#[test]
fn a_skylake_server_shows_its_ways_and_its_ports() {
    let words = [
        "package 1 (CPU 16)  0x600  2 of 11 ways",
        "0000:17:00.0  on  Use_Allocating_Flow_Wr=1 NoSnoopOpWrEn=0 TPHDIS=0",
        "0000:18:00.0 ens1f0",
        "0000:85:02.0  off Use_Allocating_Flow_Wr=0 NoSnoopOpWrEn=1 TPHDIS=1",
    ];
    Machine::skylake().says("status", &words);
    assert!(!Machine::skylake().ddio("status").1.contains("1c.0"));
}

#[test]
fn ways_are_written_in_every_package_and_only_with_yes() {
    let machine = Machine::skylake();
    machine.says("ways 4", &["package 0 (CPU 0): 0x600 -> 0x780", "Nothing was written"]);
    assert_eq!(machine.ways(), [0x600; 2]);
    machine.says("ways 4 --yes", &["Written, and read back"]);
    assert_eq!(machine.ways(), [0x780; 2]);
    machine.says("ways 4 --yes", &["It is so already"]);
    machine.says("ways 11 --yes", &["0x780 -> 0x7ff"]);
}

#[test]
fn a_port_is_switched_alone_and_no_other_bit_with_it() {
    let machine = Machine::skylake();
    machine.says("off 0000:17:00.0", &["0x183091 -> 0x183011", "Nothing was written"]);
    assert_eq!(machine.switches(), [0x18_3091, 0x18_3019]);
    machine.says("off 0000:17:00.0 --yes", &["Written"]);
    machine.says("on 0000:85:02.0 --yes", &["Written"]);
    assert_eq!(machine.switches(), [0x18_3011, 0x18_3099]);
}

#[test]
fn an_ice_lake_server_has_ways_and_no_switch_in_its_ports() {
    let machine = Machine::new(CPU, 106, "", 12, 0x347a_8086);
    machine.says("status", &["0xc00  2 of 12 ways", "firmware's setup"]);
    machine.refuses("off 0000:17:00.0 --yes", 3, "firmware");
    machine.says("ways 8 --yes", &["0xc00 -> 0xff0"]);
}

#[test]
fn a_capability_where_the_switch_should_be_is_never_written() {
    let machine = Machine::skylake();
    let mut bytes = config(0x2030_8086, 0x18, [0x1901_000b, 0]);
    bytes[0x100..0x104].copy_from_slice(&0x1801_0001u32.to_le_bytes());
    machine.write(PORT, &bytes);
    machine.refuses("off 0000:17:00.0 --yes", 3, "an extended capability (0x1901000b)");
}

#[test]
fn guests_and_unknown_cpus_are_left_alone() {
    for (cpu, model, flags, word) in [
        (CPU, 85, "hypervisor", "a guest"),
        ("Intel(R) Xeon(R) Platinum 8480+", 143, "", "not among"),
        ("Intel(R) Core(TM) i9-7900X CPU @ 3.30GHz", 85, "", "not among"),
    ] {
        let machine = Machine::new(cpu, model, flags, 11, 0x2030_8086);
        for arguments in ["status", "ways 4 --yes", "off 0000:17:00.0 --yes"] {
            machine.refuses(arguments, 3, word);
        }
    }
    let machine = Machine::skylake();
    machine.write("proc/cpuinfo", b"vendor_id : AuthenticAMD\n");
    machine.refuses("status", 3, "Intel's servers");
}

#[test]
fn what_the_machine_does_not_have_is_a_usage_error() {
    for (arguments, word) in [
        ("ways 1 --yes", "2.."),
        ("ways 12 --yes", "11 ways"),
        ("off 0000:00:1c.0 --yes", "no root port of the CPU"),
    ] {
        Machine::skylake().refuses(arguments, 2, word);
    }
}

#[test]
fn a_register_that_is_not_what_it_should_be_is_not_written() {
    for value in [0u64, 0x1600] {
        let machine = Machine::skylake();
        let file = File::options().write(true).open(machine.at("dev/cpu/16/msr")).unwrap();
        file.write_all_at(&value.to_le_bytes(), 0xc8b).unwrap();
        machine.refuses("ways 4 --yes", 3, "no set of the cache's 11 ways");
    }
    let machine = Machine::skylake();
    fs::remove_file(machine.at("dev/cpu/16/msr")).unwrap();
    machine.refuses("ways 4 --yes", 1, "modprobe msr");
    machine.write(PORT, &fs::read(machine.at(PORT)).unwrap()[..64]);
    machine.refuses("off 0000:17:00.0 --yes", 1, "only root may read that far");
    machine.says("status", &["modprobe msr", "0000:17:00.0  only root"]);
}
