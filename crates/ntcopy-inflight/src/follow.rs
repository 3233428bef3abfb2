//! What is in flight of a program, by the sockets of its namespace: a pure function of both.
//!
//! What a program sent lies in its own queue, or in that of who is to read it. A reader that
//! splices passes it on without a copy: then it lies in a pipe, of which there are no diagnostics,
//! and in the reader's own queues. Those are counted of readers that have both ends of a pipe, and
//! are told apart from the rest: the kernel does not say who splices.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::processes::{Descriptors, Pid, Process};
use crate::sockets::{Buffer, Inet, Inode, Protocol, Sockets};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    Unix,
    Tcp,
    Udp,
}

impl Family {
    pub const ALL: [Family; 3] = [Family::Unix, Family::Tcp, Family::Udp];

    /// The name that records have, too.
    pub fn as_str(self) -> &'static str {
        match self {
            Family::Unix => "unix",
            Family::Tcp => "tcp",
            Family::Udp => "udp",
        }
    }
}

/// Who has which sockets, as far as this user may see.
#[derive(Debug, Default)]
pub struct Readers {
    all: Vec<(Process, Descriptors)>,
    by_socket: HashMap<Inode, Vec<usize>>,
}

impl Readers {
    pub fn new(all: Vec<(Process, Descriptors)>) -> Readers {
        let mut by_socket: HashMap<Inode, Vec<usize>> = HashMap::new();
        for (index, (_, descriptors)) in all.iter().enumerate() {
            for inode in &descriptors.sockets {
                by_socket.entry(*inode).or_default().push(index);
            }
        }
        Readers { all, by_socket }
    }

    /// Replaces what was known of these processes: they may have made sockets since.
    pub(crate) fn renew(&mut self, theirs: Vec<(Process, Descriptors)>) {
        let mut all = std::mem::take(&mut self.all);
        all.retain(|(known, _)| theirs.iter().all(|(process, _)| process.pid != known.pid));
        all.extend(theirs);
        *self = Readers::new(all);
    }

    /// The sockets that processes had when all were read.
    pub(crate) fn sockets_of(&self, pids: &[Pid]) -> HashSet<Inode> {
        let theirs = self.all.iter().filter(|(process, _)| pids.contains(&process.pid));
        theirs.flat_map(|(_, descriptors)| &descriptors.sockets).copied().collect()
    }
}

/// In flight on the program's sockets of one family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Part {
    pub bytes: u64,
    /// Those with any bytes in flight.
    pub sockets: usize,
}

/// In flight in the queues of a reader that may splice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beyond {
    pub pid: Pid,
    pub name: String,
    pub pipes: usize,
    /// By which the program's bytes come to it.
    pub family: Family,
    pub bytes: u64,
}

/// A process that reads from the program and cannot splice, since it has no pipe: it touches the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toucher {
    pub pid: Pid,
    pub name: String,
    /// What waits for it.
    pub bytes: u64,
}

/// The send buffers of the program's connected sockets of one family that have bytes in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Buffers {
    pub sockets: usize,
    /// All of them together: no more can be in flight on these sockets.
    pub bytes: u64,
    /// Sockets whose buffer has next to no room.
    pub full: usize,
}

/// A sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sum {
    /// As [`Family::ALL`].
    pub parts: [Part; 3],
    /// All that it has, those with nothing in flight included.
    pub sockets: usize,
    /// What the socket with most in flight had.
    pub most_bytes: u64,
    pub beyond: Vec<Beyond>,
    pub touchers: Vec<Toucher>,
    /// As [`Family::ALL`].
    pub buffers: [Buffers; 3],
    /// Sockets whose reader is a process that this user may not look at.
    pub unseen_readers: usize,
}

impl Sum {
    pub fn on_sockets(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.on_sockets() + self.beyond.iter().map(|beyond| beyond.bytes).sum::<u64>()
    }

