//! Features of a network device, by the ioctl of `linux/ethtool.h`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use crate::run::Failure;

// Commands, from linux/ethtool.h.
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
/// The set of strings that are names of features.
const ETH_SS_FEATURES: u32 = 4;
/// Bytes of a name, and 32-bit words.
const NAME_BYTES: usize = 32;
const NAME_WORDS: usize = NAME_BYTES / 4;
/// Features of one block, a bit each.
const BLOCK_FEATURES: usize = 32;

/// Words of a block that is read: available, requested, active, never changed.
const READ_WORDS: usize = 4;
const ACTIVE: usize = 2;
/// Words of a block that is written: which count, and their values.
const WRITTEN_WORDS: usize = 2;

pub fn is_on(socket: BorrowedFd<'_>, device: &str, feature: &str) -> Result<bool, Failure> {
    let (index, blocks) = find(socket, device, feature)?;
    let mut command = vec![0; 2 + blocks * READ_WORDS];
    command[..2].copy_from_slice(&[ETHTOOL_GFEATURES, blocks as u32]);
    call(socket, device, &mut command).map_err(failed("ask for a device's features"))?;
    let (block, bit) = (index / BLOCK_FEATURES, index % BLOCK_FEATURES);
    Ok(command[2 + block * READ_WORDS + ACTIVE] & (1 << bit) != 0)
}

/// Switches a feature. Whether the device follows, [`is_on`] tells.
pub fn set(socket: BorrowedFd<'_>, device: &str, feature: &str, on: bool) -> Result<(), Failure> {
    let (index, blocks) = find(socket, device, feature)?;
    let mut command = vec![0; 2 + blocks * WRITTEN_WORDS];
    command[..2].copy_from_slice(&[ETHTOOL_SFEATURES, blocks as u32]);
    let (block, bit) = (index / BLOCK_FEATURES, index % BLOCK_FEATURES);
    let written = 2 + block * WRITTEN_WORDS;
    command[written] = 1 << bit;
    command[written + 1] = u32::from(on) << bit;
    call(socket, device, &mut command).map_err(failed("switch a device's feature"))
}

/// The number of a feature, and of how many blocks there are.
fn find(socket: BorrowedFd<'_>, device: &str, feature: &str) -> Result<(usize, usize), Failure> {
    let mask = (1_u64 << ETH_SS_FEATURES).to_ne_bytes();
    let [low, high] = [&mask[..4], &mask[4..]].map(word);
    let mut command = [ETHTOOL_GSSET_INFO, 0, low, high, 0];
    call(socket, device, &mut command).map_err(failed("ask for a device's features"))?;
    let count = command[4] as usize;
    let mut command = vec![0; 3 + count * NAME_WORDS];
    command[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count as u32]);
    call(socket, device, &mut command).map_err(failed("ask for the names of features"))?;
    let names: Vec<u8> = command[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let is_it = |name: &[u8]| {
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        &name[..end] == feature.as_bytes()
    };
    let index = names.chunks(NAME_BYTES).position(is_it);
    match index {
        Some(index) => Ok((index, count.div_ceil(BLOCK_FEATURES))),
        None => Err(Failure::Limit(format!("this kernel's devices have no feature {feature}"))),
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_ne_bytes(bytes.try_into().unwrap_or_default())
}

fn failed(what: &'static str) -> impl FnOnce(Errno) -> Failure {
    move |errno| Failure::Limit(format!("cannot {what} (ethtool): {errno}"))
}

/// The ioctl. The command's buffer has to have the room that the command says.
fn call(socket: BorrowedFd<'_>, device: &str, command: &mut [u32]) -> Result<(), Errno> {
    let mut name = [0; libc::IFNAMSIZ];
    // The last one stays zero.
    if device.len() >= name.len() {
        return Err(Errno::NODEV);
    }
    for (to, from) in name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    let mut request = libc::ifreq {
        ifr_name: name,
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: command.as_mut_ptr().cast() },
    };
    // SAFETY: the request lives through the call, its name ends in a zero, and its pointer is to
    // the command, of which the kernel reads and writes as much as the command's own count says;
    // the callers above make it as long as that. The descriptor is borrowed.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if done >= 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}
