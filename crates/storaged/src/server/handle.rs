//! Makes a request's answer, by way of the threads that wait for the disk where need be.

use std::sync::Arc;

use super::admin;
use super::connection::{Connection, Context, InFlight};
use super::plan::{Plan, plan};
use super::respond;
use super::shared::{Outcome, Work};
use super::upload::Incoming;
use crate::http::{Framing, Method, Request, response::http_date};
use crate::key::{Key, percent_decode};
use crate::store::condition::{Current, Verdict, etag};
use crate::store::{ErrorKind, Object, Query, Store, StoreError, Verify};

/// Most objects of one page of a list.
const LIST_MAX: usize = 1000;

impl Connection {
    pub(super) fn start(&mut self, request: Box<Request>, ctx: &mut Context<'_>) {
        self.in_flight = Some(InFlight {
            method: Some(request.method),
            path: request.path.clone(),
            reader: request.reader,
            keep_alive: request.keep_alive && !ctx.draining,
            expects_continue: request.expects_continue,
            started: ctx.now,
        });
        self.wait_for_job();
        if request.method != Method::Put && !request.framing.is_done() {
            return self.refuse(400, "only a PUT has a body here", ctx);
        }
        let read = matches!(request.method, Method::Get | Method::Head);
        let is_page = matches!(&*request.path, "/_/stat" | "/metrics" | "/");
        if read && is_page && !request.conditions.is_empty() && !self.conditions_hold(&request, ctx)
        {
            return;
        }
        match &*request.path {
            "/_/stat" if read => return self.page(admin::stat(ctx.shared), ctx),
            "/metrics" if read && self.admin => return self.page(admin::metrics(ctx.shared), ctx),
            _ if self.admin => return self.refuse(404, "here are /metrics and /_/stat", ctx),
            "/" if read => return self.list(&request, ctx),
            _ => {}
        }
        // Part of an upload, a list of versions: elsewhere a query says what is to be changed.
        if !read && request.query.is_some() {
            return self.refuse(400, "a PUT or a DELETE here has no query", ctx);
        }
        match Key::from_target(&request.path) {
            Err(error) => self.refuse(400, &error.to_string(), ctx),
            Ok(key) => match request.method {
                Method::Get | Method::Head => self.get(key, request, ctx),
                Method::Put => self.put(key, *request, ctx),
                Method::Delete => self.delete(key, *request, ctx),
            },
        }
    }

    /// Answers for a page whose conditions do not hold: it has neither a tag nor a date.
    fn conditions_hold(&mut self, request: &Request, ctx: &mut Context<'_>) -> bool {
        match request.conditions.judge(&Current::Something(None)) {
            Verdict::Hold => return true,
            Verdict::Fail => {
                let error = StoreError::Condition { key: request.path.clone() };
                self.fail(&error, self.keep_alive(), ctx);
            }
            Verdict::Known => {
                let answer = respond::known(self.keep_alive(), ctx.clock);
                self.answer(answer, ctx);
            }
        }
        false
    }

    pub fn deliver(&mut self, outcome: Outcome, ctx: &mut Context<'_>) -> bool {
        if !self.is_waiting_for_job() {
            return true;
        }
        match outcome {
            Outcome::Ready(request, Ok(object)) => {
                let plan = plan(&request, object.meta());
                self.object(&plan, &object, ctx);
            }
            Outcome::Begun(Ok(incoming)) => return self.take_body(incoming, ctx),
            Outcome::Stored(Ok(stored)) => {
                let answer = respond::stored(&stored, self.keep_alive(), ctx.clock);
                self.answer(answer, ctx);
            }
            Outcome::Deleted(Ok(())) => {
                let answer = respond::deleted(self.keep_alive(), ctx.clock);
                self.answer(answer, ctx);
            }
            Outcome::Listed(Ok(json)) => self.page(("application/json", json), ctx),
            // The body has not been read: the connection ends with the answer.
            Outcome::Begun(Err(error)) => self.refuse_for(&error, ctx),
            Outcome::Ready(_, Err(error))
            | Outcome::Stored(Err(error))
            | Outcome::Deleted(Err(error))
            | Outcome::Listed(Err(error)) => self.fail(&error, self.keep_alive(), ctx),
            Outcome::Broken => self.refuse(500, "this request met a mistake of the daemon's", ctx),
        }
        true
    }

