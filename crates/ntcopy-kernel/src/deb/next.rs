//! What to do with the packages: the commands, in their order.

use std::path::Path;

use serde::Serialize;

/// Commands, a line each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Next {
    /// Installs the packages.
    pub install: Vec<String>,
    /// Boots the kernel once, with the one of today as what any other boot takes.
    pub boot_once: Vec<String>,
    /// Takes it all away again, after a reboot into the kernel of today.
    pub back: Vec<String>,
}

/// The file that makes GRUB take the entry that was chosen, instead of the newest kernel's.
const GRUB: &str = "/etc/default/grub.d/ntcopy.cfg";

impl Next {
    /// For packages with these files, of a kernel with this release, on a machine that runs
    /// `running`. `system` is what GRUB's menu calls the system.
    pub(super) fn new(files: &[&Path], release: &str, running: &str, system: &str) -> Self {
        // Debian's files are named PACKAGE_VERSION_ARCHITECTURE.deb.
        let name = |file: &&Path| file.file_name()?.to_str()?.split('_').next().map(str::to_owned);
        let names: Vec<String> = files.iter().filter_map(name).collect();
        let files: Vec<String> = files.iter().map(|file| argument(file)).collect();
        let entry = |release: &str| {
            format!("'Advanced options for {system}>{system}, with Linux {release}'")
        };
        Self {
            install: vec![format!("sudo apt-get install {}", files.join(" "))],
            boot_once: vec![
                format!("echo GRUB_DEFAULT=saved | sudo tee {GRUB} && sudo update-grub"),
                format!("sudo grub-set-default {}", entry(running)),
                format!("sudo grub-reboot {} && sudo reboot", entry(release)),
            ],
            back: vec![
                "sudo reboot".into(),
                format!("sudo apt-get purge {}", names.join(" ")),
                format!("sudo rm {GRUB} && sudo update-grub"),
            ],
        }
    }
}

/// A file as apt-get takes it: with a slash, or it would be the name of a package.
fn argument(file: &Path) -> String {
    let path = file.display().to_string();
    let path = if path.contains('/') { path } else { format!("./{path}") };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._+~-".contains(c);
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// What GRUB's menu calls this system: as /etc/grub.d/10_linux makes it from the distributor.
pub(super) fn system(os_release: &str) -> String {
    let field = |name: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    match field("ID").as_deref() {
        Some("ubuntu") => "Ubuntu".into(),
        Some("debian") | None => "Debian GNU/Linux".into(),
        Some(_) => format!("{} GNU/Linux", field("NAME").unwrap_or_else(|| "Debian".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_kernel_is_booted_once_and_the_old_one_stays_the_default() {
        let headers = "a b/linux-headers-7.3.4-x_7.3.4-1_amd64.deb";
        let files = [Path::new("linux-image-7.3.4-x_7.3.4-1_amd64.deb"), Path::new(headers)];
        let next = Next::new(&files, "7.3.4-x", "6.12.1-amd64", "Debian GNU/Linux");
        let image = "./linux-image-7.3.4-x_7.3.4-1_amd64.deb";
        assert_eq!(next.install, [format!("sudo apt-get install {image} '{headers}'")]);
        let entry = |release: &str| {
            format!(
                "'Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux {release}'"
            )
        };
        assert!(next.boot_once[1].ends_with(&entry("6.12.1-amd64")), "{next:?}");
        assert!(next.boot_once[2].contains(&entry("7.3.4-x")), "{next:?}");
        assert!(next.back[1].contains("purge linux-image-7.3.4-x linux-headers-7.3.4-x"));
    }

    #[test]
    fn the_menu_calls_systems_by_their_distributors() {
        assert_eq!(system("ID=debian\nNAME=\"Debian GNU/Linux\"\n"), "Debian GNU/Linux");
        assert_eq!(system("NAME=\"Ubuntu\"\nID=ubuntu\n"), "Ubuntu");
        assert_eq!(system("NAME=\"Devuan\"\nID=devuan\n"), "Devuan GNU/Linux");
    }
}
