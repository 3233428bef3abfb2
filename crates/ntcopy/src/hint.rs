//! What the caller knows about the bytes.

/// What will become of the bytes on one side of a copy, as far as the caller knows.
///
/// A hint never changes which bytes end up where, only how they travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Hint {
    /// The caller doesn't know: the [policy](crate::policy) decides, by the size of the whole.
    #[default]
    Auto,
    /// These bytes are looked at soon: they belong in the cache.
    Temporal,
    /// These bytes are not looked at soon: they need no room in the cache.
    Nontemporal,
}

impl Hint {
    /// Every hint.
    pub const ALL: [Hint; 3] = [Hint::Auto, Hint::Temporal, Hint::Nontemporal];

    /// `auto`, `temporal` or `nontemporal`.
    pub const fn name(self) -> &'static str {
        match self {
            Hint::Auto => "auto",
            Hint::Temporal => "temporal",
            Hint::Nontemporal => "nontemporal",
        }
    }
}

/// The hints of a copy, one a side, and where its source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Hints {
    /// The bytes that are read.
    pub source: Hint,
    /// The bytes that are written.
    pub destination: Hint,
    /// The bytes that are read are in no cache: they come from a device, or much was read since.
    pub is_source_cold: bool,
}

impl Hints {
    /// Nothing is known of either side.
    pub const AUTO: Hints = Hints::new(Hint::Auto, Hint::Auto);
    /// Both sides stay in use.
    pub const TEMPORAL: Hints = Hints::new(Hint::Temporal, Hint::Temporal);
    /// Neither side is looked at again soon.
    pub const NONTEMPORAL: Hints = Hints::new(Hint::Nontemporal, Hint::Nontemporal);
    /// What is written is not looked at soon; of the source nothing is known.
    pub const NONTEMPORAL_DESTINATION: Hints = Hints::new(Hint::Auto, Hint::Nontemporal);
    /// What is read is not looked at again soon; of the destination nothing is known.
    pub const NONTEMPORAL_SOURCE: Hints = Hints::new(Hint::Nontemporal, Hint::Auto);

    /// A hint for each side.
    pub const fn new(source: Hint, destination: Hint) -> Hints {
        Hints { source, destination, is_source_cold: false }
    }

    /// The same of a source that is in no cache. [`Hint::Auto`] can't know that, and goes by what
    /// loses for none.
    pub const fn from_cold(self) -> Hints {
        Hints { is_source_cold: true, ..self }
    }
}
