//! Which path a copy or a fill takes: a pure function of its size, its hints and a [`Policy`].
//!
//! The size that decides is that of the whole stream, not of one call: a gigabyte that is copied
//! in pieces of 64 KiB leaves as much behind in the caches as one call would
//! ([`Stream`](crate::Stream) carries it). What one call's length decides is only whether there
//! is enough of it to stream at all, and whether to take pages in turn.
//!
//! A [`Policy`] is what was measured on this machine (a profile, see
//! [`profile`](crate::profile)), or what [`Policy::for_facts`] makes of CPUID.

pub(crate) mod defaults;
#[cfg(feature = "profile")]
mod size;
#[cfg(test)]
mod tests;

use crate::arch;
pub use crate::arch::{ASSUMED_L2_BYTES, Facts, Vendor};
use crate::hint::{Hint, Hints};
use crate::path::{Method, Path, Prefetch, Turns};

/// Calls below this many bytes are never streamed, whatever the hint: there are hardly any whole
/// lines in them, and the fence costs more than they do.
pub const MIN_STREAMED_BYTES: usize = 256;

/// A threshold that no size reaches.
pub const NEVER: u64 = u64::MAX;

/// The thresholds, and the methods on either side of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "profile", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "profile", serde(deny_unknown_fields))]
pub struct Policy {
    /// [`Hint::Auto`]: bytes of the whole from which copies are non-temporal.
    #[cfg_attr(feature = "profile", serde(with = "size"))]
    pub copy_nontemporal_from_bytes: u64,
    /// [`Hint::Auto`]: bytes of the whole from which fills are non-temporal.
    #[cfg_attr(feature = "profile", serde(with = "size"))]
    pub fill_nontemporal_from_bytes: u64,
    /// What non-temporal copies are made of. [`Method::Libc`] where there is nothing.
    pub copy_method: Method,
    /// How a non-temporal copy reads ahead, if its source's hint is [`Hint::Auto`].
    pub copy_prefetch: Prefetch,
    /// How a non-temporal copy reads ahead, if its source's hint is [`Hint::Nontemporal`].
    pub nontemporal_source_prefetch: Prefetch,
    /// Bytes of the whole from which a non-temporal copy flushes its source instead, if that has the
    /// hint [`Hint::Nontemporal`].
    #[cfg_attr(feature = "profile", serde(with = "size"))]
    pub flush_source_from_bytes: u64,
    /// Which pages the library's own copies take in turn, where a call is long enough.
    pub turns: Turns,
    /// Bytes of one call from which they do; of a source that is cold or whose hint is
    /// [`Hint::Nontemporal`], from one group of pages on.
    #[cfg_attr(feature = "profile", serde(with = "size"))]
    pub turns_from_bytes: u64,
    /// What non-temporal fills are made of, for values other than zero.
    pub fill_method: Method,
    /// What non-temporal fills with zero are made of.
    pub zero_method: Method,
    /// What temporal copies of a non-temporal source are made of.
    pub nontemporal_source_method: Method,
    /// Other temporal copies in one call are `rep movsb` from this number of bytes on…
    #[cfg_attr(feature = "profile", serde(with = "size"))]
    pub rep_movsb_from_bytes: u64,
    /// …and below this one.
    #[cfg_attr(feature = "profile", serde(with = "size"))]
    pub rep_movsb_below_bytes: u64,
    /// What temporal copies of a cold source in one call are made of, from
    /// [`temporal_from_bytes`](Policy::temporal_from_bytes) on.
    pub temporal_method: Method,
    /// Bytes of one call from which they are…
    #[cfg_attr(feature = "profile", serde(with = "size"))]
    pub temporal_from_bytes: u64,
    /// …and below which.
    #[cfg_attr(feature = "profile", serde(with = "size"))]
    pub temporal_below_bytes: u64,
    /// Temporal fills in one call are `rep stosb` from this number of bytes on…
    #[cfg_attr(feature = "profile", serde(with = "size"))]
    pub rep_stosb_from_bytes: u64,
    /// …and below this one. The others are the C library's.
    #[cfg_attr(feature = "profile", serde(with = "size"))]
    pub rep_stosb_below_bytes: u64,
    /// Bytes of one call from which the C library can't be trusted to be temporal, so that
    /// [`Hint::Temporal`] gets the two methods below instead.
    #[cfg_attr(feature = "profile", serde(with = "size"))]
    pub libc_temporal_below_bytes: u64,
    /// What such copies are made of.
    pub insisted_copy_method: Method,
    /// What such fills are made of.
    pub insisted_fill_method: Method,
}

