//! The library in a prefix of its own, and what an installation must bring.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

/// This crate's folder.
pub fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder for what tests build.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi").join(name);
    fs::create_dir_all(&folder).expect("a folder under the target folder");
    folder
}

/// Runs a command that must succeed, and gives its standard output.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr),
    );
    text(&output.stdout)
}

/// A folder with the static library that cargo has built for this test program.
///
/// Where `cargo build` would put it, `cargo test` leaves an older one. Its own is beside this
/// program, under a name with a hash, and no other build of older source is newer.
fn build_dir() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let program = env::current_exe().expect("a path of this program");
        let beside = program.parent().expect("a folder of this program");
        let newest = beside
            .read_dir()
            .expect("a folder of this program")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with("libntcopy_capi-") && name.ends_with(".a")
            })
            .max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok())
            .expect("cargo builds the static library with its tests");
        let folder = scratch("build");
        let link = folder.join("libntcopy_capi.a");
        // It may be there from the last run, or not.
        let _ = fs::remove_file(&link);
        symlink(newest, link).expect("a link under the target folder");
        folder
    })
}

fn install(prefix: &Path, destdir: Option<&Path>, what: &[&str]) {
    let mut script = Command::new(crate_dir().join("../../scripts/install.sh"));
    script.args(what).env("PREFIX", prefix).env("BUILD", build_dir());
    script.env_remove("LIBDIR").env_remove("DESTDIR");
    if let Some(destdir) = destdir {
        script.env("DESTDIR", destdir);
    }
    run(&mut script);
}

/// The prefix, installed into once for all tests.
pub fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = scratch("prefix");
        fs::remove_dir_all(&prefix).expect("the last run's prefix can go");
        install(&prefix, None, &["library"]);
        prefix
    })
}

/// What `pkg-config` says of the installed library; nothing, with a sentence, where it is missing.
fn pkg_config(arguments: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("pkg-config");
    command.args(arguments).arg("ntcopy");
    command.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    if Command::new("pkg-config").arg("--version").output().is_err() {
        println!("not run: no pkg-config here; Debian: apt-get install pkgconf");
        return None;
    }
    Some(run(&mut command).split_whitespace().map(str::to_owned).collect())
}

#[test]
fn pkg_config_says_how_to_compile_and_link() {
    let Some(flags) = pkg_config(&["--cflags", "--libs"]) else { return };
    let prefix = prefix().display().to_string();
    assert_eq!(
        flags,
        [format!("-I{prefix}/include"), format!("-L{prefix}/lib"), "-lntcopy".into()]
    );
    let program = scratch("pkg-config").join("copy");
    let source = crate_dir().join("examples-c/copy.c");
    run(Command::new("cc").arg(&source).args(&flags).arg("-o").arg(&program));
    run(Command::new(&program).env("LD_LIBRARY_PATH", format!("{prefix}/lib")));

    let version = pkg_config(&["--modversion"]).expect("it was there just now");
    assert_eq!(version, [env!("CARGO_PKG_VERSION")]);
}

#[test]
fn pkg_config_says_how_to_link_without_shared_libraries() {
    let Some(flags) = pkg_config(&["--static", "--cflags", "--libs"]) else { return };
    let program = scratch("pkg-config").join("copy-static");
    let source = crate_dir().join("examples-c/copy.c");
    run(Command::new("cc").arg("-static").arg(&source).args(&flags).arg("-o").arg(&program));
    let needed = run(Command::new("readelf").arg("-d").arg(&program));
    assert!(!needed.contains("NEEDED"), "{needed}");
    run(&mut Command::new(&program));
}

#[test]
fn the_shared_library_has_its_name_and_both_links() {
    let library = prefix().join("lib");
    let version = env!("CARGO_PKG_VERSION");
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    let soname = format!("libntcopy.so.{major}");
    let dynamic = run(Command::new("readelf").arg("-d").arg(library.join("libntcopy.so")));
    assert!(dynamic.contains(&format!("Library soname: [{soname}]")), "{dynamic}");
    let link = |name: &str| fs::read_link(library.join(name)).expect("a link");
    assert_eq!(link("libntcopy.so"), Path::new(&soname));
    assert_eq!(link(&soname), Path::new(&format!("libntcopy.so.{version}")));
}

#[test]
fn destdir_goes_before_the_prefix_and_into_no_file() {
    let destdir = scratch("destdir");
    fs::remove_dir_all(&destdir).expect("the last run's folder can go");
    install(Path::new("/opt/ntcopy"), Some(&destdir), &["library", "manual"]);
    let root = destdir.join("opt/ntcopy");
    for file in [
        "include/ntcopy.h",
        "include/ntcopy/uapi.h",
        "lib/libntcopy.a",
        "lib/libntcopy.so",
        "share/man/man3/ntcopy.3",
        "share/man/man7/msg_ntcopy.7",
    ] {
        assert!(root.join(file).is_file(), "{file}");
    }
    let description = fs::read_to_string(root.join("lib/pkgconfig/ntcopy.pc")).unwrap();
    assert!(description.starts_with("prefix=/opt/ntcopy\n"), "{description}");
    assert!(!description.contains(&destdir.display().to_string()), "{description}");
}

#[test]
fn a_relative_prefix_is_refused() {
    let mut script = Command::new(crate_dir().join("../../scripts/install.sh"));
    let output = script.arg("manual").env("PREFIX", "here").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("'here' is not an absolute path"), "{words}");
}
