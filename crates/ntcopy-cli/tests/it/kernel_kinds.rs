//! Which kernels `ntcopy kernel` knows, and what each is made of. Nothing is downloaded here, and
//! nothing takes longer to build than a small tree.

use std::fs;
use std::process::Command;

use crate::common::{ends, house::House, text};

#[test]
fn an_x86_kernel_is_built_in_each_configuration_and_none_is_taken_for_another() {
    let house = House::new();
    let mut paths = vec![house.build()];
    for arguments in [
        &["--kernel", "x86"][..],
        &["--kernel", "x86+kcsan"],
        &["--kernel", "x86+plain"],
        &["--kernel", "um:6.12"],
    ] {
        paths.push(house.build_with(arguments));
    }
    let count = paths.len();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), count, "{paths:?}");
    assert_eq!(fs::read_to_string(&paths[3]).unwrap(), "kernel\n", "{paths:?}");
    let kernels = house.list();
    let mut kinds: Vec<&str> =
        kernels.iter().map(|kernel| kernel["kind"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["um", "um:6.12", "x86", "x86+kcsan", "x86+plain"]);
    assert!(kernels.iter().all(|kernel| kernel["state"] == "current"), "{kernels:?}");
    assert_eq!(
        house.build(),
        *paths.iter().find(|path| path.to_str().unwrap().contains("/um-7")).unwrap()
    );
}

#[test]
fn a_kernel_for_the_module_has_none_of_the_series_and_is_kept_with_what_modules_need() {
    let house = House::new();
    house.put("linux/scripts/mod/modpost", "");
    house.put("linux/scripts/mod/modpost.o", "");
    house.put("linux/net/socket.c", "");
    for name in ["um+module", "x86+module"] {
        let kernel = house.build_with(&["--kernel", name]);
        let headers = kernel.with_file_name("headers");
        for file in ["Makefile", "Module.symvers", ".config", "include/linux/socket.h"] {
            assert!(headers.join(file).is_file(), "{name}: {file}");
        }
        let scripts = headers.join("scripts/mod");
        assert!(scripts.join("modpost").is_file() && !scripts.join("modpost.o").exists());
        assert!(!headers.join("net").exists() && !headers.join("kernel").exists());
        let config = fs::read_to_string(headers.join(".config")).unwrap();
        assert!(config.contains("CONFIG_MODULES=y"), "{name}");
    }
    for kernel in house.list() {
        assert_eq!(kernel["patches"].as_array().map(Vec::len), Some(0), "{kernel}");
        assert_eq!(kernel["state"], "current", "{kernel}");
    }
    house.assert_nothing_half_done();
}

/// Puts a package into the cache, as it would have been downloaded.
fn put_package(house: &House, name: &str, architecture: &str, files: &[(&str, &str)]) {
    let control = format!(
        "Package: {name}\nVersion: 6.12.99-1\nArchitecture: {architecture}\nMaintainer: t\n\
         Description: t\n"
    );
    house.put(&format!("{name}/DEBIAN/control"), &control);
    for (path, text) in files {
        house.put(&format!("{name}/{path}"), text);
    }
    fs::create_dir_all(house.path("cache/packages")).unwrap();
    let file = house.path(&format!("cache/packages/{name}_6.12.99-1_{architecture}.deb"));
    let made = Command::new("dpkg-deb")
        .args(["--build", "--root-owner-group"])
        .args([house.path(name), file])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
}

#[test]
fn a_stock_kernel_is_unpacked_from_its_package_with_its_modules_and_not_built() {
    let house = House::new();
    let release = "6.12.99+deb12-cloud-amd64";
    let module = format!("lib/modules/{release}/kernel/net/tls/tls.ko.xz");
    let makefile = format!("usr/src/linux-headers-{release}/Makefile");
    let common = "usr/src/linux-headers-6.12.99+deb12-common/Makefile";
    let includes = format!("include /{common}\n");
    for (name, architecture, files) in [
        (
            format!("linux-image-{release}"),
            "amd64",
            &[
                (format!("boot/vmlinuz-{release}").as_str(), "kernel"),
                (&format!("boot/config-{release}"), "CONFIG_NET=y"),
                (&module, "module"),
            ][..],
        ),
        (format!("linux-headers-{release}"), "amd64", &[(&makefile, &includes)]),
        ("linux-headers-6.12.99+deb12-common".into(), "all", &[(common, "all: ; echo common\n")]),
        ("linux-kbuild-6.12.99+deb12".into(), "amd64", &[("usr/lib/linux-kbuild/x", "")]),
    ] {
        put_package(&house, &name, architecture, files);
    }
    let kernel = house.build_with(&["--kernel", "stock"]);
    assert_eq!(fs::read_to_string(&kernel).unwrap(), "kernel");
    let folder = kernel.parent().unwrap();
    assert!(folder.join(&module).is_file() && folder.join("config").is_file());
    // Its headers work where they are, though they are not installed.
    let mut make = Command::new("make");
    let made = make.arg("-s").arg("-C").arg(folder.join("headers")).output().unwrap();
    assert_eq!(text(&made.stdout), "common\n", "{}", text(&made.stderr));
    let entry = &house.list()[0];
    assert_eq!((entry["kind"].as_str(), entry["release"].as_str()), (Some("stock"), Some(release)));
    assert_eq!(entry["patches"].as_array().map(Vec::len), Some(0));
    house.assert_nothing_half_done();
    assert_eq!(house.build_with(&["--kernel", "stock"]), kernel);
}

#[test]
fn a_damaged_package_is_named_and_leaves_nothing() {
    let house = House::new();
    let name = "linux-image-6.12.99+deb12-cloud-amd64_6.12.99-1_amd64.deb";
    for (package, architecture) in [
        ("image-6.12.99+deb12-cloud-amd64", "amd64"),
        ("headers-6.12.99+deb12-cloud-amd64", "amd64"),
        ("headers-6.12.99+deb12-common", "all"),
        ("kbuild-6.12.99+deb12", "amd64"),
    ] {
        let file = format!("cache/packages/linux-{package}_6.12.99-1_{architecture}.deb");
        house.put(&file, "half of it");
    }
    ends(&house.run(&["build", "--kernel", "stock"]), 1, &[name, "damaged"]);
    house.assert_nothing_half_done();
}

#[test]
fn qemu_is_asked_for_before_minutes_of_compiling() {
    let house = House::new();
    // Everything that a build needs, and no QEMU.
    let tools = house.path("tools");
    fs::create_dir_all(&tools).unwrap();
    let output = house
        .ntcopy(&["boot", "--kernel", "x86", "--", "true"])
        .env("PATH", &tools)
        .output()
        .unwrap();
    ends(&output, 3, &["qemu-system-x86_64", "apt-get install"]);
    assert!(!house.path("cache").exists());
}
