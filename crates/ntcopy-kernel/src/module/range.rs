//! The releases of Linux that the module is for, as its own `compat.h` states them to the compiler.

use crate::error::{Error, Result};
use crate::series::MODULE;

/// From this release on, and before that one: numbers before and after the first point.
type Range = [(u32, u32); 2];

/// An error for a release that the module is not for, and what there is instead.
pub fn check_release(release: &str) -> Result<()> {
    let [low, high] = range();
    let Some(number) = numbers(release) else {
        return Err(Error::NotHere(format!("'{release}' is not the release of a Linux kernel")));
    };
    if (low..high).contains(&number) {
        return Ok(());
    }
    let newest = (high.0, high.1.saturating_sub(1));
    Err(Error::NotHere(format!(
        "the module is for Linux {}.{} to {}.{}, and not for {release}. A kernel with the patches \
         needs no module: ntcopy kernel package",
        low.0, low.1, newest.0, newest.1
    )))
}

fn range() -> Range {
    let (_, compat) = MODULE.iter().find(|(name, _)| *name == "compat.h").expect("embedded");
    let compat = String::from_utf8_lossy(compat);
    let mut bounds = compat.lines().filter_map(bound);
    let bounds: [Option<(u32, u32)>; 2] = [bounds.next(), bounds.next()];
    bounds.map(|bound| bound.expect("compat.h states two bounds"))
}

/// `#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)`
fn bound(line: &str) -> Option<(u32, u32)> {
    let rest = line.strip_prefix("#if LINUX_VERSION_CODE ")?;
    let numbers = rest.split_once("KERNEL_VERSION(")?.1.strip_suffix(", 0)")?;
    let (major, minor) = numbers.split_once(", ")?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The first two numbers of `6.12.9-amd64` and of `6.12-rc1`.
fn numbers(release: &str) -> Option<(u32, u32)> {
    let (major, rest) = release.split_once('.')?;
    let minor = rest.split(|it: char| !it.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_held_against_what_compat_h_states() {
        let [low, high] = range();
        let at = |(major, minor): (u32, u32)| format!("{major}.{minor}.4-amd64");
        let below = |(major, minor): (u32, u32)| at((major, minor - 1));
        for release in [at(low), below(high), format!("{}.{}-rc1", low.0, low.1)] {
            assert!(check_release(&release).is_ok(), "{release}");
        }
        for release in [below(low), at(high), "6.1.0-56-amd64".into(), "7.30.1".into()] {
            let said = check_release(&release).unwrap_err().to_string();
            assert!(said.contains(&format!("not for {release}")), "{said}");
            assert!(said.contains(&format!("Linux {}.{} to ", low.0, low.1)), "{said}");
        }
        assert!(check_release("six").is_err());
    }
}
