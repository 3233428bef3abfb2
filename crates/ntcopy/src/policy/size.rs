//! A size in a profile: bytes, or `never`, since TOML's integers end where i64 does.

use serde::{Deserialize, Deserializer, Serializer};

use super::NEVER;

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected bytes, an integer, or \"never\"")]
enum Size {
    Bytes(u64),
    Word(Never),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Never {
    Never,
}

pub(super) fn serialize<S: Serializer>(bytes: &u64, to: S) -> Result<S::Ok, S::Error> {
    match i64::try_from(*bytes) {
        Ok(bytes) => to.serialize_i64(bytes),
        Err(_) => to.serialize_str("never"),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Size::deserialize(from).map(|size| match size {
        Size::Bytes(bytes) => bytes,
        Size::Word(Never::Never) => NEVER,
    })
}
