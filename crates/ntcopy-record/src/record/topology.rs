//! A machine's CPU topology: packages, NUMA nodes, cores, and which of them share which cache.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// No CPU's number is larger, and no list longer: a list that says otherwise is none.
const MOST_CPUS: u32 = 1 << 14;

/// CPUs by number, ascending; in a file the kernel's own form, `0-3,8`, and empty without any.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuList(Vec<u32>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no list of CPUs such as 0-3,8")]
pub struct NoCpuList(String);

impl CpuList {
    /// The numbers, ascending.
    #[must_use]
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        CpuList(numbers)
    }
}

impl FromStr for CpuList {
    type Err = NoCpuList;

    fn from_str(text: &str) -> Result<Self, NoCpuList> {
        let none = || NoCpuList(text.trim().to_owned());
        let mut numbers = Vec::new();
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.parse::<u32>().ok().filter(|cpu| *cpu < MOST_CPUS);
            let (first, last) = number(first).zip(number(last)).ok_or_else(none)?;
            if first > last || numbers.len() > MOST_CPUS as usize {
                return Err(none());
            }
            numbers.extend(first..=last);
        }
        Ok(numbers.into_iter().collect())
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for run in self.0.chunk_by(|a, b| a + 1 == *b) {
            match run {
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [one] => write!(f, "{comma}{one}")?,
                [] => {}
            }
            comma = ",";
        }
        Ok(())
    }
}

impl TryFrom<String> for CpuList {
    type Error = NoCpuList;

    fn try_from(text: String) -> Result<Self, NoCpuList> {
        text.parse()
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> String {
        list.to_string()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    pub node: u32,
    /// Its CPUs; none of a node that is memory only.
    pub cpus: CpuList,
    pub memory_bytes: u64,
}

/// All caches of one level, kind and size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedCaches {
    /// 1, 2, 3 or 4.
    pub level: u8,
    /// `data`, `instruction` or `unified`.
    pub kind: String,
    pub size_bytes: u64,
    pub cpus: Vec<CpuList>,
}

/// How the CPUs that are online lie, as the host's kernel tells in `/sys`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// The CPUs of each package, in the order of their lowest CPU.
    pub packages: Vec<CpuList>,
    /// The NUMA nodes, by number.
    pub nodes: Vec<NumaNode>,
    /// The CPUs of each core: its hardware threads.
    pub cores: Vec<CpuList>,
    /// The caches, innermost first.
    pub caches: Vec<SharedCaches>,
}

impl Topology {
    /// `1 package, 1 NUMA node, 2 cores`.
    #[must_use]
    pub fn counts(&self) -> String {
        let counts = [
            (self.packages.len(), "package"),
            (self.nodes.len(), "NUMA node"),
            (self.cores.len(), "core"),
        ];
        let told = counts
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, name)| crate::units::count(*number, name));
        told.collect::<Vec<String>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> CpuList {
        text.parse().expect("a list")
    }

    #[test]
    fn a_list_is_read_and_written_as_the_kernel_does() {
        for text in ["0", "0-3,8", "0,64", "", "0-1,4-5,9"] {
            assert_eq!(list(text).to_string(), text);
        }
        assert_eq!(list(" 8,0-3\n").numbers(), [0, 1, 2, 3, 8]);
    }

    #[test]
    fn what_is_no_list_is_named_and_a_huge_one_is_none() {
        for text in ["x", "3-0", "0,,1", "-", "0-", "0-4294967295", "99999"] {
            let error = text.parse::<CpuList>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{text}' is no list of CPUs")), "{error}");
        }
        let many = vec!["0-16383"; 1000].join(",");
        assert!(many.parse::<CpuList>().is_err(), "the same CPUs again and again");
    }

    #[test]
    fn a_topology_is_short_in_a_file_and_comes_back() {
        let topology = Topology {
            packages: vec![list("0-3")],
            nodes: vec![NumaNode { node: 0, cpus: list("0-3"), memory_bytes: 1 << 30 }],
            cores: vec![list("0,2"), list("1,3")],
            caches: vec![SharedCaches {
                level: 3,
                kind: "unified".into(),
                size_bytes: 32 << 20,
                cpus: vec![list("0-3")],
            }],
        };
        let text = serde_json::to_string(&topology).unwrap();
        assert!(text.contains(r#""cores":["0,2","1,3"]"#), "{text}");
        assert_eq!(serde_json::from_str::<Topology>(&text).unwrap(), topology);
        assert_eq!(topology.counts(), "1 package, 1 NUMA node, 2 cores");
        let wrong = serde_json::from_str::<Topology>(&text.replace("0,2", "0;2")).unwrap_err();
        assert!(wrong.to_string().contains("'0;2' is no list of CPUs"), "{wrong}");
    }
}
