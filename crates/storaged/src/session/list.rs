//! A page of the list of objects.

use std::sync::Arc;

use percent_encoding::percent_decode_str;

use crate::answer::{Answer, Asked};
use crate::request::Request;
use crate::shared::{Work, Worker};
use crate::store::{Meta, Query, Store, StoreError};

/// Most objects of one page.
const LIST_MAX: usize = 1000;

pub(super) async fn list(worker: &Worker, asked: Asked, request: &Request) -> Answer {
    let query = match list_query(request.query.as_deref().unwrap_or_default()) {
        Ok(query) => query,
        Err(why) => return Asked { keep_alive: false, ..asked }.error(400, why),
    };
    let store = Arc::clone(&worker.shared.store);
    let listed = worker.shared.wait(Work::List, move || list_page(&store, &query)).await;
    worker.done(asked, listed, |json| asked.page("application/json", &json))
}

fn list_query(text: &str) -> Result<Query, &'static str> {
    let mut query = Query { prefix: String::new(), after: String::new(), limit: LIST_MAX };
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8();
        let value = value.map_err(|_| "the query is not UTF-8")?.into_owned();
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
    let (objects, more) = store.list(query)?;
    let next = objects.last().filter(|_| more).map(|(key, _)| key);
    let object = |(key, meta): &(String, Meta)| {
        serde_json::json!({
            "key": key,
            "bytes": meta.bytes,
            "etag": meta.etag(),
            "modified": httpd::http_date(meta.stored_at()),
        })
    };
    let objects: Vec<_> = objects.iter().map(object).collect();
    let json = serde_json::json!({ "objects": objects, "next": next }).to_string();
    Ok((json + "\n").into_bytes())
}
