//! Listening sockets that were handed over with the process, as sd_listen_fds(3) has it. They
//! outlive it: who connects while it is restarted waits for the next one.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, bail, ensure};
use listenfd::ListenFd;
use rustix::fd::OwnedFd;
use rustix::net::{SocketAddrAny, SocketAddrUnix, getsockname, sockopt};

use crate::address::Address;

static SOCKETS: OnceLock<Vec<(Address, Arc<OwnedFd>)>> = OnceLock::new();

/// Takes them. Before there is another thread, since the environment is changed.
pub(crate) fn take_over() -> anyhow::Result<()> {
    let mut handed = ListenFd::from_env();
    let sockets = (0..handed.len()).map(|at| take(&mut handed, at).context("LISTEN_FDS"));
    let sockets = sockets.collect::<Result<_, _>>()?;
    let _ = SOCKETS.set(sockets);
    Ok(())
}

/// Whether there are any.
pub fn is_handed_sockets() -> bool {
    !sockets().is_empty()
}

/// Where they listen.
pub(crate) fn addresses() -> Vec<Address> {
    sockets().iter().map(|(address, _)| address.clone()).collect()
}

pub(crate) fn socket(address: &Address) -> Option<Arc<OwnedFd>> {
    let found = sockets().iter().find(|(at, _)| at == address);
    found.map(|(_, socket)| Arc::clone(socket))
}

/// Each is of an address that is listened on: another would have its clients wait for ever.
pub(crate) fn all_are_among(doors: &[Address]) -> anyhow::Result<()> {
    for (address, _) in sockets() {
        ensure!(
            doors.contains(address),
            "LISTEN_FDS has a socket for {address}, which is not among the addresses to listen on: \
             the settings and the socket's unit have to agree"
        );
    }
    Ok(())
}

fn sockets() -> &'static [(Address, Arc<OwnedFd>)] {
    SOCKETS.get().map_or(&[], Vec::as_slice)
}

fn take(handed: &mut ListenFd, at: usize) -> anyhow::Result<(Address, Arc<OwnedFd>)> {
    let unix = handed.take_unix_listener(at).ok().flatten().map(OwnedFd::from);
    let socket = match unix {
        Some(socket) => socket,
        None => handed.take_tcp_listener(at)?.map(OwnedFd::from).context("it is gone")?,
    };
    let address = address(getsockname(&socket)?)?;
    ensure!(sockopt::socket_acceptconn(&socket)?, "{address}: the socket does not listen");
    rustix::io::ioctl_fionbio(&socket, true).map_err(io::Error::from)?;
    Ok((address, Arc::new(socket)))
}

fn address(name: SocketAddrAny) -> anyhow::Result<Address> {
    if let Ok(address) = name.clone().try_into() {
        return Ok(Address::Tcp(address));
    }
    let unix = SocketAddrUnix::try_from(name)?;
    if let Some(path) = unix.path_bytes() {
        return Ok(Address::Unix(Path::new(std::ffi::OsStr::from_bytes(path)).to_owned()));
    }
    match unix.abstract_name() {
        Some(name) => Ok(Address::Unix(format!("@{}", String::from_utf8_lossy(name)).into())),
        None => bail!("a socket has no name"),
    }
}
