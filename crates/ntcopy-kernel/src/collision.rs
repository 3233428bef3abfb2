//! Whether a kernel source already uses one of our numbers.
//!
//! The numbers come from `uapi/ntcopy/uapi.h`. The 2022 value of the flag means MSG_SOCK_DEVMEM today;
//! this check is what notices the next time.

use std::fs;
use std::path::Path;

use crate::error::{Context, Error, Result};

const UAPI: &str = include_str!("../../../uapi/ntcopy/uapi.h");

/// A `#define` with a number.
#[derive(Debug, PartialEq, Eq)]
struct Definition {
    name: String,
    value: u64,
    line: usize,
}

/// The numbers of the interface, and where the kernel defines their like.
pub(crate) fn check(source: &Path, version: &str) -> Result<()> {
    let flag = ours("MSG_NTCOPY");
    let option = ours("SO_NTCOPY");
    let clash = |file: &str, ours: &str, value: u64, theirs: Definition| Error::Collision {
        ours: ours.into(),
        value,
        theirs: theirs.name,
        file: file.into(),
        line: theirs.line,
        version: version.into(),
    };
    let flags = "include/linux/socket.h";
    let text = fs::read_to_string(source.join(flags)).doing("reading", source.join(flags))?;
    let shares_a_bit = |d: &Definition| d.name != "MSG_NTCOPY" && d.value & flag != 0;
    if let Some(theirs) = definitions(&text, &["MSG_"]).into_iter().find(shares_a_bit) {
        return Err(clash(flags, "MSG_NTCOPY", flag, theirs));
    }
    for file in option_headers(source)? {
        let text = fs::read_to_string(source.join(&file)).doing("reading", source.join(&file))?;
        let same = |d: &Definition| d.name != "SO_NTCOPY" && d.value == option;
        if let Some(theirs) = definitions(&text, &["SO_", "SCM_"]).into_iter().find(same) {
            return Err(clash(&file, "SO_NTCOPY", option, theirs));
        }
    }
    Ok(())
}

/// A number of `uapi/ntcopy/uapi.h`.
fn ours(name: &str) -> u64 {
    let found = definitions(UAPI, &[name]).into_iter().find(|d| d.name == name);
    found
        .map(|d| d.value)
        .expect("uapi/ntcopy/uapi.h defines it; a test of this file holds it to that")
}

/// The generic header of socket options, and those of the architectures that have their own.
fn option_headers(source: &Path) -> Result<Vec<String>> {
    let mut files = vec!["include/uapi/asm-generic/socket.h".to_owned()];
    let arch = source.join("arch");
    for entry in fs::read_dir(&arch).doing("reading", &arch)? {
        let name = entry.doing("reading", &arch)?.file_name();
        let file = format!("arch/{}/include/uapi/asm/socket.h", name.to_string_lossy());
        if source.join(&file).is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// The definitions whose name begins with one of `prefixes` and whose value is a number, as the
/// kernel's flags and options are. One that refers to other names (a mask of flags, an alias) is
/// left out: what it refers to is looked at where it is defined.
fn definitions(text: &str, prefixes: &[&str]) -> Vec<Definition> {
    let definition = |(index, line): (usize, &str)| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("define")?;
        let mut words = rest.split_whitespace();
        let (name, value) = (words.next()?, words.next()?.trim_end_matches(['u', 'U', 'l', 'L']));
        let value = match value.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok()?,
            None => value.parse().ok()?,
        };
        let is_wanted = prefixes.iter().any(|prefix| name.starts_with(prefix));
        is_wanted.then(|| Definition { name: name.to_owned(), value, line: index + 1 })
    };
    text.lines().enumerate().filter_map(definition).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::folder;

    #[test]
    fn numbers_are_read_and_names_are_left_out() {
        assert_eq!(ours("MSG_NTCOPY").count_ones(), 1, "a flag is one bit");
        assert!(ours("SO_NTCOPY") > 0);
        let text = "#define MSG_OOB\t\t1\n# define MSG_HEX 0x40\t/* text */\n#define MSG_U 0x80000000U\n\
                    #define MSG_EOF MSG_FIN\n#define MSG_MASK (MSG_OOB | MSG_HEX)\n#define MSG_EMPTY\n\
                    #define OTHER 3\n";
        let found = definitions(text, &["MSG_"]);
        let found: Vec<(&str, u64)> = found.iter().map(|d| (d.name.as_str(), d.value)).collect();
        assert_eq!(found, [("MSG_OOB", 1), ("MSG_HEX", 0x40), ("MSG_U", 0x8000_0000)]);
    }

    #[test]
    fn an_option_of_one_architecture_is_found_and_our_own_name_is_no_clash() {
        let (flag, option) = (ours("MSG_NTCOPY"), ours("SO_NTCOPY"));
        let tree = folder(&[
            ("include/linux/socket.h", &format!("#define MSG_NTCOPY {flag:#x}\n")),
            ("include/uapi/asm-generic/socket.h", "#define SO_DEBUG 1\n"),
            ("arch/sparc/include/uapi/asm/socket.h", &format!("#define SO_THEIRS {option:#x}\n")),
        ]);
        let text = check(tree.path(), "7.9").unwrap_err().to_string();
        assert!(text.contains("arch/sparc/include/uapi/asm/socket.h:1"), "{text}");
        assert!(text.contains("SO_THEIRS"), "{text}");
    }
}
