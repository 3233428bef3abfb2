//! A profile as TOML.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Profile, ProfiledMachine};
use crate::policy::Policy;

/// The format's number; a profile of another one is measured anew rather than guessed at.
const FORMAT: u32 = 3;

const HEAD: &str = "\
# What ntcopy footprint calibrate measured on this machine, for libntcopy to go by. Sizes are in bytes;
# \"never\" is a size that nothing reaches. Another machine's profile is refused.
";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    date: String,
    machine: ProfiledMachine,
    policy: Policy,
    #[serde(default)]
    measured: BTreeMap<String, u64>,
}

/// What a file of any format has.
#[derive(Deserialize)]
struct Numbered {
    format: u32,
}

impl Profile {
    /// The profile as a file's text.
    pub fn to_toml(&self) -> String {
        let Profile { date, machine, policy, measured } = self.clone();
        let file = File { format: FORMAT, date, machine, policy, measured };
        let body = toml::to_string(&file).expect("tables of strings, integers and booleans");
        format!("{HEAD}\n{body}")
    }

    /// A file's text, whichever machine it is of.
    ///
    /// # Errors
    ///
    /// Where the text is no profile, and what is wrong there.
    pub fn from_toml(text: &str) -> Result<Profile, String> {
        let Numbered { format } = toml::from_str(text).map_err(|error| error.to_string())?;
        if format != FORMAT {
            return Err(format!(
                "format {format}, and this library knows {FORMAT}; measure anew with: ntcopy footprint \
                 calibrate"
            ));
        }
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let File { date, machine, policy, measured, .. } = file;
        Ok(Profile { date, machine, policy, measured })
    }
}
