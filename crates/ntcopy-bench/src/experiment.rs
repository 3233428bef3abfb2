//! What experiments ask of the same kind: modes, families, loads, ways to copy. Data only.

/// Defines `defaults()` of an experiment: its `DEFAULTS_TOML`, read once, as its `Defaults`.
macro_rules! reads_defaults {
    ($name:literal) => {
        /// The defaults, read.
        ///
        /// # Panics
        ///
        /// When the embedded file is not what it was when the tests passed.
        #[must_use]
        pub fn defaults() -> &'static Defaults {
            static DEFAULTS: std::sync::LazyLock<Defaults> = std::sync::LazyLock::new(|| {
                toml::from_str(DEFAULTS_TOML).expect(concat!(
                    "bench/experiments/",
                    $name,
                    ".toml parses"
                ))
            });
            &DEFAULTS
        }
    };
}
pub(crate) use reads_defaults;

/// The text form of an enum whose values are words, and back.
macro_rules! words {
    ($kind:ty, $($value:ident = $word:literal),+ $(; not to be named: $other:ident = $its:literal)?) => {
        impl $kind {
            /// Every one that a user may name.
            pub const ALL: &'static [$kind] = &[$(<$kind>::$value),+];

            /// Its word, as on the command line and in records.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(<$kind>::$value => $word,)+
                    $(<$kind>::$other => $its,)?
                }
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $kind {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let known = || Self::ALL.iter().map(|value| value.as_str());
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or_else(|| {
                    format!("`{text}`: one of {}", known().collect::<Vec<&str>>().join(", "))
                })
            }
        }

        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let word = std::borrow::Cow::<str>::deserialize(from)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use words;

use ntcopy_record::units::{Bytes, SizeError};

pub mod bulk;
mod family;
mod load;
mod mode;

pub const LINE_BYTES: u64 = 64;

/// A size of the command line, in bytes.
pub(crate) fn size(text: &str) -> Result<u64, SizeError> {
    text.parse().map(|Bytes(bytes)| bytes)
}

pub use family::{DATAGRAM_BYTES, Family, LARGEST_DATAGRAM_BYTES};
pub(crate) use load::bytes_per_second;
pub use load::{Closed, Lengths, LoadForm, Open, Rate, Times};
pub(crate) use mode::with_baseline;
pub use mode::{Mode, NetMode};
