//! Which way the bytes went.

use core::fmt;

/// The instructions that move the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "profile", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "profile", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Method {
    /// The C library's `memmove` or `memset`, whatever that does.
    Libc,
    /// `rep movsb`. Copies only.
    RepMovsb,
    /// `rep stosb`. Fills only.
    RepStosb,
    /// `rep stosq`. Fills only.
    RepStosq,
    /// Temporal stores of 16 bytes. Copies only.
    Sse2,
    /// Temporal stores of 32 bytes. Copies only.
    Avx2,
    /// Temporal stores of 64 bytes. Copies only.
    Avx512,
    /// Non-temporal stores of 8 bytes.
    Movnti,
    /// Non-temporal stores of 16 bytes.
    Sse2Nt,
    /// Non-temporal stores of 32 bytes.
    Avx2Nt,
    /// Non-temporal stores of 64 bytes.
    Avx512Nt,
    /// Direct stores of 64 bytes, from memory to memory.
    Movdir64b,
    /// 64 bytes of zeros at a time. Fills with zero only.
    Clzero,
}

impl Method {
    /// Every method, temporal ones first.
    pub const ALL: [Method; 13] = [
        Method::Libc,
        Method::RepMovsb,
        Method::RepStosb,
        Method::RepStosq,
        Method::Sse2,
        Method::Avx2,
        Method::Avx512,
        Method::Movnti,
        Method::Sse2Nt,
        Method::Avx2Nt,
        Method::Avx512Nt,
        Method::Movdir64b,
        Method::Clzero,
    ];

    /// The name that records and profiles use: `libc`, `rep-movsb`, `avx512-nt`, …
    pub const fn name(self) -> &'static str {
        match self {
            Method::Libc => "libc",
            Method::RepMovsb => "rep-movsb",
            Method::RepStosb => "rep-stosb",
            Method::RepStosq => "rep-stosq",
            Method::Sse2 => "sse2",
            Method::Avx2 => "avx2",
            Method::Avx512 => "avx512",
            Method::Movnti => "movnti",
            Method::Sse2Nt => "sse2-nt",
            Method::Avx2Nt => "avx2-nt",
            Method::Avx512Nt => "avx512-nt",
            Method::Movdir64b => "movdir64b",
            Method::Clzero => "clzero",
        }
    }

    /// Whether its stores bypass the caches, and so need a [fence](crate::fence).
    pub const fn is_nontemporal(self) -> bool {
        match self {
            Method::Libc | Method::RepMovsb | Method::RepStosb | Method::RepStosq => false,
            Method::Sse2 | Method::Avx2 | Method::Avx512 => false,
            Method::Movnti | Method::Sse2Nt | Method::Avx2Nt | Method::Avx512Nt => true,
            Method::Movdir64b | Method::Clzero => true,
        }
    }
}

/// How a copy reads its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "profile", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "profile", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Prefetch {
    /// Only as the hardware does.
    #[default]
    None,
    /// PREFETCHT0: into every cache.
    T0,
    /// PREFETCHNTA: past the outer caches, as far as the CPU can.
    Nta,
    /// The hardware prefetches, and what was copied goes out of every cache, line by line
    /// (CLFLUSHOPT). Lines that were written to are written back to memory, and other CPUs lose
    /// their copies of them. Those at the ends that are not wholly of the source stay.
    Flush,
}

impl Prefetch {
    /// Every way.
    pub const ALL: [Prefetch; 4] = [Prefetch::None, Prefetch::T0, Prefetch::Nta, Prefetch::Flush];

    /// The name that profiles use: `none`, `t0`, `nta` or `flush`.
    pub const fn name(self) -> &'static str {
        match self {
            Prefetch::None => "none",
            Prefetch::T0 => "t0",
            Prefetch::Nta => "nta",
            Prefetch::Flush => "flush",
        }
    }
}

/// How many pages a copy takes in turn, and how many bytes of each at a time; or one byte after the
/// other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "profile", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "profile", serde(try_from = "String", into = "&'static str"))]
pub struct Turns {
    pages: u8,
    bytes: u16,
}

