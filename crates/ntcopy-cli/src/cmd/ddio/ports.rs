//! The root ports of the CPU and the switch that each of them has.

use super::cpu::Layout;
use super::pci::{Config, DEVICES, class_name};
use super::root::Root;

/// Offset of `perfctrlsts_0`.
pub const PERFCTRLSTS_0: u64 = 0x180;
/// Offset of `perfctrlsts_1`.
const PERFCTRLSTS_1: usize = 0x184;
/// `perfctrlsts_0`: writes that miss allocate in the last-level cache.
pub const USE_ALLOCATING_FLOW_WR: u32 = 1 << 7;
/// `perfctrlsts_0`: writes that ask not to be snooped are not.
const NO_SNOOP_OP_WR_EN: u32 = 1 << 3;
/// `perfctrlsts_1`: processing hints of a write are ignored.
const TPHDIS: u32 = 1 << 9;

const INTEL: u16 = 0x8086;

/// A root port of the CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// `0000:17:00.0`.
    pub address: String,
    /// PCI device number.
    pub device: u16,
    pub switch: Switch,
    /// What is plugged in, in words.
    pub behind: Vec<String>,
}

/// What was found where the switch should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Switch {
    /// The two registers.
    Here { perfctrlsts_0: u32, perfctrlsts_1: u32 },
    /// An extended capability with that header: the register is not at this place.
    Elsewhere(u32),
    /// This generation has none in the root port.
    None,
    /// Why it could not be read.
    Unreadable(String),
}

impl Switch {
    /// Whether writes allocate, if that is known.
    pub fn is_on(&self) -> Option<bool> {
        match self {
            Switch::Here { perfctrlsts_0, .. } => Some(perfctrlsts_0 & USE_ALLOCATING_FLOW_WR != 0),
            _ => None,
        }
    }

    /// NoSnoopOpWrEn, if that is known.
    pub fn no_snoop(&self) -> Option<bool> {
        match self {
            Switch::Here { perfctrlsts_0, .. } => Some(perfctrlsts_0 & NO_SNOOP_OP_WR_EN != 0),
            _ => None,
        }
    }

    /// TPHDIS, if that is known.
    pub fn hints_disabled(&self) -> Option<bool> {
        match self {
            Switch::Here { perfctrlsts_1, .. } => Some(perfctrlsts_1 & TPHDIS != 0),
            _ => None,
        }
    }
}

/// Looks for the CPU's root ports.
pub fn find(root: &Root, layout: &Layout) -> Vec<Port> {
    let devices = root.names(DEVICES);
    let mut ports = Vec::new();
    for address in &devices {
        let Ok(config) = Config::read(root, address) else { continue };
        if config.vendor() != INTEL || !layout.ports.contains(&config.device()) {
            continue;
        }
        if config.is_root_port() == Some(false) {
            continue;
        }
        ports.push(Port {
            address: address.clone(),
            device: config.device(),
            switch: switch(&config, layout),
            behind: behind(root, &devices, address, &config),
        });
    }
    ports
}

fn switch(config: &Config, layout: &Layout) -> Switch {
    let offset = PERFCTRLSTS_0 as usize;
    let (Some(perfctrlsts_0), Some(perfctrlsts_1)) =
        (config.dword(offset), config.dword(PERFCTRLSTS_1))
    else {
        return Switch::Unreadable("only root may read that far: run it with sudo".to_owned());
    };
    if let Some(header) = config.extended_capability_at(offset) {
        return Switch::Elsewhere(header);
    }
    if !layout.port_switch {
        return Switch::None;
    }
    if perfctrlsts_0 == u32::MAX {
        return Switch::Unreadable("the port does not answer (powered down?)".to_owned());
    }
    Switch::Here { perfctrlsts_0, perfctrlsts_1 }
}

/// The devices on the port's own bus: what a switch has behind it is on others.
fn behind(root: &Root, devices: &[String], port: &str, config: &Config) -> Vec<String> {
    let (Some(bus), Some(domain)) = (config.secondary_bus(), port.split(':').next()) else {
        return Vec::new();
    };
    let prefix = format!("{domain}:{bus:02x}:");
    let on_bus = devices.iter().filter(|device| device.starts_with(&prefix));
    let name = |device: &String| {
        let class = Config::read(root, device).map_or(0, |config| config.class());
        let interfaces = root.names(&format!("{DEVICES}/{device}/net"));
        let interfaces = if interfaces.is_empty() {
            String::new()
        } else {
            format!(" ({})", interfaces.join(", "))
        };
        format!("{device} {}{interfaces}", class_name(class))
    };
    on_bus.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::super::cpu::Cpu;
    use super::*;

    fn layout(model: u32) -> &'static Layout {
        let cpu = Cpu {
            maker: super::super::cpu::Maker::Intel,
            vendor: "GenuineIntel".to_owned(),
            family: 6,
            model,
            stepping: 4,
            name: "Xeon".to_owned(),
            guest: false,
        };
        cpu.layout().expect("a known server")
    }

    /// Configuration space with some dwords set.
    fn config(dwords: &[(usize, u32)]) -> Config {
        let mut bytes = vec![0; 4096];
        for (at, value) in dwords {
            bytes[*at..*at + 4].copy_from_slice(&value.to_le_bytes());
        }
        Config::of(bytes)
    }

    #[test]
    fn the_bits_are_where_the_datasheet_has_them() {
        let config = config(&[(0x100, 0x0001_000b), (0x180, 0x0018_3091), (0x184, 0x200)]);
        let switch = switch(&config, layout(85));
        assert_eq!(switch.is_on(), Some(true));
        assert_eq!(switch.no_snoop(), Some(false));
        assert_eq!(switch.hints_disabled(), Some(true));
    }

    #[test]
    fn a_capability_at_that_place_is_never_taken_for_the_register() {
        let chain = [
            (0x100, 0x1481_0001),
            (0x148, 0x1801_000d),
            (0x180, 0x1901_000b),
            (0x190, 0x0001_001d),
        ];
        for model in [85, 106] {
            assert_eq!(switch(&config(&chain), layout(model)), Switch::Elsewhere(0x1901_000b));
        }
    }

    #[test]
    fn a_list_that_runs_in_a_circle_ends() {
        let circle = config(&[(0x100, 0x1101_0001), (0x110, 0x1001_0002), (0x180, 0x80)]);
        assert_eq!(switch(&circle, layout(85)).is_on(), Some(true));
        assert_eq!(switch(&circle, layout(106)), Switch::None);
    }

    #[test]
    fn what_a_user_cannot_read_is_said() {
        let short = Config::of(vec![0; 256]);
        assert!(
            matches!(switch(&short, layout(85)), Switch::Unreadable(why) if why.contains("root"))
        );
    }
}
