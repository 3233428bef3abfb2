//! Request targets and hosts, by the grammar of RFC 3986 and RFC 9112, 3.2: what another program on
//! the way could split elsewhere is refused.

use std::net::Ipv6Addr;

/// `path[?query]`, out of the origin form or the absolute form; `None` if it is neither.
pub fn split(target: &str) -> Option<(&str, Option<&str>)> {
    let rest = match target.get(..7) {
        Some(scheme) if scheme.eq_ignore_ascii_case("http://") => {
            let rest = &target[7..];
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, rest) = rest.split_at(end);
            if !is_host(authority) {
                return None;
            }
            rest
        }
        _ if target.starts_with('/') => target,
        _ => return None,
    };
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    let is_good = consists_of(path, |byte| is_pchar(byte) || byte == b'/')
        && query.is_none_or(|query| consists_of(query, |b| is_pchar(b) || b"/?".contains(&b)));
    // An absolute target without a path means the root.
    is_good.then_some((if path.is_empty() { "/" } else { path }, query))
}

/// `uri-host [":" port]`, with a host in it.
pub fn is_host(text: &str) -> bool {
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => match inner.split_once(']') {
            Some((literal, rest)) => (is_ip_literal(literal), rest),
            None => return false,
        },
        None => {
            let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
            (!name.is_empty() && consists_of(name, is_name_byte), rest)
        }
    };
    let port = rest.strip_prefix(':').unwrap_or_default();
    let is_port = rest.is_empty()
        || rest.starts_with(':')
            && port.bytes().all(|byte| byte.is_ascii_digit())
            && (port.is_empty() || port.parse::<u16>().is_ok());
    host && is_port
}

/// What stands in brackets: IPv6, or a version of IP that is to come.
fn is_ip_literal(text: &str) -> bool {
    let Some(future) = text.strip_prefix(['v', 'V']) else {
        return text.parse::<Ipv6Addr>().is_ok();
    };
    future.split_once('.').is_some_and(|(version, address)| {
        !version.is_empty()
            && version.bytes().all(|byte| byte.is_ascii_hexdigit())
            && !address.is_empty()
            && address.bytes().all(|byte| is_name_byte(byte) || byte == b':')
    })
}

/// `unreserved` and `sub-delims`.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}

fn is_pchar(byte: u8) -> bool {
    is_name_byte(byte) || b":@".contains(&byte)
}

/// These bytes, and percent signs with two hexadecimal digits.
fn consists_of(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    let mut bytes = text.bytes();
    let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
    while let Some(byte) = bytes.next() {
        let is_good = match byte {
            b'%' => is_digit(bytes.next()) && is_digit(bytes.next()),
            byte => allowed(byte),
        };
        if !is_good {
            return false;
        }
    }
    true
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
