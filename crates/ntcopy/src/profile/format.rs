//! A profile as TOML.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Machine, Profile};
use crate::path::{Method, Prefetch, Turns};
use crate::policy::{NEVER, Policy};

/// The format's number; a profile of another one is measured anew rather than guessed at.
const FORMAT: u32 = 1;

const HEAD: &str = "\
# What ntcopy footprint calibrate measured on this machine, for libntcopy to go by. Sizes are in bytes;
# \"never\" is a size that nothing reaches. Another machine's profile is refused.
";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    date: String,
    machine: MachineTable,
    copy: CopyTable,
    fill: FillTable,
    libc: LibcTable,
    #[serde(default)]
    measured: BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineTable {
    signature: String,
    model_name: String,
    l2_bytes: u64,
    l3_bytes: u64,
    guest: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CopyTable {
    nontemporal_from_bytes: Size,
    method: Name,
    prefetch: Ahead,
    /// Profiles from before it could be another have none.
    #[serde(default = "first_source_prefetch")]
    nontemporal_source_prefetch: Ahead,
    /// Profiles from before it was possible have none.
    #[serde(default = "never")]
    flush_source_from_bytes: Size,
    /// Profiles from before there were others have none.
    #[serde(default = "first_turns")]
    turns: String,
    interleave_from_bytes: Size,
    nontemporal_source_method: Name,
    rep_movsb_from_bytes: Size,
    rep_movsb_below_bytes: Size,
    /// Profiles from before there was one have none.
    #[serde(default = "libc_method")]
    temporal_method: Name,
    /// The same.
    #[serde(default = "never")]
    temporal_from_bytes: Size,
    /// The same.
    #[serde(default = "never")]
    temporal_below_bytes: Size,
}

fn libc_method() -> Name {
    Method::Libc.into()
}

fn first_turns() -> String {
    Turns::of(4, 64).name().to_owned()
}

fn never() -> Size {
    Size::Word(Never::Never)
}

fn first_source_prefetch() -> Ahead {
    Prefetch::Nta.into()
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FillTable {
    nontemporal_from_bytes: Size,
    method: Name,
    zero_method: Name,
    rep_stosb_from_bytes: Size,
    rep_stosb_below_bytes: Size,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LibcTable {
    temporal_below_bytes: Size,
}

/// Bytes, or `never`.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected bytes, an integer, or \"never\"")]
enum Size {
    Bytes(u64),
    Word(Never),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Never {
    Never,
}

impl From<u64> for Size {
    fn from(bytes: u64) -> Size {
        // TOML's integers end at the same place as i64.
        if i64::try_from(bytes).is_ok() { Size::Bytes(bytes) } else { Size::Word(Never::Never) }
    }
}

impl Size {
    fn bytes(self) -> u64 {
        match self {
            Size::Bytes(bytes) => bytes,
            Size::Word(Never::Never) => NEVER,
        }
    }
}

/// A method's name.
#[derive(Serialize, Deserialize)]
struct Name(String);

impl From<Method> for Name {
    fn from(method: Method) -> Name {
        Name(method.name().to_owned())
    }
}

impl Name {
    fn method(&self) -> Result<Method, String> {
        Method::from_name(&self.0).ok_or_else(|| format!("no such method: {:?}", self.0))
    }
}

/// The name of a way to read ahead.
#[derive(Serialize, Deserialize)]
struct Ahead(String);

impl From<Prefetch> for Ahead {
    fn from(prefetch: Prefetch) -> Ahead {
        Ahead(prefetch.name().to_owned())
    }
}

impl Ahead {
    fn prefetch(&self) -> Result<Prefetch, String> {
        let named = Prefetch::ALL.into_iter().find(|prefetch| prefetch.name() == self.0);
        named.ok_or_else(|| format!("no such prefetch: {:?}", self.0))
    }
}

impl Profile {
    /// The profile as a file's text.
    pub fn to_toml(&self) -> String {
        let (machine, policy) = (&self.machine, &self.policy);
        let file = File {
            format: FORMAT,
            date: self.date.clone(),
            machine: MachineTable {
                signature: machine.signature.clone(),
                model_name: machine.model_name.clone(),
                l2_bytes: machine.l2_bytes,
                l3_bytes: machine.l3_bytes,
                guest: machine.is_guest,
            },
            copy: CopyTable {
                nontemporal_from_bytes: policy.copy_nontemporal_from_bytes.into(),
                method: policy.copy_method.into(),
                prefetch: policy.copy_prefetch.into(),
                nontemporal_source_prefetch: policy.nontemporal_source_prefetch.into(),
                flush_source_from_bytes: policy.flush_source_from_bytes.into(),
                turns: policy.turns.name().to_owned(),
                interleave_from_bytes: policy.turns_from_bytes.into(),
                nontemporal_source_method: policy.nontemporal_source_method.into(),
                rep_movsb_from_bytes: policy.rep_movsb_from_bytes.into(),
                rep_movsb_below_bytes: policy.rep_movsb_below_bytes.into(),
                temporal_method: policy.temporal_method.into(),
                temporal_from_bytes: policy.temporal_from_bytes.into(),
                temporal_below_bytes: policy.temporal_below_bytes.into(),
            },
            fill: FillTable {
                nontemporal_from_bytes: policy.fill_nontemporal_from_bytes.into(),
                method: policy.fill_method.into(),
                zero_method: policy.zero_method.into(),
                rep_stosb_from_bytes: policy.rep_stosb_from_bytes.into(),
                rep_stosb_below_bytes: policy.rep_stosb_below_bytes.into(),
            },
            libc: LibcTable { temporal_below_bytes: policy.libc_temporal_below_bytes.into() },
            measured: self.measured.clone(),
        };
        let body = toml::to_string(&file).expect("tables of strings, integers and booleans");
        format!("{HEAD}\n{body}")
    }

    /// A file's text, whichever machine it is of.
    ///
    /// # Errors
    ///
    /// Where the text is no profile, and what is wrong there.
    pub fn from_toml(text: &str) -> Result<Profile, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        if file.format != FORMAT {
            return Err(format!("format {}, and this library knows {FORMAT}", file.format));
        }
        Ok(Profile {
            policy: policy(file.copy, file.fill, file.libc)?,
            date: file.date,
            machine: Machine {
                signature: file.machine.signature,
                model_name: file.machine.model_name,
                l2_bytes: file.machine.l2_bytes,
                l3_bytes: file.machine.l3_bytes,
                is_guest: file.machine.guest,
            },
            measured: file.measured,
        })
    }
}

fn policy(copy: CopyTable, fill: FillTable, libc: LibcTable) -> Result<Policy, String> {
    Ok(Policy {
        copy_nontemporal_from_bytes: copy.nontemporal_from_bytes.bytes(),
        fill_nontemporal_from_bytes: fill.nontemporal_from_bytes.bytes(),
        copy_method: copy.method.method()?,
        copy_prefetch: copy.prefetch.prefetch()?,
        nontemporal_source_prefetch: copy.nontemporal_source_prefetch.prefetch()?,
        flush_source_from_bytes: copy.flush_source_from_bytes.bytes(),
        turns: Turns::from_name(&copy.turns)
            .ok_or_else(|| format!("no such turns: {:?}", copy.turns))?,
        turns_from_bytes: copy.interleave_from_bytes.bytes(),
        fill_method: fill.method.method()?,
        zero_method: fill.zero_method.method()?,
        nontemporal_source_method: copy.nontemporal_source_method.method()?,
        rep_movsb_from_bytes: copy.rep_movsb_from_bytes.bytes(),
        rep_movsb_below_bytes: copy.rep_movsb_below_bytes.bytes(),
        temporal_method: copy.temporal_method.method()?,
        temporal_from_bytes: copy.temporal_from_bytes.bytes(),
        temporal_below_bytes: copy.temporal_below_bytes.bytes(),
        rep_stosb_from_bytes: fill.rep_stosb_from_bytes.bytes(),
        rep_stosb_below_bytes: fill.rep_stosb_below_bytes.bytes(),
        libc_temporal_below_bytes: libc.temporal_below_bytes.bytes(),
    })
}