    pub fn with_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.sockets).sum()
    }

    /// What came by sockets of this family.
    pub fn of(&self, family: Family) -> u64 {
        let beyond = self.beyond.iter().filter(|beyond| beyond.family == family);
        self.parts[family as usize].bytes + beyond.map(|beyond| beyond.bytes).sum::<u64>()
    }
}

/// What a socket sent and nobody took; and the socket that is to read it, where it is a known one.
struct Out {
    family: Family,
    bytes: u64,
    reader: Option<Inode>,
    /// Of a connected one.
    buffer: Option<Buffer>,
}

/// Adds up what the program with these sockets and processes has in flight.
pub fn sum(own: &HashSet<Inode>, pids: &[Pid], sockets: &Sockets, readers: &Readers) -> Sum {
    let mut sum = Sum::default();
    let mut takers: BTreeMap<Inode, Family> = BTreeMap::new();
    let mut received = HashSet::new();
    let mut touchers: BTreeMap<usize, u64> = BTreeMap::new();
    for inode in own {
        let Some(out) = out(*inode, sockets, &mut received) else { continue };
        let part = &mut sum.parts[out.family as usize];
        part.bytes += out.bytes;
        part.sockets += usize::from(out.bytes > 0);
        sum.sockets += 1;
        sum.most_bytes = sum.most_bytes.max(out.bytes);
        if let Some(buffer) = out.buffer.filter(|_| out.bytes > 0) {
            let buffers = &mut sum.buffers[out.family as usize];
            buffers.sockets += 1;
            buffers.bytes += buffer.bytes;
            buffers.full += usize::from(buffer.is_full());
        }
        if let Some(reader) = out.reader {
            note_touchers(&mut touchers, readers.by_socket.get(&reader), out.bytes);
            if !own.contains(&reader) {
                takers.insert(reader, out.family);
            }
        }
    }
    let touches = |(holder, bytes): (usize, u64)| {
        let (process, descriptors) = &readers.all[holder];
        let (pid, name) = (process.pid, process.name.clone());
        (descriptors.pipes == 0).then_some(Toucher { pid, name, bytes })
    };
    sum.touchers = touchers.into_iter().filter_map(touches).collect();
    let mut found: BTreeMap<usize, Family> = BTreeMap::new();
    for (inode, family) in &takers {
        match readers.by_socket.get(inode) {
            Some(holders) => found.extend(holders.iter().map(|holder| (*holder, *family))),
            None => sum.unseen_readers += 1,
        }
    }
    let mut counted: HashSet<Inode> = own.iter().chain(takers.keys()).copied().collect();
    for (holder, family) in found {
        let (process, descriptors) = &readers.all[holder];
        if descriptors.pipes == 0 || pids.contains(&process.pid) {
            continue;
        }
        let theirs = descriptors.sockets.iter().filter(|inode| counted.insert(**inode));
        let bytes = theirs
            .filter_map(|inode| out(*inode, sockets, &mut received))
            .filter(|out| out.family != Family::Udp)
            .map(|out| out.bytes)
            .sum();
        let (pid, name) = (process.pid, process.name.clone());
        sum.beyond.push(Beyond { pid, name, pipes: descriptors.pipes, family, bytes });
    }
    sum
}

/// Adds what waits for each process that has the socket.
fn note_touchers(touchers: &mut BTreeMap<usize, u64>, holders: Option<&Vec<usize>>, bytes: u64) {
    for holder in holders.into_iter().flatten().filter(|_| bytes > 0) {
        *touchers.entry(*holder).or_default() += bytes;
    }
}