    fn get(&mut self, key: Key, request: Box<Request>, ctx: &mut Context<'_>) {
        let verify = ctx.tunables.verify;
        if let Some(object) = ctx.shared.store.cached(&key) {
            let plan = plan(&request, object.meta());
            if is_ready(&plan, &object, request.method, verify) {
                ctx.counters.hits.up();
                return self.object(&plan, &object, ctx);
            }
        }
        ctx.counters.misses.up();
        let store = Arc::clone(&ctx.shared.store);
        ctx.shared.submit((Work::Read, ctx.worker), ctx.id, move || {
            let result = store.get(&key).and_then(|object| {
                let plan = plan(&request, object.meta());
                if !is_ready(&plan, &object, request.method, verify) {
                    object.verify(&plan.range, verify)?;
                }
                Ok(object)
            });
            Outcome::Ready(request, result)
        });
    }

    fn put(&mut self, key: Key, request: Request, ctx: &mut Context<'_>) {
        let limit_bytes = ctx.tunables.object_max;
        let length = match request.framing {
            Framing::Length(bytes) => Some(bytes),
            Framing::Chunked(_) => None,
        };
        if length.is_some_and(|bytes| bytes > limit_bytes) {
            return self.refuse(413, "the object is too large (see --object-max)", ctx);
        }
        let store = Arc::clone(&ctx.shared.store);
        ctx.shared.submit((Work::Read, ctx.worker), ctx.id, move || {
            let Request { framing, conditions, content_type, .. } = request;
            // Looked at again when the object gets its name; this saves sending a body in vain.
            let upload = match conditions.is_empty() {
                true => store.put(&key, &content_type, length),
                false => store
                    .check(&key, &conditions)
                    .and_then(|_| store.put(&key, &content_type, length)),
            };
            Outcome::Begun(
                upload.map(|upload| {
                    Box::new(Incoming::new(framing, upload, conditions, limit_bytes))
                }),
            )
        });
    }

    /// The body is here; what is left takes the disk's time.
    pub(super) fn commit(&mut self, incoming: Incoming, ctx: &mut Context<'_>) {
        self.wait_for_job();
        let kind = if incoming.makes_folders() { Work::Folders } else { Work::Sync };
        ctx.shared.submit((kind, ctx.worker), ctx.id, move || {
            let (upload, conditions) = incoming.into_parts();
            Outcome::Stored(upload.commit(&conditions))
        });
    }

    fn delete(&mut self, key: Key, request: Request, ctx: &mut Context<'_>) {
        let store = Arc::clone(&ctx.shared.store);
        ctx.shared.submit((Work::Sync, ctx.worker), ctx.id, move || {
            Outcome::Deleted(store.delete(&key, &request.conditions))
        });
    }

    fn list(&mut self, request: &Request, ctx: &mut Context<'_>) {
        let query = match list_query(request.query.as_deref().unwrap_or_default()) {
            Ok(query) => query,
            Err(why) => return self.refuse(400, why, ctx),
        };
        let store = Arc::clone(&ctx.shared.store);
        ctx.shared.submit((Work::Read, ctx.worker), ctx.id, move || {
            Outcome::Listed(list_page(&store, &query))
        });
    }

    fn object(&mut self, plan: &Plan, object: &Arc<Object>, ctx: &mut Context<'_>) {
        let answer = respond::object(plan, object, self.method(), self.keep_alive(), ctx.clock);
        self.answer(answer, ctx);
    }

