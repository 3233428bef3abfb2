//! Answers, from what is known to what is sent.

use std::ops::Range;
use std::sync::Arc;

use httpd::{Reply, http_date};

use crate::send::Body;
use crate::store::{CONDITION, Object, Stored};

/// What is sent. Bodies that are only made for it are in `head`.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: Vec<u8>,
    /// Body bytes in `head`.
    pub in_head: u64,
    pub body: Option<Body>,
    pub keep_alive: bool,
}

/// Whom an answer is for.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// It was a HEAD: the answer has no body.
    pub is_head: bool,
    pub keep_alive: bool,
}

impl Asked {
    fn short(self, status: u16, reply: Reply, body: &[u8]) -> Answer {
        let in_head = if self.is_head { 0 } else { body.len() as u64 };
        let head = reply.end_with(body, self.is_head);
        Answer { status, head, in_head, body: None, keep_alive: self.keep_alive }
    }

    fn headed(self, status: u16, reply: Reply) -> Answer {
        let (head, keep_alive) = (reply.end(), self.keep_alive);
        Answer { status, head, in_head: 0, body: None, keep_alive }
    }

    /// A status, 204 or 304, and nothing else.
    pub fn bare(self, status: u16) -> Answer {
        self.headed(status, Reply::new(status, self.keep_alive))
    }

    pub fn error(self, status: u16, why: &str) -> Answer {
        let mut reply = Reply::new(status, self.keep_alive);
        if status == 405 {
            reply.field("Allow", "GET, HEAD, PUT, DELETE");
        }
        if status == 503 {
            reply.field("Retry-After", 1);
        }
        reply.field("Content-Type", "application/json");
        let body = serde_json::json!({ "status": status, "error": why }).to_string();
        self.short(status, reply, (body + "\n").as_bytes())
    }

    pub fn page(self, kind: &str, body: &[u8]) -> Answer {
        let mut reply = Reply::new(200, self.keep_alive);
        reply.field("Content-Type", kind);
        reply.field("Cache-Control", "no-store");
        self.short(200, reply, body)
    }

    pub fn stored(self, stored: &Stored) -> Answer {
        let status = if stored.created { 201 } else { 204 };
        let mut reply = Reply::new(status, self.keep_alive);
        reply.field("ETag", &stored.etag);
        if stored.created {
            reply.field("Content-Length", 0);
        }
        self.headed(status, reply)
    }

    /// An object, or that it need not be sent.
    pub fn object(self, status: u16, range: Range<u64>, object: &Arc<Object>) -> Answer {
        if status == 412 {
            return self.error(412, CONDITION);
        }
        let meta = &object.meta;
        let mut reply = Reply::new(status, self.keep_alive);
        reply.field("ETag", meta.etag());
        reply.field("Last-Modified", http_date(meta.stored_at()));
        if status == 416 {
            reply.field("Content-Range", format_args!("bytes */{}", meta.bytes));
            reply.field("Content-Length", 0);
        }
        if matches!(status, 200 | 206) {
            let kind = Some(&*meta.content_type).filter(|kind| !kind.is_empty());
            reply.field("Accept-Ranges", "bytes");
            reply.field("Content-Type", kind.unwrap_or("application/octet-stream"));
            reply.field("Content-Length", range.end - range.start);
        }
        if status == 206 {
            let Range { start, end } = range;
            reply.field("Content-Range", format_args!("bytes {start}-{}/{}", end - 1, meta.bytes));
        }
        let mut answer = self.headed(status, reply);
        if !self.is_head && !range.is_empty() {
            answer.body = Some(Body { object: Arc::clone(object), range });
        }
        answer
    }
}
