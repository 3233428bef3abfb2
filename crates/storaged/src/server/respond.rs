//! Answers, from what is known to what is sent.

use std::ops::Range;
use std::sync::Arc;

use super::plan::Plan;
use crate::http::{Clock, Head, Method, error_body, response::http_date};
use crate::send::Body;
use crate::store::condition::etag;
use crate::store::format::Meta;
use crate::store::{ErrorKind, Object, StoreError, Stored};

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Head, and with it bodies that are only made for it.
    pub head: Vec<u8>,
    /// Body bytes in `head`.
    pub in_head: usize,
    pub body: Body,
    pub keep_alive: bool,
}

impl Answer {
    fn of(status: u16, head: Vec<u8>, in_head: usize, keep_alive: bool) -> Answer {
        Answer { status, head, in_head, body: Body::None, keep_alive }
    }
}

pub fn error(
    status: u16,
    why: &str,
    method: Option<Method>,
    keep_alive: bool,
    clock: &mut Clock,
) -> Answer {
    let mut body = error_body(status, why);
    let mut head = Head::new(status, keep_alive, clock);
    if status == 405 {
        head.field("Allow", "GET, HEAD, PUT, DELETE");
    }
    if status == 503 {
        head.field("Retry-After", 1);
    }
    head.field("Content-Type", "application/json");
    head.field("Content-Length", body.len());
    if method == Some(Method::Head) {
        body.clear();
    }
    let in_head = body.len();
    Answer::of(status, head.end(&body), in_head, keep_alive)
}

const CONDITION: &str = "the object is not the one that the condition names";

/// The status for an error of the store, and the text that a client gets: it says nothing about
/// the machine's paths.
pub fn store_error(error: &StoreError) -> (u16, &'static str) {
    match error.kind() {
        ErrorKind::NotFound => (404, "no such object"),
        ErrorKind::Condition => (412, CONDITION),
        ErrorKind::Corrupt => (500, "the object is damaged, and was not sent"),
        ErrorKind::Full => (507, "there is no room for the object"),
        ErrorKind::Busy => (503, "out of descriptors or memory; try again"),
        ErrorKind::Failed => (500, "the disk, or something else, failed"),
    }
}

pub fn page(
    kind: &str,
    mut body: Vec<u8>,
    method: Method,
    keep: bool,
    clock: &mut Clock,
) -> Answer {
    let mut head = Head::new(200, keep, clock);
    head.field("Content-Type", kind);
    head.field("Content-Length", body.len());
    head.field("Cache-Control", "no-store");
    if method == Method::Head {
        body.clear();
    }
    let in_head = body.len();
    Answer::of(200, head.end(&body), in_head, keep)
}

/// The client has the page.
pub fn known(keep_alive: bool, clock: &mut Clock) -> Answer {
    Answer::of(304, Head::new(304, keep_alive, clock).end(&[]), 0, keep_alive)
}

pub fn stored(stored: &Stored, keep_alive: bool, clock: &mut Clock) -> Answer {
    let status = if stored.created { 201 } else { 204 };
    let mut head = Head::new(status, keep_alive, clock);
    head.field("ETag", etag(&stored.digest));
    if stored.created {
        head.field("Content-Length", 0);
    }
    Answer::of(status, head.end(&[]), 0, keep_alive)
}

pub fn deleted(keep_alive: bool, clock: &mut Clock) -> Answer {
    Answer::of(204, Head::new(204, keep_alive, clock).end(&[]), 0, keep_alive)
}

/// An object, or that it need not be sent.
pub fn object(
    plan: &Plan,
    object: &Arc<Object>,
    method: Method,
    keep_alive: bool,
    clock: &mut Clock,
) -> Answer {
    if plan.status == 412 {
        return error(412, CONDITION, Some(method), keep_alive, clock);
    }
    let meta = object.meta();
    let mut head = Head::new(plan.status, keep_alive, clock);
    head.field("ETag", &plan.etag);
    head.field("Last-Modified", http_date(meta.stored_at()));
    if plan.status == 416 {
        head.field("Content-Range", format_args!("bytes */{}", meta.bytes));
        head.field("Content-Length", 0);
    }
    if matches!(plan.status, 200 | 206) {
        describe(&mut head, plan, meta);
    }
    let mut answer = Answer::of(plan.status, head.end(&[]), 0, keep_alive);
    if method == Method::Get && !plan.range.is_empty() {
        answer.body = Body::File(Arc::clone(object), plan.range.clone());
    }
    answer
}

fn describe(head: &mut Head, plan: &Plan, meta: &Meta) {
    head.field("Accept-Ranges", "bytes");
    let kind = match &*meta.content_type {
        "" => "application/octet-stream",
        kind => kind,
    };
    head.field("Content-Type", kind);
    if plan.status == 206 {
        let Range { start, end } = plan.range;
        head.field("Content-Range", format_args!("bytes {start}-{}/{}", end - 1, meta.bytes));
    }
    head.field("Content-Length", plan.range.end - plan.range.start);
}
