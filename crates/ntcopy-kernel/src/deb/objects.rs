//! How many objects a configuration compiles, as the makefiles tell it before anything is built.
//!
//! It reads lists (`obj-$(CONFIG_X) += a.o folder/`), objects of several parts, and conditions on
//! settings; of make's functions it reads only the words. The number is therefore an estimate, and
//! is called one.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::config::Config;

/// What the kernel's own Makefile names beside Kbuild, and takes from the architecture's.
const ROOTS: [&str; 1] = ["lib/"];
/// The architecture's makefile, and its lists of folders.
const ARCHITECTURE: (&str, [&str; 3]) = ("arch/x86/Makefile", ["core", "libs", "drivers"]);

/// The lists of objects that a folder's makefile has: built in, and modules.
const LISTS: [(&str, bool); 3] = [("obj", false), ("lib", false), (MODULES, true)];
const MODULES: &str = "obj (modules)";

/// The number of objects that this source compiles, about.
pub(super) fn count(source: &Path, config: &Config) -> u64 {
    let mut counter = Counter { source, config, seen: HashSet::new(), objects: 0 };
    let mut folders: Vec<String> = ROOTS.map(str::to_owned).into();
    if let Some(makefile) = counter.read(Path::new(ARCHITECTURE.0)) {
        folders.extend(ARCHITECTURE.1.iter().flat_map(|list| makefile.list(list).to_vec()));
    }
    counter.folder(PathBuf::new());
    for folder in folders.iter().filter_map(|word| word.strip_suffix('/')) {
        counter.folder(folder.into());
    }
    counter.objects
}

struct Counter<'a> {
    source: &'a Path,
    config: &'a Config,
    seen: HashSet<PathBuf>,
    objects: u64,
}

impl Counter<'_> {
    fn read(&self, file: &Path) -> Option<Makefile> {
        let text = fs::read_to_string(self.source.join(file)).ok()?;
        Some(Makefile::parse(&text, self.config))
    }

    /// Counts a folder and those below it that its makefile names.
    fn folder(&mut self, folder: PathBuf) {
        if !self.seen.insert(folder.clone()) {
            return;
        }
        let file = ["Kbuild", "Makefile"].map(|name| folder.join(name));
        let Some(makefile) = file.iter().find_map(|file| self.read(file)) else { return };
        for (list, are_modules) in LISTS {
            for word in makefile.list(list) {
                if let Some(below) = word.strip_suffix('/') {
                    self.folder(folder.join(below));
                } else if let Some(stem) = word.strip_suffix(".o") {
                    // A module has a part that make writes for it.
                    self.objects += makefile.parts(stem) + u64::from(are_modules);
                }
            }
        }
    }
}

/// The lists of a makefile, as a configuration has them.
#[derive(Default)]
struct Makefile {
    lists: HashMap<String, Vec<String>>,
}

impl Makefile {
    fn parse(text: &str, config: &Config) -> Self {
        let mut makefile = Self::default();
        let mut conditions: Vec<Option<bool>> = Vec::new();
        for line in logical_lines(text) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if step(&mut conditions, line, config) || conditions.contains(&Some(false)) {
                continue;
            }
            if let Some((name, value)) = assignment(line)
                && let Some(list) = list_of(name, config)
            {
                let words = makefile.words(value);
                makefile.lists.entry(list).or_default().extend(words);
            }
        }
        makefile
    }

    fn list(&self, name: &str) -> &[String] {
        self.lists.get(name).map_or(&[], Vec::as_slice)
    }

    /// The number of objects that another is put together of.
    fn parts(&self, stem: &str) -> u64 {
        let parts: HashSet<&String> =
            self.list(stem).iter().filter(|word| word.ends_with(".o")).collect();
        (parts.len() as u64).max(1)
    }

    /// The words of a value, with the lists that it names in their places.
    fn words(&self, value: &str) -> Vec<String> {
        let value = value.replace("$(SRCARCH)", "x86").replace("$(BITS)", "64");
        let value = value.replace("$(obj)/", "").replace("$(src)/", "");
        let mut words = Vec::new();
        for word in value.split_whitespace() {
            match word.strip_prefix("$(").and_then(|name| name.strip_suffix(')')) {
                Some(name) => {
                    let name = name.strip_suffix("-y").unwrap_or(name);
                    words.extend(self.list(name).iter().cloned());
                }
                None => words.push(word.trim_end_matches(')').to_owned()),
            }
        }
        words
    }
}

/// Lines with those joined that end in a backslash, and without a recipe's.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut pending = String::new();
    for line in text.lines() {
        match line.strip_suffix('\\') {
            Some(begun) => {
                pending.push_str(begun);
                pending.push(' ');
            }
            None if pending.is_empty() && line.starts_with('\t') => {}
            None => lines.push(std::mem::take(&mut pending) + line),
        }
    }
    lines
}

/// Follows a condition; true when the line is one. `None` stands for a condition that is not
/// about a setting: then both of its branches count.
fn step(conditions: &mut Vec<Option<bool>>, line: &str, config: &Config) -> bool {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match word {
        "endif" => {
            conditions.pop();
        }
        "else" => {
            let before = conditions.pop().flatten();
            let own = match rest.trim() {
                "" => Some(true),
                rest => holds(rest, config),
            };
            conditions.push(before.and_then(|before| own.map(|own| !before && own)));
        }
        "ifdef" | "ifndef" | "ifeq" | "ifneq" => conditions.push(holds(line, config)),
        _ => return false,
    }
    true
}

