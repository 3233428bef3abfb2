//! Sends with the hint from Rust, and prints what was counted. The crate asks the kernel first and
//! then the module; where neither takes the hint, the same sends are plain.
//!
//! `cargo run --example send`

use std::error::Error;
use std::io::Read as _;
use std::os::unix::net::UnixStream;

use ntcopy::Hint;
use ntcopy::socket::{self, Counters, SendFlags, Setting, Support};

const PIECE_BYTES: usize = 64 << 10;
const PIECES: usize = 256;

fn counters() -> Result<Counters, Box<dyn Error>> {
    Ok(socket::counters()?.unwrap_or_default())
}

fn main() -> Result<(), Box<dyn Error>> {
    let (here, mut there) = UnixStream::pair()?;
    // The socket opts in once, and each send is given the answer.
    let support = socket::enable(&here, Setting::Flagged)?;
    match support {
        Support::None => println!("this kernel has no SO_NTCOPY: plain sends"),
        _ => println!("the kernel takes the hint"),
    }
    let before = counters()?;
    let mut total = 0;
    let mut read_back = vec![0; PIECE_BYTES];
    for piece in 0..PIECES {
        let source = vec![piece as u8; PIECE_BYTES];
        let mut done = 0;
        while done < source.len() {
            let left = &source[done..];
            let sent = socket::send(&here, left, SendFlags::empty(), Hint::Nontemporal, support)?;
            there.read_exact(&mut read_back[..sent])?;
            if read_back[..sent] != left[..sent] {
                return Err("a byte is wrong".into());
            }
            done += sent;
        }
        total += done;
    }
    println!("sent {total} bytes");
    for (name, bytes) in counters()?.since(&before)?.named() {
        println!("{name} {bytes}");
    }
    Ok(())
}