    fn page(&mut self, page: (&str, Vec<u8>), ctx: &mut Context<'_>) {
        let answer = respond::page(page.0, page.1, self.method(), self.keep_alive(), ctx.clock);
        self.answer(answer, ctx);
    }

    /// An error of the store, with the rest of the request still to come.
    pub(super) fn refuse_for(&mut self, error: &StoreError, ctx: &mut Context<'_>) {
        self.fail(error, false, ctx);
    }

    fn fail(&mut self, error: &StoreError, keep_alive: bool, ctx: &mut Context<'_>) {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::Condition => tracing::debug!(%error),
            ErrorKind::Corrupt => {
                ctx.counters.corrupt.up();
                tracing::error!(%error, "a damaged object was asked for");
            }
            ErrorKind::Full | ErrorKind::Busy => tracing::warn!(%error),
            ErrorKind::Failed => tracing::error!(%error),
        }
        let (status, why) = respond::store_error(error);
        let answer = respond::error(status, why, Some(self.method()), keep_alive, ctx.clock);
        self.answer(answer, ctx);
    }

    fn method(&self) -> Method {
        self.in_flight.as_ref().and_then(|request| request.method).unwrap_or(Method::Get)
    }

    fn keep_alive(&self) -> bool {
        self.in_flight.as_ref().is_some_and(|request| request.keep_alive)
    }
}

/// Nothing more must be read to answer.
fn is_ready(plan: &Plan, object: &Object, method: Method, verify: Verify) -> bool {
    let body = method == Method::Get && !plan.range.is_empty();
    !body || object.is_verified(&plan.range, verify)
}

fn list_query(text: &str) -> Result<Query, &'static str> {
    let mut query = Query { prefix: String::new(), after: String::new(), limit: LIST_MAX };
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode(value).map_err(|_| "the query is not percent-encoded UTF-8")?;
        match name {
            "prefix" => query.prefix = value,
            "after" => query.after = value,
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=LIST_MAX).contains(limit));
                query.limit = limit.ok_or("limit is a number, 1 to 1000")?;
            }
            _ => return Err("the query has prefix, after and limit, and nothing else"),
        }
    }
    Ok(query)
}

fn list_page(store: &Store, query: &Query) -> Result<Vec<u8>, StoreError> {
    let page = store.list(query)?;
    let mut objects = Vec::with_capacity(page.keys.len());
    for key in &page.keys {
        match store.peek(key) {
            Ok(object) => {
                let meta = object.meta();
                let stored_at = meta.stored_at();
                objects.push(serde_json::json!({
                    "key": meta.key,
                    "bytes": meta.bytes,
                    "etag": etag(&meta.digest),
                    "modified": http_date(stored_at),
                }));
            }
            // Deleted since the folder was read.
            Err(StoreError::NotFound { .. }) => {}
            Err(StoreError::Corrupt { .. }) => {
                objects.push(serde_json::json!({ "key": key.as_str(), "damaged": true }));
            }
            Err(error) => return Err(error),
        }
    }
    let next = page.more.then(|| page.keys.last().map(Key::as_str));
    let mut json = serde_json::json!({ "objects": objects, "next": next }).to_string();
    json.push('\n');
    Ok(json.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_lists() {
        let query = |prefix: &str, after: &str, limit| {
            Ok(Query { prefix: prefix.to_owned(), after: after.to_owned(), limit })
        };
        for (text, expected) in [
            ("", query("", "", 1000)),
            ("prefix=a%2Fb&after=c&limit=7", query("a/b", "c", 7)),
            ("&prefix=&", query("", "", 1000)),
        ] {
            assert_eq!(list_query(text), expected, "{text:?}");
        }
        for bad in ["limit=0", "limit=1001", "limit=x", "prefix=%zz", "delimiter=/"] {
            assert!(list_query(bad).is_err(), "{bad:?}");
        }
    }
}