impl Policy {
    /// Everything to the C library: the policy of a CPU without non-temporal stores.
    pub const LIBC: Policy = Policy {
        copy_nontemporal_from_bytes: NEVER,
        fill_nontemporal_from_bytes: NEVER,
        copy_method: Method::Libc,
        copy_prefetch: Prefetch::None,
        nontemporal_source_prefetch: Prefetch::None,
        flush_source_from_bytes: NEVER,
        turns: Turns::NONE,
        turns_from_bytes: NEVER,
        fill_method: Method::Libc,
        zero_method: Method::Libc,
        nontemporal_source_method: Method::Libc,
        rep_movsb_from_bytes: NEVER,
        rep_movsb_below_bytes: NEVER,
        temporal_method: Method::Libc,
        temporal_from_bytes: NEVER,
        temporal_below_bytes: NEVER,
        rep_stosb_from_bytes: NEVER,
        rep_stosb_below_bytes: NEVER,
        libc_temporal_below_bytes: NEVER,
        insisted_copy_method: Method::Libc,
        insisted_fill_method: Method::Libc,
    };

    /// What the CPU that the calling thread runs on makes of itself.
    pub fn for_cpu() -> Policy {
        Policy::for_facts(&Facts::detect())
    }

    /// The path of a copy of `len_bytes` that is part of `total_bytes`.
    pub fn choose_copy(&self, len_bytes: usize, total_bytes: u64, hints: Hints) -> Path {
        if len_bytes < MIN_STREAMED_BYTES {
            return Path::LIBC;
        }
        let is_streamed = match hints.destination {
            Hint::Nontemporal => true,
            Hint::Temporal => false,
            Hint::Auto => total_bytes >= self.copy_nontemporal_from_bytes,
        };
        let prefetch = match hints.source {
            Hint::Nontemporal if is_streamed && total_bytes >= self.flush_source_from_bytes => {
                Prefetch::Flush
            }
            Hint::Nontemporal if is_streamed => self.nontemporal_source_prefetch,
            Hint::Nontemporal => Prefetch::Nta,
            Hint::Temporal => Prefetch::T0,
            Hint::Auto => self.copy_prefetch,
        };
        let len = len_bytes as u64;
        let method = match hints.source {
            _ if is_streamed => self.copy_method,
            Hint::Nontemporal => self.nontemporal_source_method,
            _ => self.temporal_copy(len, hints),
        };
        if method == Method::Libc {
            return Path::LIBC;
        }
        // Within the caches, where nothing says that the source is not, turns cost a tenth.
        let is_cold = hints.is_source_cold || hints.source == Hint::Nontemporal;
        let has_turns = is_streamed || is_cold;
        let turns = if has_turns { self.turns_of(len, is_cold) } else { Turns::NONE };
        match arch::copy_backend(method) {
            Some(backend) => backend.nearest(prefetch, turns),
            None => Path::LIBC,
        }
    }

    fn turns_of(&self, len: u64, is_cold: bool) -> Turns {
        let from_bytes = if is_cold && self.turns_from_bytes != NEVER {
            self.turns_from_bytes.min(self.turns.group_bytes())
        } else {
            self.turns_from_bytes
        };
        if len >= from_bytes { self.turns } else { Turns::NONE }
    }

