//! `/metrics`, in a thread of its own: one request a connection, and no thread waits for a slow one
//! but this thread.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::http::{Limits, Scanner, parse_request, reason};
use crate::metrics::{Counters, render};
use crate::net::Applied;

/// For the whole request, and again for the whole answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The listener; dropping it ends its thread.
#[derive(Debug)]
pub(super) struct MetricsListener {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsListener {
    pub(super) fn start(
        at: SocketAddr,
        counters: Vec<Arc<Counters>>,
        mode: Applied,
    ) -> io::Result<MetricsListener> {
        let listener = TcpListener::bind(at)?;
        let address = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&over);
        let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                if flag.load(Ordering::Acquire) {
                    break;
                }
                match stream {
                    Ok(mut stream) => {
                        let _ = serve(&mut stream, &counters, &mode);
                    }
                    // No descriptor left, most likely: not to be asked again at once.
                    Err(_) => std::thread::sleep(Duration::from_millis(100)),
                }
            }
        })?;
        Ok(MetricsListener { address, over, thread: Some(thread) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsListener {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // It waits in accept: a connection wakes it.
        let _ = TcpStream::connect_timeout(&self.address, PATIENCE);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(stream: &mut TcpStream, counters: &[Arc<Counters>], mode: &Applied) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let limits = Limits { head_bytes: 8 << 10, ..Limits::default() };
    let Some(head) = read_head(stream, &limits)? else { return Ok(()) };
    let (status, body) = match parse_request(&head, &limits) {
        Err(refusal) => (refusal.status, format!("{}\n", refusal.reason)),
        Ok(request) if request.target.path != "/metrics" => (404, "try /metrics\n".to_owned()),
        Ok(_) => (200, render(counters, mode)),
    };
    let head = format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: text/plain; version=0.0.4\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        reason(status),
        body.len(),
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// A complete head; `None` if there is none within the limits.
fn read_head(stream: &mut TcpStream, limits: &Limits) -> io::Result<Option<Vec<u8>>> {
    let (mut head, mut scanner, mut piece) = (Vec::new(), Scanner::default(), [0; 1024]);
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        let left = end.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        let bytes = stream.read(&mut piece)?;
        head.extend_from_slice(&piece[..bytes]);
        match scanner.find_end(&head, limits) {
            Ok(Some(end)) => {
                head.truncate(end);
                return Ok(Some(head));
            }
            Ok(None) if bytes > 0 => {}
            _ => return Ok(None),
        }
    }
}