/// Whether `ifdef CONFIG_X` or `ifeq ($(CONFIG_X),y)` holds.
fn holds(line: &str, config: &Config) -> Option<bool> {
    let (word, rest) = line.split_once([' ', '\t', '('])?;
    let rest = rest.trim().trim_start_matches('(');
    let value = config.value(symbol(rest)?).unwrap_or("");
    let wanted = || rest.strip_suffix(')')?.rsplit_once(',').map(|(_, wanted)| wanted.trim());
    match word {
        "ifdef" => Some(!value.is_empty()),
        "ifndef" => Some(value.is_empty()),
        "ifeq" => wanted().map(|wanted| wanted == value),
        "ifneq" => wanted().map(|wanted| wanted != value),
        _ => None,
    }
}

/// The first setting that a text names.
fn symbol(text: &str) -> Option<&str> {
    let name = &text[text.find("CONFIG_")?..];
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end])
}

/// Name and value of `name += value`, `name := value`, `name = value`.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end_matches([':', '+', '?']).trim();
    let is_one_word = !name.is_empty() && !name.contains(char::is_whitespace);
    (is_one_word || name.contains("$(")).then_some((name, value))
}

/// The list that an assignment is to, where the configuration has it: `obj` for `obj-y` and for
/// `obj-$(CONFIG_X)`, `unix` for `unix-y` and `unix-objs`.
fn list_of(name: &str, config: &Config) -> Option<String> {
    let (stem, suffix) = match name.find("-$(") {
        Some(at) => (&name[..at], config.value(symbol(&name[at..])?)?),
        None => match name.rsplit_once('-') {
            Some((stem, suffix @ ("y" | "m" | "objs"))) => (stem, suffix),
            _ => (name, "y"),
        },
    };
    let stem = stem.strip_suffix("-objs").unwrap_or(stem);
    match (stem, suffix) {
        ("obj", "m") => Some(MODULES.into()),
        (stem, "y" | "m" | "objs") => Some(stem.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(files: &[(&str, &str)], config: &str) -> u64 {
        let source = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = source.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        count(source.path(), &Config::new(config.to_owned()))
    }

    #[test]
    fn objects_are_counted_where_the_configuration_has_them() {
        let net = "obj-$(CONFIG_UNIX) += unix.o \\\n\tscm.o\nunix-y := af_unix.o garbage.o\n\
                   unix-$(CONFIG_SYSCTL) += sysctl.o\nobj-$(CONFIG_TLS) += tls/\n# obj-y += no.o\n\
                   all:\n\tobj-y += recipe.o\n";
        let files = [
            ("Kbuild", "obj-y += init/\nobj-$(CONFIG_NET)\t+= net/\n"),
            ("init/Makefile", "obj-y := main.o version.o\n"),
            ("net/Makefile", net),
            ("net/tls/Makefile", "obj-$(CONFIG_TLS) += tls.o\ntls-y := a.o b.o\n"),
            ("lib/Makefile", "lib-y := ctype.o\n"),
        ];
        assert_eq!(counted(&files, ""), 3);
        assert_eq!(counted(&files, "CONFIG_NET=y\nCONFIG_UNIX=y\n"), 6);
        assert_eq!(counted(&files, "CONFIG_NET=y\nCONFIG_UNIX=y\nCONFIG_SYSCTL=y\n"), 7);
        // Two parts, and what make writes for a module.
        assert_eq!(counted(&files, "CONFIG_NET=y\nCONFIG_TLS=m\n"), 3 + 3);
    }

    #[test]
    fn conditions_on_settings_are_followed_and_others_count_both_ways() {
        let text = "ifdef CONFIG_A\nobj-y += a.o\nelse\nobj-y += b.o c.o\nendif\n\
                    ifeq ($(CONFIG_B),y)\nobj-y += d.o\nendif\n\
                    ifneq ($(CONFIG_C),)\nobj-y += e.o\nendif\n\
                    ifeq ($(KBUILD_EXTMOD),)\nobj-y += f.o\nelse\nobj-y += g.o\nendif\n";
        assert_eq!(counted(&[("Kbuild", text)], ""), 2 + 2);
        assert_eq!(counted(&[("Kbuild", text)], "CONFIG_A=y\nCONFIG_B=y\nCONFIG_C=m\n"), 5);
    }

    #[test]
    fn folders_of_the_architecture_and_names_of_lists_are_followed() {
        let files = [
            ("Kbuild", "core := a.o b.o\nobj-y += $(core) $(addprefix sub/, c.o d.o)\n"),
            (
                "arch/x86/Makefile",
                "libs-y += arch/x86/lib/\ndrivers-$(CONFIG_PCI) += arch/x86/pci/\n",
            ),
            ("arch/x86/lib/Makefile", "lib-y := copy_$(BITS).o\nobj-y += $(obj)/msr.o\n"),
            ("arch/x86/pci/Makefile", "obj-y += pci.o\n"),
        ];
        assert_eq!(counted(&files, ""), 6);
        assert_eq!(counted(&files, "CONFIG_PCI=y\n"), 7);
    }
}