impl Turns {
    /// One byte after the other.
    pub const NONE: Turns = Turns { pages: 0, bytes: 0 };

    /// Every way. A turn takes four lines at least, which is what the copies move at once.
    pub const ALL: [Turns; 9] = [
        Turns::NONE,
        Turns::of(4, 64),
        Turns::of(8, 64),
        Turns::of(2, 128),
        Turns::of(4, 128),
        Turns::of(8, 128),
        Turns::of(2, 256),
        Turns::of(4, 256),
        Turns::of(8, 256),
    ];

    pub(crate) const fn of(pages: u8, bytes: u16) -> Turns {
        Turns { pages, bytes }
    }

    /// Pages that are taken in turn; 0 for [`Turns::NONE`].
    pub const fn pages(self) -> usize {
        self.pages as usize
    }

    /// Bytes of a page at a time; 0 for [`Turns::NONE`].
    pub const fn bytes(self) -> usize {
        self.bytes as usize
    }

    /// Bytes of all pages together, which is what a copy has to have for one round.
    pub const fn group_bytes(self) -> u64 {
        self.pages as u64 * 4096
    }

    /// Whether it is [`Turns::NONE`].
    pub const fn is_none(self) -> bool {
        self.pages == 0
    }

    /// Pages and bytes, `4x128`; `none`.
    pub const fn name(self) -> &'static str {
        match (self.pages, self.bytes) {
            (4, 64) => "4x64",
            (8, 64) => "8x64",
            (2, 128) => "2x128",
            (4, 128) => "4x128",
            (8, 128) => "8x128",
            (2, 256) => "2x256",
            (4, 256) => "4x256",
            (8, 256) => "8x256",
            _ => "none",
        }
    }

    /// The turns of a name.
    pub fn from_name(name: &str) -> Option<Turns> {
        Turns::ALL.into_iter().find(|turns| turns.name() == name)
    }
}

#[cfg(feature = "profile")]
impl TryFrom<String> for Turns {
    type Error = String;

    fn try_from(name: String) -> Result<Turns, String> {
        Turns::from_name(&name).ok_or_else(|| format!("no such turns: {name:?}"))
    }
}

impl From<Turns> for &'static str {
    fn from(turns: Turns) -> &'static str {
        turns.name()
    }
}

/// Which way a copy or a fill went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path {
    /// The instructions of the body. The few bytes before the first whole cache line of the
    /// destination and after the last one are always stored normally.
    pub method: Method,
    /// How the source was read. Methods that the library didn't write (`libc`, `rep-movsb`) and
    /// fills have [`Prefetch::None`].
    pub prefetch: Prefetch,
    /// Which pages were taken in turn.
    pub turns: Turns,
}

impl Path {
    /// The C library.
    pub const LIBC: Path = Path::of(Method::Libc);

    /// A method, without prefetch and one byte after the other.
    pub const fn of(method: Method) -> Path {
        Path { method, prefetch: Prefetch::None, turns: Turns::NONE }
    }

    /// [`Method::name`].
    pub const fn name(self) -> &'static str {
        self.method.name()
    }

    /// Whether the stores bypassed the caches.
    pub const fn is_nontemporal(self) -> bool {
        self.method.is_nontemporal()
    }

    /// Whether the source was kept out of the caches: by PREFETCHNTA, as far as the CPU heeds it,
    /// or flushed out of them.
    pub const fn source_is_nontemporal(self) -> bool {
        matches!(self.prefetch, Prefetch::Nta | Prefetch::Flush)
    }
}

/// `avx512-nt`, `avx512-nt+nta`, `movnti+t0+4x128`.
impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())?;
        if self.prefetch != Prefetch::None {
            write!(out, "+{}", self.prefetch.name())?;
        }
        if self.turns.is_none() { Ok(()) } else { write!(out, "+{}", self.turns.name()) }
    }
}
