use std::future::poll_fn;
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use httpd::Stream;

use super::*;

fn conn(socket: impl Into<std::os::fd::OwnedFd>) -> Conn {
    Conn::Plain(Stream::new(Arc::new(socket.into())).unwrap())
}

/// Otherwise the others of a worker wait for a body that is little else. The sink always has room:
/// what nobody reads of a UDP socket is lost.
#[tokio::test]
async fn framing_counts_in_a_turn() {
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sending = UdpSocket::bind("127.0.0.1:0").unwrap();
    sending.connect(nobody.local_addr().unwrap()).unwrap();
    let (source, _open) = UnixStream::pair().unwrap();
    let (mut sink, mut source) = (conn(sending), conn(source));
    let mut input = Input::default();
    input.bytes = b"1\r\nx\r\n".repeat(1 << 20);
    input.bytes.extend_from_slice(b"0\r\n\r\n");
    let (mut flow, mut pipes) = (Flow::new(), Pool::new(0, 0));
    flow.start(Framing::Chunked, true, false);
    let first = poll_fn(|cx| flow.poll_flow(cx, &mut source, &mut input, &mut sink, &mut pipes));
    assert_eq!(first.await.unwrap(), Pass::Again);
    assert!(flow.consumed < TURN_BYTES + OUT_BYTES as u64, "{}", flow.consumed);
    let rest = poll_fn(|cx| flow.poll_flow(cx, &mut source, &mut input, &mut sink, &mut pipes));
    assert_eq!(rest.await.unwrap(), Pass::Done);
    assert_eq!(flow.copied, 1 << 20);
}
