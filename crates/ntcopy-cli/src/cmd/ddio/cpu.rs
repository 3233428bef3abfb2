//! Which CPU it is, by `/proc/cpuinfo`, and whether its registers are known.

use super::root::Root;

/// The CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpu {
    pub maker: Maker,
    /// The vendor as CPUID spells it, or `Arm`.
    pub vendor: String,
    pub family: u32,
    pub model: u32,
    pub stepping: u32,
    /// Its own name for itself.
    pub name: String,
    /// Whether a hypervisor says that it is there.
    pub guest: bool,
}

/// Who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    Intel,
    Amd,
    Arm,
    Other,
}

/// What is known of a generation's registers.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// The generation, for people.
    pub name: &'static str,
    /// The PCI device numbers of the CPU's own root ports.
    pub ports: &'static [u16],
    /// Whether these have `perfctrlsts_0` at 0x180 of their configuration space.
    pub port_switch: bool,
}

/// Skylake-SP and Cascade Lake-SP: volume two of the datasheet, Intel document 614073, page 68.
static SKYLAKE: Layout = Layout {
    name: "Skylake-SP or Cascade Lake-SP",
    ports: &[0x2030, 0x2031, 0x2032, 0x2033],
    port_switch: true,
};

/// Ice Lake-SP. At 0x180 its root ports have an extended capability (vendor-specific, followed by
/// Downstream Port Containment at 0x190); Intel says that DDIO is switched in firmware setup.
static ICE_LAKE: Layout =
    Layout { name: "Ice Lake-SP", ports: &[0x347a, 0x347b, 0x347c, 0x347d], port_switch: false };

impl Cpu {
    /// Reads it; none where there is no description of a CPU at all.
    pub fn read(root: &Root) -> Option<Cpu> {
        let text = root.text("/proc/cpuinfo")?;
        Some(Cpu::parse(&text))
    }

    fn parse(text: &str) -> Cpu {
        let field = |name: &str| {
            let line = |line: &str| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then(|| value.trim().to_owned())
            };
            text.lines().find_map(line)
        };
        let number = |name: &str| field(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        let arm = field("CPU implementer").is_some();
        let vendor = field("vendor_id").unwrap_or_else(|| if arm { "Arm" } else { "" }.to_owned());
        let flags = field("flags").unwrap_or_default();
        Cpu {
            maker: match vendor.as_str() {
                "GenuineIntel" => Maker::Intel,
                "AuthenticAMD" | "HygonGenuine" => Maker::Amd,
                "Arm" => Maker::Arm,
                _ => Maker::Other,
            },
            vendor,
            family: number("cpu family"),
            model: number("model"),
            stepping: number("stepping"),
            name: field("model name").unwrap_or_else(|| "a CPU without a name".to_owned()),
            guest: flags.split_whitespace().any(|flag| flag == "hypervisor"),
        }
    }

    /// What is known of its registers. The desktop parts of the same models are not servers, and
    /// of Cooper Lake (stepping 10 and up of model 85) nothing is published.
    pub fn layout(&self) -> Option<&'static Layout> {
        let server = self.maker == Maker::Intel && self.family == 6 && self.name.contains("Xeon");
        match (self.model, self.stepping) {
            (85, 0..=7) if server => Some(&SKYLAKE),
            (106, _) if server => Some(&ICE_LAKE),
            _ => None,
        }
    }

    /// What this platform does with devices' writes, where it has no DDIO.
    pub fn instead(&self) -> Option<&'static str> {
        match self.maker {
            Maker::Intel => None,
            Maker::Amd => Some(AMD),
            Maker::Arm => Some(ARM),
            Maker::Other => Some("No DDIO here: that is a feature of Intel's server CPUs."),
        }
    }
}

const AMD: &str = "No DDIO here: that is Intel's. A device's write goes to memory, and copies of \
                   the line in caches are dropped, unless the device names a cache. It can on \
                   EPYC 9005 (Zen 5) and later: Smart Data Cache Injection puts a write that \
                   carries a PCIe steering tag (TLP processing hints, TPH) into the cache of the \
                   CPU that the tag stands for. The driver of the device asks for it; the kernel \
                   parameter pci=notph forbids it. How much of the L3 such writes may take is in \
                   resctrl, info/L3/io_alloc, from Linux 6.19 on.";

const ARM: &str = "No DDIO here: that is Intel's. Arm's interconnects (CoreLink CMN) can take a \
                   device's writes into the system-level cache, or stash them in the cache of a \
                   CPU that a PCIe steering tag names (TPH). Whether they do is set by the \
                   system's firmware and the device's driver; there is no register for it that \
                   all of them share.";

#[cfg(test)]
mod tests {
    use super::*;

    fn intel(model: u32, stepping: u32, name: &str) -> Cpu {
        Cpu::parse(&format!(
            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: {model}\n\
             model name\t: {name}\nstepping\t: {stepping}\nflags\t\t: fpu vme\n"
        ))
    }

    #[test]
    fn servers_are_told_from_desktops_and_from_unknown_generations() {
        let name = "Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz";
        assert_eq!(intel(85, 7, name).layout(), Some(&SKYLAKE));
        assert_eq!(intel(85, 4, "Intel(R) Core(TM) i9-7900X CPU @ 3.30GHz").layout(), None);
        assert_eq!(intel(85, 11, "Intel(R) Xeon(R) Platinum 8380H CPU").layout(), None);
        assert_eq!(intel(106, 6, "Intel(R) Xeon(R) Silver 4314 CPU").layout(), Some(&ICE_LAKE));
        assert_eq!(intel(143, 8, "Intel(R) Xeon(R) Platinum 8480+").layout(), None);
    }

    #[test]
    fn a_guest_says_so_and_every_maker_has_its_word() {
        let amd = Cpu::parse("vendor_id : AuthenticAMD\nflags : fpu hypervisor\n");
        assert!(amd.guest && amd.instead().is_some_and(|text| text.contains("Cache Injection")));
        let arm = Cpu::parse("processor : 0\nBogoMIPS : 50.00\nCPU implementer : 0x41\n");
        assert_eq!((arm.maker, arm.guest), (Maker::Arm, false));
        let um = Cpu::parse("vendor_id : User Mode Linux\nmodel name : UML\n");
        assert_eq!((um.maker, um.layout()), (Maker::Other, None));
        assert_eq!(intel(106, 6, "Xeon").instead(), None);
    }
}