/// `received` are the receivers of datagrams that were counted: many senders may have one.
fn out(inode: Inode, sockets: &Sockets, received: &mut HashSet<usize>) -> Option<Out> {
    if let Some(unix) = sockets.unix(inode) {
        let peer = unix.peer.and_then(|peer| sockets.unix(peer));
        let bytes = match peer {
            Some(peer) if !unix.is_datagram => peer.unread_bytes,
            // Of a reader in another namespace there is nothing but what the sender is charged.
            _ => unix.sent_memory_bytes,
        };
        let buffer = unix.buffer.filter(|_| unix.peer.is_some() && !unix.is_datagram);
        return Some(Out { family: Family::Unix, bytes, reader: unix.peer, buffer });
    }
    let socket = sockets.inet(inode)?;
    if socket.protocol == Protocol::Udp {
        let unread = match sockets.udp_receiver(socket) {
            Some((index, receiver)) if received.insert(index) => receiver.unread_bytes,
            _ => 0,
        };
        return Some(Out {
            family: Family::Udp,
            bytes: socket.queued_bytes + unread,
            reader: None,
            buffer: None,
        });
    }
    let peer = sockets.tcp_peer(socket);
    let bytes = match peer {
        Some(peer) => socket.queued_bytes + peer.unread_bytes - in_both(socket, peer),
        None => socket.queued_bytes,
    };
    let reader = peer.map(|peer| peer.inode).filter(|inode| *inode != 0);
    Some(Out { family: Family::Tcp, bytes, reader, buffer: socket.buffer })
}

