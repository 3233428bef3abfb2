//! A PMU of the kernel, as `/sys/bus/event_source/devices` describes it.

use std::fs;
use std::path::{Path, PathBuf};

use ntcopy_record::CpuList;

const DEVICES: &str = "sys/bus/event_source/devices";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pmu {
    pub name: String,
    folder: PathBuf,
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// The CPUs to open its events on: one a socket, or one a memory controller.
    pub cpus: Vec<u32>,
}

/// An event's three configuration words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Config(pub [u64; 3]);

/// The names of all PMUs, sorted; none where the kernel has no performance events.
pub fn names(root: &Path) -> Option<Vec<String>> {
    let entries = fs::read_dir(root.join(DEVICES)).ok()?;
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Some(names)
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

impl Pmu {
    /// Reads it. Without a `cpumask` it is the machine's, and is reached through CPU 0.
    pub fn read(root: &Path, name: &str) -> Option<Pmu> {
        let folder = root.join(DEVICES).join(name);
        let kind = text(&folder.join("type"))?.parse().ok()?;
        let cpus = match text(&folder.join("cpumask")) {
            Some(list) => list.parse::<CpuList>().ok()?.numbers().to_vec(),
            None => vec![0],
        };
        (!cpus.is_empty()).then(|| Pmu { name: name.to_owned(), folder, kind, cpus })
    }

    /// The terms of an event that the kernel describes (`event=0x04,umask=0x03`), and how many
    /// bytes one count of it stands for, by its `.scale` and `.unit`.
    pub fn event(&self, event: &str) -> Option<(Config, f64)> {
        let events = self.folder.join("events");
        let terms = text(&events.join(event))?;
        let scale: f64 = text(&events.join(format!("{event}.scale")))?.parse().ok()?;
        let unit = match text(&events.join(format!("{event}.unit")))?.as_str() {
            "MiB" => f64::from(1 << 20),
            "KiB" => 1024.0,
            "Bytes" => 1.0,
            _ => return None,
        };
        let bytes = scale * unit;
        let fine = bytes.is_finite() && bytes > 0.0;
        Some((self.config(&terms)?, bytes)).filter(|_| fine)
    }

    /// The configuration words of terms as perf writes them.
    pub fn config(&self, terms: &str) -> Option<Config> {
        let mut config = Config::default();
        for term in terms.split(',').map(str::trim).filter(|term| !term.is_empty()) {
            // A term without a value is a flag.
            let (name, value) = term.split_once('=').unwrap_or((term, "1"));
            let value = number(value)?;
            let (word, bits) = match name {
                "config" | "config1" | "config2" => (word(name)?, vec![(0, 63)]),
                _ => {
                    let format = text(&self.folder.join("format").join(name))?;
                    let (place, bits) = format.split_once(':')?;
                    (word(place)?, bit_ranges(bits)?)
                }
            };
            config.0[word] |= scatter(value, &bits)?;
        }
        Some(config)
    }
}

fn word(name: &str) -> Option<usize> {
    ["config", "config1", "config2"].iter().position(|word| *word == name)
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `0-7,32-35` as pairs of bits.
fn bit_ranges(text: &str) -> Option<Vec<(u32, u32)>> {
    let range = |range: &str| {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        (low <= high && high < 64).then_some((low, high))
    };
    text.split(',').map(range).collect()
}

/// The value's bits, lowest first, put into the ranges; none if they do not hold it.
fn scatter(mut value: u64, ranges: &[(u32, u32)]) -> Option<u64> {
    let mut word = 0;
    for (low, high) in ranges {
        let width = high - low + 1;
        let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        word |= (value & mask) << low;
        value = if width == 64 { 0 } else { value >> width };
    }
    (value == 0).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_may_lie_in_pieces() {
        let df = bit_ranges("0-7,32-37").unwrap();
        assert_eq!(scatter(0x1f, &df), Some(0x1f));
        assert_eq!(scatter(0x2df, &df), Some(0x2_0000_00df));
        assert_eq!(scatter(0x4000, &df), None, "it does not fit");
        assert_eq!(scatter(u64::MAX, &[(0, 63)]), Some(u64::MAX));
        assert_eq!(bit_ranges("7"), Some(vec![(7, 7)]));
        assert_eq!(bit_ranges("9-8"), None);
        assert_eq!(bit_ranges("64"), None);
    }
}
