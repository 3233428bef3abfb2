//! Which kernel: `um`, and one day more.

use std::fmt;

use crate::error::{Error, Result};

/// A kernel that this version can build and boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Linux 7.3 as a process of the host (user-mode Linux).
    Um,
}

/// Names that the command line of later versions knows.
const PLANNED: &[&str] = &["um:6.12", "x86", "x86:7.3", "x86:6.12", "stock", "stock:7.3"];

impl Kind {
    /// Reads a name as `--kernel` takes it.
    ///
    /// # Errors
    ///
    /// [`Error::NotBuilt`] for a kernel of a later version, [`Error::UnknownKind`] for anything
    /// else.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "um" | "um:7.3" => Ok(Self::Um),
            planned if PLANNED.contains(&planned) => Err(Error::NotBuilt(name.into())),
            _ => Err(Error::UnknownKind(name.into())),
        }
    }

    /// The short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Um => "um",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Kind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::parse(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn um_has_two_names() {
        assert_eq!(Kind::parse("um").unwrap(), Kind::Um);
        assert_eq!(Kind::parse("um:7.3").unwrap(), Kind::Um);
    }

    #[test]
    fn a_planned_kernel_is_not_available_and_an_unknown_one_is_a_usage_error() {
        assert_eq!(Kind::parse("x86:6.12").unwrap_err().exit_code(), 3);
        assert_eq!(Kind::parse("vms").unwrap_err().exit_code(), 2);
    }
}