    /// The path of a fill of `len_bytes` that is part of `total_bytes`.
    pub fn choose_fill(&self, len_bytes: usize, total_bytes: u64, value: u8, hint: Hint) -> Path {
        if len_bytes < MIN_STREAMED_BYTES {
            return Path::LIBC;
        }
        let is_streamed = match hint {
            Hint::Nontemporal => true,
            Hint::Temporal => false,
            Hint::Auto => total_bytes >= self.fill_nontemporal_from_bytes,
        };
        Path::of(match value {
            0 if is_streamed => self.zero_method,
            _ if is_streamed => self.fill_method,
            _ => self.temporal_fill(len_bytes as u64, hint),
        })
    }

    /// Copies whose whole is below this number of bytes are [`Path::LIBC`], unless one of their
    /// hints is [`Hint::Nontemporal`] or their source is cold.
    pub fn plain_copies_below_bytes(&self) -> u64 {
        let is_rep_used = self.rep_movsb_from_bytes < self.rep_movsb_below_bytes;
        self.copy_nontemporal_from_bytes
            .min(if is_rep_used { self.rep_movsb_from_bytes } else { NEVER })
            .min(self.libc_temporal_below_bytes)
    }

    /// Fills whose whole is below this number of bytes are [`Path::LIBC`], unless their hint is
    /// [`Hint::Nontemporal`].
    pub fn plain_fills_below_bytes(&self) -> u64 {
        let is_rep_used = self.rep_stosb_from_bytes < self.rep_stosb_below_bytes;
        self.fill_nontemporal_from_bytes
            .min(if is_rep_used { self.rep_stosb_from_bytes } else { NEVER })
            .min(self.libc_temporal_below_bytes)
    }

    fn temporal_copy(&self, len: u64, hints: Hints) -> Method {
        let is_insisted =
            hints.destination == Hint::Temporal && len >= self.libc_temporal_below_bytes;
        let is_own = (self.temporal_from_bytes..self.temporal_below_bytes).contains(&len);
        if is_own && hints.is_source_cold {
            self.temporal_method
        } else if (self.rep_movsb_from_bytes..self.rep_movsb_below_bytes).contains(&len) {
            Method::RepMovsb
        } else if is_insisted {
            self.insisted_copy_method
        } else {
            Method::Libc
        }
    }

    fn temporal_fill(&self, len: u64, hint: Hint) -> Method {
        let is_insisted = hint == Hint::Temporal && len >= self.libc_temporal_below_bytes;
        let is_in_range = (self.rep_stosb_from_bytes..self.rep_stosb_below_bytes).contains(&len);
        if is_in_range {
            Method::RepStosb
        } else if is_insisted {
            self.insisted_fill_method
        } else {
            Method::Libc
        }
    }

    /// The first method that this CPU can't do, and the field that names it. A policy without one
    /// may be used.
    pub fn unavailable(&self) -> Option<(&'static str, Method)> {
        let copies = [("copy_method", self.copy_method)].into_iter().chain(self.temporal_copies());
        let fills = [
            ("fill_method", self.fill_method),
            ("zero_method", self.zero_method),
            ("insisted_fill_method", self.insisted_fill_method),
        ];
        let copies = copies.filter(|(_, method)| {
            arch::copy_backend(*method).is_none_or(|backend| !backend.is_available())
        });
        let fills = fills.into_iter().filter(|(name, method)| {
            arch::fill_backend(*method).is_none_or(|backend| {
                !backend.is_available() || (backend.zero_only && *name != "zero_method")
            })
        });
        copies.chain(fills).next()
    }

    /// The first field for bytes that are to stay in the caches whose method takes them past those.
    /// A policy without one may be used.
    pub fn nontemporal(&self) -> Option<(&'static str, Method)> {
        let fill = ("insisted_fill_method", self.insisted_fill_method);
        self.temporal_copies().into_iter().chain([fill]).find(|(_, method)| method.is_nontemporal())
    }

    fn temporal_copies(&self) -> [(&'static str, Method); 3] {
        [
            ("nontemporal_source_method", self.nontemporal_source_method),
            ("temporal_method", self.temporal_method),
            ("insisted_copy_method", self.insisted_copy_method),
        ]
    }
}
