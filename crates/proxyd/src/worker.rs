//! A worker: one thread, one epoll, its own listeners, connections and pipes. Workers share
//! nothing that they write but the backends' health.

mod connect;
mod context;
mod exchange;
mod flow;
mod gates;
mod goodbye;
mod outcome;
mod pass;
mod run;
mod session;
mod upstreams;

use rustix::event::epoll::{EventData, EventFlags};

pub use self::context::{Shared, Stop};
pub use self::run::{Door, Worker};

/// What every connection is registered for, once.
const EVENTS: EventFlags =
    EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

/// A place in a slab, and whose it was: events of a connection that is gone are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    index: u32,
    generation: u32,
}

/// What an event is for. The generation is cut to 30 bits: an event is at most one wait old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Door(u32),
    Wake,
    Client(Key),
    Upstream(Key),
}

const GENERATIONS: u32 = (1 << 30) - 1;

impl Token {
    fn data(self) -> EventData {
        let pack = |kind: u64, index: u32, generation: u32| {
            kind << 62 | u64::from(generation & GENERATIONS) << 32 | u64::from(index)
        };
        EventData::new_u64(match self {
            Token::Door(index) => pack(0, index, 0),
            Token::Wake => pack(1, 0, 0),
            Token::Client(key) => pack(2, key.index, key.generation),
            Token::Upstream(key) => pack(3, key.index, key.generation),
        })
    }

    fn from_data(data: EventData) -> Token {
        let value = data.u64();
        let key = Key { index: value as u32, generation: (value >> 32) as u32 & GENERATIONS };
        match value >> 62 {
            0 => Token::Door(key.index),
            1 => Token::Wake,
            2 => Token::Client(key),
            _ => Token::Upstream(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_travels_through_an_event() {
        let key = Key { index: u32::MAX, generation: GENERATIONS };
        for token in [Token::Door(7), Token::Wake, Token::Client(key), Token::Upstream(key)] {
            assert_eq!(Token::from_data(token.data()), token);
        }
    }
}
