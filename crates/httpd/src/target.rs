//! Request targets and authorities, by RFC 9112, 3.2, and RFC 3986.
//!
//! Where authority, path and query end is said here and nowhere else. An authority is held to the
//! grammar. A path and a query may have any visible ASCII but `#`: browsers send more than the
//! grammar has, and no delimiter is among it.

use std::net::Ipv6Addr;

/// A request's target in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'b> {
    /// Host and port of an absolute target.
    pub authority: Option<&'b str>,
    /// Begins with a slash, or is `*` of OPTIONS, or all that a CONNECT names; `/` where an absolute
    /// target has none.
    pub path: &'b str,
    /// With its question mark; empty if there is none.
    pub query: &'b str,
}

/// Takes the target of a request with that method apart.
pub fn parse_target<'b>(method: &str, target: &'b str) -> Result<Target<'b>, &'static str> {
    if !target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        return Err("a byte that a target can't have");
    }
    if target == "*" && method == "OPTIONS" {
        return Ok(Target { authority: None, path: "*", query: "" });
    }
    // No server here is a tunnel: who is asked for one refuses it.
    if target.starts_with('/') || method == "CONNECT" {
        let (path, query) = split_query(target);
        return Ok(Target { authority: None, path, query });
    }
    absolute(method, target)
}

fn absolute<'b>(method: &str, target: &'b str) -> Result<Target<'b>, &'static str> {
    let (scheme, rest) = target.split_once("://").ok_or("malformed target")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err("a scheme besides http and https");
    }
    let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let authority = Some(parse_authority(authority.as_bytes())?);
    let (path, query) = split_query(rest);
    let path = match (path, query) {
        // RFC 9112, 3.2.4.
        ("", "") if method == "OPTIONS" => "*",
        ("", _) => "/",
        (path, _) => path,
    };
    Ok(Target { authority, path, query })
}

fn split_query(target: &str) -> (&str, &str) {
    target.split_at(target.find('?').unwrap_or(target.len()))
}

/// A host and perhaps a port: the value of a Host line, or what an absolute target has. A user is
/// refused, and so is a comma, which the grammar lets a name have: two lines of Host that somebody
/// joined look like that. Of what the grammar lets stand in brackets, there are IPv6 addresses alone.
pub fn parse_authority(value: &[u8]) -> Result<&str, &'static str> {
    let text = str::from_utf8(value).map_err(|_| "malformed host")?;
    let (is_host, rest) = match text.strip_prefix('[') {
        Some(literal) => {
            let (inside, rest) = literal.split_once(']').ok_or("a bracket that is not closed")?;
            (inside.parse::<Ipv6Addr>().is_ok(), rest)
        }
        None => {
            let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
            (is_name(name), rest)
        }
    };
    match rest.strip_prefix(':') {
        _ if text.is_empty() => Err("an empty host"),
        _ if !is_host => Err("malformed host"),
        None if rest.is_empty() => Ok(text),
        Some(port) if is_port(port) => Ok(text),
        _ => Err("malformed port"),
    }
}

/// What wraps round in 16 bits is another port to another program.
fn is_port(port: &str) -> bool {
    port.bytes().all(|byte| byte.is_ascii_digit())
        && (port.is_empty() || port.parse::<u16>().is_ok())
}

/// Whether all of it is unreserved characters, sub-delimiters, one of `more`, and percent signs with two
/// digits each, by RFC 3986.
pub fn is_spelled(text: &[u8], more: &[u8]) -> bool {
    let is_plain = |byte: &u8| {
        byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(byte) || more.contains(byte)
    };
    let mut parts = text.split(|byte| *byte == b'%');
    let first = parts.next().unwrap_or_default();
    first.iter().all(is_plain)
        && parts.all(|part| {
            let (encoded, rest) = part.split_at(part.len().min(2));
            encoded.len() == 2
                && encoded.iter().all(u8::is_ascii_hexdigit)
                && rest.iter().all(is_plain)
        })
}

/// A registered name or an IPv4 address, which has the same characters.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(',') && is_spelled(name.as_bytes(), b"")
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
