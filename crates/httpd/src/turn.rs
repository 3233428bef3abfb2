//! Turns of a worker's connections: one that always has something to do keeps no other waiting.

/// Bytes that a connection moves before it is another's turn, whether or not they are content.
pub const TURN_BYTES: u64 = 4 << 20;

/// What a connection has moved in its turn.
#[derive(Debug, Default)]
pub struct Turn(u64);

impl Turn {
    /// So many bytes more; waits for the others once it is their turn.
    pub async fn moved(&mut self, bytes: u64) {
        self.0 += bytes;
        if self.0 >= TURN_BYTES {
            self.0 = 0;
            tokio::task::yield_now().await;
        }
    }
}