/// Bytes that came and are not acknowledged yet lie in one place and are in both queues.
fn in_both(sender: &Inet, receiver: &Inet) -> u64 {
    let (Some(sent), Some(got)) = (sender.tcp, receiver.tcp) else { return 0 };
    let most = sender.queued_bytes.min(receiver.unread_bytes);
    got.received_bytes.saturating_sub(sent.acknowledged_bytes).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sockets::{TcpTotals, Unix};

    fn unix(sockets: &mut Sockets, inode: Inode, peer: Inode, unread_bytes: u64) {
        let sent_memory_bytes = 1 << 30;
        let buffer = Some(Buffer { used_bytes: 700, bytes: 800 });
        let peer = Some(peer);
        let socket = Unix { is_datagram: false, peer, unread_bytes, sent_memory_bytes, buffer };
        sockets.add_unix(inode, socket);
    }

    fn tcp(sockets: &mut Sockets, inode: Inode, ports: [u16; 2], queues: [u64; 2]) {
        let [local, remote] = ports.map(|port| ([127, 0, 0, 1], port).into());
        let [queued_bytes, unread_bytes] = queues;
        let protocol = Protocol::Tcp;
        let tcp = Some(TcpTotals {
            sent_bytes: 0,
            acknowledged_bytes: 1000,
            received_bytes: 1000 + unread_bytes / 2,
        });
        let buffer = None;
        sockets.add_inet(Inet {
            inode,
            protocol,
            local,
            remote,
            unread_bytes,
            queued_bytes,
            tcp,
            buffer,
        });
    }

    fn process(pid: Pid, pipes: usize, sockets: &[Inode]) -> (Process, Descriptors) {
        let process = Process { pid, parent: 1, name: format!("p{pid}"), started: 0 };
        (process, Descriptors { sockets: sockets.to_vec(), pipes })
    }

    #[test]
    fn a_reader_that_may_splice_is_followed_and_one_that_cannot_is_not() {
        let mut sockets = Sockets::default();
        unix(&mut sockets, 1, 2, 0);
        unix(&mut sockets, 2, 1, 700);
        // The reader's client is on another machine.
        tcp(&mut sockets, 3, [80, 5000], [4000, 0]);
        let own = HashSet::from([1]);
        for (pipes, expected) in [(1, 4700), (0, 700)] {
            let readers = Readers::new(vec![process(10, 0, &[1]), process(20, pipes, &[2, 3])]);
            let sum = sum(&own, &[10], &sockets, &readers);
            assert_eq!((sum.bytes(), sum.on_sockets()), (expected, 700), "{sum:?}");
            assert_eq!((sum.of(Family::Unix), sum.most_bytes), (expected, 700));
            assert_eq!((sum.sockets, sum.with_bytes(), sum.unseen_readers), (1, 1, 0));
            let touchers: Vec<(Pid, u64)> =
                sum.touchers.iter().map(|one| (one.pid, one.bytes)).collect();
            assert_eq!(touchers, if pipes == 0 { vec![(20, 700)] } else { vec![] });
            let full = Buffers { sockets: 1, bytes: 800, full: 1 };
            assert_eq!(sum.buffers[Family::Unix as usize], full);
        }
        let unseen = sum(&own, &[10], &sockets, &Readers::new(vec![process(10, 1, &[1])]));
        assert_eq!((unseen.bytes(), unseen.unseen_readers), (700, 1));
    }

    #[test]
    fn a_program_that_reads_its_own_bytes_touches_them_too() {
        let mut sockets = Sockets::default();
        unix(&mut sockets, 1, 2, 0);
        unix(&mut sockets, 2, 1, 500);
        let readers = Readers::new(vec![process(10, 1, &[1]), process(11, 0, &[2])]);
        let sum = sum(&HashSet::from([1, 2]), &[10, 11], &sockets, &readers);
        let touchers: Vec<(Pid, u64)> =
            sum.touchers.iter().map(|one| (one.pid, one.bytes)).collect();
        assert_eq!((touchers, sum.beyond.len()), (vec![(11, 500)], 0));
        let buffers = Buffers { sockets: 1, bytes: 800, full: 1 };
        assert_eq!(sum.buffers[Family::Unix as usize], buffers);
    }

    #[test]
    fn sockets_that_were_made_since_have_their_readers() {
        let mut sockets = Sockets::default();
        unix(&mut sockets, 1, 2, 0);
        unix(&mut sockets, 2, 1, 500);
        let mut readers = Readers::new(vec![process(10, 0, &[]), process(30, 0, &[7])]);
        let touchers = |readers: &Readers| -> Vec<Pid> {
            let sum = sum(&HashSet::from([1, 2]), &[10], &sockets, readers);
            sum.touchers.iter().map(|one| one.pid).collect()
        };
        assert!(touchers(&readers).is_empty());
        readers.renew(vec![process(10, 0, &[1, 2])]);
        assert_eq!((touchers(&readers), readers.all.len()), (vec![10], 2));
    }

    #[test]
    fn what_lies_in_both_queues_of_a_connection_counts_once() {
        let mut sockets = Sockets::default();
        tcp(&mut sockets, 1, [80, 5000], [600, 0]);
        tcp(&mut sockets, 2, [5000, 80], [0, 400]);
        // 200 of the 400 are not acknowledged: they are among the 600.
        let sum = sum(&HashSet::from([1]), &[10], &sockets, &Readers::default());
        assert_eq!(sum.parts[Family::Tcp as usize], Part { bytes: 800, sockets: 1 });
    }

    #[test]
    fn datagrams_of_many_senders_to_one_receiver_count_once() {
        let mut sockets = Sockets::default();
        let mut udp = |inode, local: u16, remote: u16, unread_bytes| {
            let [local, remote] = [local, remote].map(|port| ([127, 0, 0, 1], port).into());
            let protocol = Protocol::Udp;
            let (queued_bytes, tcp, buffer) = (10, None, None);
            sockets.add_inet(Inet {
                inode,
                protocol,
                local,
                remote,
                unread_bytes,
                queued_bytes,
                tcp,
                buffer,
            });
        };
        udp(1, 100, 99, 0);
        udp(2, 101, 99, 0);
        udp(3, 99, 0, 5000);
        udp(4, 99, 102, 7000);
        let sum = sum(&HashSet::from([1, 2]), &[10], &sockets, &Readers::default());
        assert_eq!(sum.parts[Family::Udp as usize], Part { bytes: 5020, sockets: 2 });
    }
}
