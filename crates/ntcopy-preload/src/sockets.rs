//! Which descriptors are sockets whose sends are to be hinted.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use crate::settings::Families;
use crate::table::{Kind, Table};
use crate::{enable, sys};

static TABLE: Table = Table::new();
/// The families that were asked for.
static FAMILIES: AtomicU8 = AtomicU8::new(0);
/// The process that owns the table: not a child of `vfork`, which shares it but not the
/// descriptors.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Sockets of these families are hinted from now on.
pub fn choose(families: Families) {
    FAMILIES.store(families.bits(), Relaxed);
}

/// This process owns the table from now on.
pub extern "C" fn own() {
    OWNER.store(sys::getpid(), Relaxed);
}

/// What a descriptor is.
#[inline(never)]
pub fn kind(fd: c_int) -> Kind {
    TABLE.look_up(fd, || {
        let kind = ask(fd);
        (kind, OWNER.load(Relaxed) == sys::getpid())
    })
}

/// Whether it is a socket of a family that was asked for. It opts in at its first large send.
#[inline(never)]
pub fn may_be_hinted(fd: c_int) -> bool {
    let kind = TABLE.look_up(fd, || {
        let wanted = wanted(fd);
        (wanted.unwrap_or(Kind::Other), wanted.is_none() && OWNER.load(Relaxed) == sys::getpid())
    });
    kind != Kind::Other
}

/// The number has a new meaning, or none.
#[inline(always)]
pub fn forget(fd: c_int) {
    TABLE.forget(fd);
}

/// All of these have.
pub fn forget_all(first: u32, last: u32) {
    TABLE.forget_all(first, last);
}

/// It is a socket, but one whose sends must not carry the flag any more.
pub fn leave(fd: c_int) {
    TABLE.note(fd, Kind::Other);
}

/// Asks the kernel, and opts the socket in if it is one to be hinted.
fn ask(fd: c_int) -> Kind {
    let Some(kind) = wanted(fd) else { return Kind::Other };
    if enable::enable(fd) { kind } else { Kind::Other }
}

/// What it is, if its family was asked for.
fn wanted(fd: c_int) -> Option<Kind> {
    let families = Families::from_bits(FAMILIES.load(Relaxed));
    let wanted = match sys::getsockopt::<c_int>(fd, libc::SO_DOMAIN).ok()? {
        libc::AF_UNIX => families.contains(Families::UNIX),
        libc::AF_INET | libc::AF_INET6 => {
            match sys::getsockopt::<c_int>(fd, libc::SO_PROTOCOL).ok()? {
                libc::IPPROTO_TCP | libc::IPPROTO_MPTCP => families.contains(Families::TCP),
                libc::IPPROTO_UDP | libc::IPPROTO_UDPLITE => families.contains(Families::UDP),
                _ => false,
            }
        }
        _ => false,
    };
    if !wanted {
        return None;
    }
    let is_of_records = sys::getsockopt::<c_int>(fd, libc::SO_TYPE).ok()? == libc::SOCK_SEQPACKET;
    Some(if is_of_records { Kind::HintedRecords } else { Kind::Hinted })
}
