//! Which way the bytes went.

use core::fmt;

/// The instructions that move the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// The C library's `memmove` or `memset`, whatever that does.
    Libc,
    /// `rep movsb`. Copies only.
    RepMovsb,
    /// `rep stosb`. Fills only.
    RepStosb,
    /// `rep stosq`. Fills only.
    RepStosq,
    /// Temporal stores of 16 bytes, for a source that is prefetched with PREFETCHNTA. Copies only.
    Sse2,
    /// Temporal stores of 32 bytes, for a source that is prefetched with PREFETCHNTA. Copies only.
    Avx2,
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
    pub const ALL: [Method; 12] = [
        Method::Libc,
        Method::RepMovsb,
        Method::RepStosb,
        Method::RepStosq,
        Method::Sse2,
        Method::Avx2,
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
            Method::Movnti => "movnti",
            Method::Sse2Nt => "sse2-nt",
            Method::Avx2Nt => "avx2-nt",
            Method::Avx512Nt => "avx512-nt",
            Method::Movdir64b => "movdir64b",
            Method::Clzero => "clzero",
        }
    }

    /// The method of a name.
    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Whether its stores bypass the caches, and so need a [fence](crate::fence).
    pub const fn is_nontemporal(self) -> bool {
        match self {
            Method::Libc | Method::RepMovsb | Method::RepStosb | Method::RepStosq => false,
            Method::Sse2 | Method::Avx2 => false,
            Method::Movnti | Method::Sse2Nt | Method::Avx2Nt | Method::Avx512Nt => true,
            Method::Movdir64b | Method::Clzero => true,
        }
    }
}

/// How a copy reads ahead of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Prefetch {
    /// Only as the hardware does.
    #[default]
    None,
    /// PREFETCHT0: into every cache.
    T0,
    /// PREFETCHNTA: past the outer caches, as far as the CPU can.
    Nta,
}

impl Prefetch {
    /// Every way.
    pub const ALL: [Prefetch; 3] = [Prefetch::None, Prefetch::T0, Prefetch::Nta];

    /// The name that profiles use: `none`, `t0` or `nta`.
    pub const fn name(self) -> &'static str {
        match self {
            Prefetch::None => "none",
            Prefetch::T0 => "t0",
            Prefetch::Nta => "nta",
        }
    }
}

/// Which way a copy or a fill went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path {
    /// The instructions of the body. The few bytes before the first whole cache line of the
    /// destination and after the last one are always stored normally.
    pub method: Method,
    /// How the source was read ahead. Methods that the library didn't write (`libc`,
    /// `rep-movsb`) and fills have [`Prefetch::None`].
    pub prefetch: Prefetch,
    /// Whether four pages were copied at once.
    pub interleaved: bool,
}

impl Path {
    /// The C library.
    pub const LIBC: Path = Path::of(Method::Libc);

    /// A method, without prefetch or interleaving.
    pub const fn of(method: Method) -> Path {
        Path { method, prefetch: Prefetch::None, interleaved: false }
    }

    /// [`Method::name`].
    pub const fn name(self) -> &'static str {
        self.method.name()
    }

    /// Whether the stores bypassed the caches.
    pub const fn is_nontemporal(self) -> bool {
        self.method.is_nontemporal()
    }

    /// Whether the source was prefetched with PREFETCHNTA.
    pub const fn source_is_nontemporal(self) -> bool {
        matches!(self.prefetch, Prefetch::Nta)
    }
}

/// `avx512-nt`, `avx512-nt+nta`, `movnti+t0+interleaved`.
impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())?;
        if self.prefetch != Prefetch::None {
            write!(out, "+{}", self.prefetch.name())?;
        }
        if self.interleaved {
            out.write_str("+interleaved")?;
        }
        Ok(())
    }
}
