//! A cache, a source and a series of a test's own, small enough to be built in a moment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::{PROGRAM, ends, good, json};

/// A tree whose Makefile does what the kernel's does, on a scale of one file.
pub const MAKEFILE: &str = "\
VERSION = 7
PATCHLEVEL = 3
SUBLEVEL = 99
EXTRAVERSION =
all:
\t@echo '  CC      kernel/one.o'
\tgcc -Werror -c kernel/one.c -o kernel/one.o
\t@sh slow.sh
\tcp kernel/one.o linux
\tmkdir -p include/config && echo 7.3.99-test > include/config/kernel.release
\ttouch Module.symvers
modules:
\ttouch Module.symvers
bzImage:
\tmkdir -p arch/x86/boot include/config && echo kernel > arch/x86/boot/bzImage
\techo 7.3.99-test > include/config/kernel.release
allnoconfig:
\tgrep -v UNKNOWN $(KCONFIG_ALLCONFIG) > .config
";

/// A cache, a source and a series of the test's own.
pub struct House {
    folder: tempfile::TempDir,
}

impl House {
    pub fn new() -> Self {
        let house = Self { folder: tempfile::tempdir().unwrap() };
        house.put("linux/Makefile", MAKEFILE);
        house.put("linux/arch/um/Makefile", "");
        house.put("linux/slow.sh", "");
        house.put("linux/kernel/one.c", "int one(void)\n{\n\treturn 1;\n}\n");
        house.put("linux/include/linux/socket.h", "#define MSG_OOB 1\n");
        house.put("linux/include/uapi/asm-generic/socket.h", "#define SO_DEBUG 1\n");
        house.patch("0001-two.patch", "\treturn 1;", "\treturn 2;");
        house
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A patch that replaces the third line of kernel/one.c.
    pub fn patch(&self, name: &str, old: &str, new: &str) {
        let text = format!(
            "Why.\n\n--- a/kernel/one.c\n+++ b/kernel/one.c\n@@ -1,4 +1,4 @@\n int one(void)\n {{\n-{old}\n+{new}\n }}\n"
        );
        self.put(&format!("series/{name}"), &text);
    }

    pub fn ntcopy(&self, verb: &[&str]) -> Command {
        let mut ntcopy = Command::new(PROGRAM);
        ntcopy.arg("kernel").args(verb).stdin(Stdio::null());
        ntcopy.env("NTCOPY_CACHE", self.path("cache")).env("NTCOPY_LINUX", self.path("linux"));
        ntcopy.env("NTCOPY_SERIES", self.path("series"));
        ntcopy
    }

    pub fn run(&self, verb: &[&str]) -> Output {
        self.ntcopy(verb).output().unwrap()
    }

    /// Builds, and gives the kernel's path.
    pub fn build(&self) -> PathBuf {
        self.build_with(&[])
    }

    pub fn build_with(&self, arguments: &[&str]) -> PathBuf {
        PathBuf::from(good(&self.run(&[&["build"], arguments].concat())).trim())
    }

    /// What `list --json` says of each kernel.
    pub fn list(&self) -> Vec<Value> {
        let mut object = json(&good(&self.run(&["list", "--json"])));
        serde_json::from_value(object["kernels"].take()).unwrap()
    }

    /// Fails to build with this exit code, and gives what was said.
    pub fn fail(&self, code: i32) -> String {
        let said = ends(&self.run(&["build"]), code, &[]);
        self.assert_nothing_half_done();
        said
    }

    pub fn assert_nothing_half_done(&self) {
        let kernels = children(&self.path("cache/kernels"));
        assert!(kernels.iter().all(|name| !name.starts_with('.')), "{kernels:?}");
        let source = fs::read_to_string(self.path("linux/kernel/one.c")).unwrap();
        assert!(source.contains("return"), "the user's tree was changed");
        assert!(!self.path("linux/linux").exists() && !self.path("linux/.config").exists());
    }
}

pub fn children(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().collect());
    let entries: Vec<fs::DirEntry> = entries.unwrap_or_default();
    entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
