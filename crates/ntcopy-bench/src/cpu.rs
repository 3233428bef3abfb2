//! The CPU, with its caches as the kernel describes them.

use std::fs;
use std::path::Path;

use ntcopy::cpu::{Cache, CacheKind, Cpu};

const CPU0: &str = "/sys/devices/system/cpu/cpu0/cache";

/// The CPU that the calling thread runs on, with the caches of CPU 0 from sysfs.
pub fn detect() -> Cpu {
    let mut cpu = Cpu::detect();
    cpu.sysfs_caches = caches_in(Path::new(CPU0));
    cpu
}

fn caches_in(folder: &Path) -> Vec<Cache> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut caches: Vec<Cache> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("index"))
        .filter_map(|entry| cache(&entry.path()))
        .collect();
    caches.sort_by_key(|cache| (cache.level, cache.kind));
    caches
}

fn cache(folder: &Path) -> Option<Cache> {
    let read = |name: &str| Some(fs::read_to_string(folder.join(name)).ok()?.trim().to_owned());
    let number = |name: &str| read(name)?.parse::<u32>().ok();
    let kind = match read("type")?.as_str() {
        "Data" => CacheKind::Data,
        "Instruction" => CacheKind::Instruction,
        "Unified" => CacheKind::Unified,
        _ => return None,
    };
    Some(Cache {
        level: read("level")?.parse().ok()?,
        kind,
        size_bytes: size(&read("size")?)?,
        ways: number("ways_of_associativity").unwrap_or(0),
        line_bytes: number("coherency_line_size").unwrap_or(0),
        sets: number("number_of_sets").unwrap_or(0),
        shared_by_cpus: read("shared_cpu_list").and_then(|list| cpus_in(&list)),
        inclusive: None,
    })
}

/// `32768K`, as sysfs writes sizes.
fn size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// How many CPUs a list such as `0-3,64,66` names.
fn cpus_in(list: &str) -> Option<u32> {
    let mut count = 0u32;
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        count += last.checked_sub(first)? + 1;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_lists() {
        assert_eq!(size("32768K"), Some(32 << 20));
        assert_eq!(size("8M"), Some(8 << 20));
        assert_eq!(size("512"), Some(512));
        assert_eq!(size(""), None);
        assert_eq!(size("K"), None);
        assert_eq!(cpus_in("0-3,64,66"), Some(6));
        assert_eq!(cpus_in("0"), Some(1));
        assert_eq!(cpus_in("3-0"), None);
        assert_eq!(cpus_in(""), None);
    }

    #[test]
    fn a_made_folder_is_read_and_what_it_lacks_is_unknown() {
        let folder = std::env::temp_dir().join(format!("ntcopy-sysfs-{}", std::process::id()));
        for (name, value) in [
            ("index1/level", "3\n"),
            ("index1/type", "Unified\n"),
            ("index1/size", "32768K\n"),
            ("index1/shared_cpu_list", "0-15\n"),
            ("index0/level", "1\n"),
            ("index0/type", "Data\n"),
            ("index0/size", "48K\n"),
            ("index2/level", "1\n"),
        ] {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value).unwrap();
        }
        let found = caches_in(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found.len(), 2, "index2 has neither type nor size: {found:?}");
        assert_eq!((found[0].level, found[0].size_bytes), (1, 48 << 10));
        assert_eq!((found[1].size_bytes, found[1].shared_by_cpus), (32 << 20, Some(16)));
        assert_eq!((found[1].ways, found[1].inclusive), (0, None));
    }

    #[test]
    fn no_folder_is_no_caches() {
        assert_eq!(caches_in(Path::new("/nonexistent/ntcopy")), Vec::new());
    }
}
