//! The experiments by their names in records.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The experiments that this version knows, each with its name.
macro_rules! experiments {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)+) => {
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        pub enum ExperimentKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)+
            /// One that this version does not know, by its name.
            #[serde(untagged)]
            Other(Box<str>),
        }

        impl ExperimentKind {
            /// Those that this version knows, in the order in which a page shows them.
            pub const KNOWN: &'static [ExperimentKind] = &[$(ExperimentKind::$kind,)+];

            /// Its name, as in records and in `ntcopy bench NAME`.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(ExperimentKind::$kind => $name,)+
                    ExperimentKind::Other(name) => name,
                }
            }
        }
    };
}

experiments! {
    /// Sends over sockets of one machine.
    Unix = "unix",
    /// What copies or sends leave of a hot set.
    Retention = "retention",
    /// A program as it is, with small requests beside large ones.
    App = "app",
    /// A program's turns, plain and hinted.
    Try = "try",
    /// How much of a cache calls displace.
    Footprint = "footprint",
    Http = "http",
    /// Requests and responses over a network.
    Net = "net",
    Pingpong = "pingpong",
    /// Copies in user space.
    Memcpy = "memcpy",
    /// Fills in user space.
    Memset = "memset",
    Pages = "pages",
    /// Walks through a matrix.
    Order = "order",
}

impl fmt::Display for ExperimentKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl<S: AsRef<str>> From<S> for ExperimentKind {
    fn from(name: S) -> Self {
        let known = Self::KNOWN.iter().find(|known| known.as_str() == name.as_ref());
        known.cloned().unwrap_or_else(|| Self::Other(name.as_ref().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_as_it_is_written_and_an_unknown_one_is_kept() {
        for name in ExperimentKind::KNOWN.iter().map(ExperimentKind::as_str).chain(["later"]) {
            let experiment: ExperimentKind = serde_json::from_value(name.into()).unwrap();
            assert_eq!(serde_json::to_value(&experiment).unwrap(), name);
            assert_eq!(experiment == ExperimentKind::Other(name.into()), name == "later");
        }
    }
}
