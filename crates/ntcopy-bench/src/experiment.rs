//! What several kinds of experiments ask for: modes, families, loads; and how files and the command
//! line say it. Data only.

/// Defines `defaults()` of an experiment: the file beside it, read once, as its `Defaults`.
macro_rules! reads_defaults {
    ($file:literal) => {
        pub const DEFAULTS_TOML: &str = include_str!($file);

        /// The defaults, with those of `--quick` in the place of others if it is given.
        pub fn defaults(is_quick: bool) -> &'static Defaults {
            use std::sync::LazyLock;
            static USUAL: LazyLock<Defaults> =
                LazyLock::new(|| crate::experiment::read(DEFAULTS_TOML, false));
            static QUICK: LazyLock<Defaults> =
                LazyLock::new(|| crate::experiment::read(DEFAULTS_TOML, true));
            if is_quick { &QUICK } else { &USUAL }
        }
    };
}
pub(crate) use reads_defaults;

/// Reads a file of defaults, which is embedded: it is what it was when the tests passed.
pub(crate) fn read<D: serde::de::DeserializeOwned>(defaults: &str, is_quick: bool) -> D {
    let mut table: toml::Table = defaults.parse().expect("defaults are TOML");
    // These are for people, who see the file.
    table.retain(|name, _| name != "name" && name != "about");
    choose(&mut table, is_quick);
    table.try_into().expect("defaults are whole")
}

/// Leaves one of two settings, `name` and `quick_name`: the one that is asked for, as `name`.
fn choose(table: &mut toml::Table, is_quick: bool) {
    for name in table.keys().cloned().collect::<Vec<String>>() {
        if let Some(usual) = name.strip_prefix("quick_") {
            let quick = table.remove(&name).filter(|_| is_quick);
            table.extend(quick.map(|quick| (usual.to_owned(), quick)));
        } else if let Some(toml::Value::Table(inner)) = table.get_mut(&name) {
            choose(inner, is_quick);
        }
    }
}

/// The text form of an enum whose values are words, and back.
macro_rules! words {
    ($kind:ty, $($value:ident = $word:literal),+ $(; not to be named: $other:ident = $its:literal)?
     $(; in scripts for 0.2: $($old:literal = $now:ident),+)?) => {
        impl $kind {
            /// Every one that a user may name.
            pub const ALL: &'static [$kind] = &[$(<$kind>::$value),+];

            /// Its word, as on the command line and in records.
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
                clap::ValueEnum::from_str(text, false).map_err(|_| {
                    let known: Vec<&str> = Self::ALL.iter().map(|value| value.as_str()).collect();
                    format!("`{text}`: one of {}", known.join(", "))
                })
            }
        }

        impl clap::ValueEnum for $kind {
            fn value_variants<'a>() -> &'a [Self] {
                Self::ALL
            }

            fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
                let old: &[(&'static str, $kind)] = &[$($(($old, <$kind>::$now)),+)?];
                let old = old.iter().filter(|(_, now)| now == self).map(|(old, _)| *old);
                Some(clap::builder::PossibleValue::new(self.as_str()).aliases(old))
            }
        }

        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        crate::experiment::read_as_written!($kind);
    };
}
pub(crate) use words;

/// Reads a kind in files as the command line has it.
macro_rules! read_as_written {
    ($kind:ty) => {
        impl<'de> serde::Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let word = std::borrow::Cow::<str>::deserialize(from)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use read_as_written;

use ntcopy_record::units::{Bytes, SizeError};

mod family;
mod load;
mod mode;

pub const LINE_BYTES: u64 = 64;

/// What a file of defaults says of an option, as it is typed; nothing where it says nothing.
pub fn default_words(defaults: &str, option: &str) -> Option<String> {
    let table: toml::Table = defaults.parse().expect("defaults are TOML");
    let usual = as_typed(option, table.get(option).filter(|value| !value.is_table())?);
    let quick = table.get(&format!("quick_{option}")).map(|quick| as_typed(option, quick));
    Some(match quick.filter(|quick| *quick != usual) {
        Some(quick) => format!("{usual}; with --quick {quick}"),
        None => usual,
    })
}

fn as_typed(option: &str, value: &toml::Value) -> String {
    match value {
        toml::Value::Array(list) => {
            list.iter().map(|one| as_typed(option, one)).collect::<Vec<String>>().join(",")
        }
        toml::Value::Integer(bytes) if option.ends_with("_bytes") => typed_size(*bytes as u64),
        toml::Value::String(word) => word.clone(),
        other => other.to_string(),
    }
}

/// A size as it is typed: `64KiB`.
pub(crate) fn typed_size(bytes: u64) -> String {
    Bytes(bytes).to_string().replace(" bytes", "").replace(' ', "")
}

/// Takes words out of a table, which help and completion then know.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static>(
    known: &'static [T],
    name: fn(&T) -> &'static str,
) -> impl clap::builder::TypedValueParser<Value = T> {
    use clap::builder::TypedValueParser as _;
    clap::builder::PossibleValuesParser::new(known.iter().map(name))
        .try_map(move |word| known.iter().find(|one| name(one) == word).cloned().ok_or("unknown"))
}

/// A size of the command line, in bytes.
pub(crate) fn size(text: &str) -> Result<u64, SizeError> {
    text.parse().map(|Bytes(bytes)| bytes)
}

pub use family::{DATAGRAM_BYTES, Family, LARGEST_DATAGRAM_BYTES};
pub use load::{Lengths, LoadForm, Rate, Times};
pub use mode::Mode;
pub(crate) use mode::with_baseline;
