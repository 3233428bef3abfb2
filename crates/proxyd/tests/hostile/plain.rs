//! What makes a request plain, by code that is none of the proxy's.

/// Whether these bytes begin with a whole request, by any reading.
pub fn is_whole(bytes: &[u8]) -> bool {
    let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
    let body = &bytes[at + 4..];
    if head.contains("\r\ntransfer-encoding") {
        return body.ends_with(b"0\r\n\r\n");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    length.is_none_or(|length| length.trim().parse::<usize>().is_ok_and(|l| body.len() >= l))
}

/// Whether a backend that got these bytes, and no others, has one request that can be read in one
/// way: lines that end in CR LF, names that are tokens, one host, one statement about the body, a
/// body that is what it says, and nothing behind it.
pub fn is_plain(bytes: &[u8]) -> bool {
    let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let (head, body) = (&bytes[..at], &bytes[at + 4..]);
    let Ok(text) = std::str::from_utf8(head) else { return false };
    // RFC 9110, 5.5, lets other control characters pass.
    if head.contains(&0) || text.replace("\r\n", "").contains(['\r', '\n']) {
        return false;
    }
    let mut lines = text.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else { return false };
    let token = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    if !token(method) || target.is_empty() || !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return false;
    }
    let mut fields = Vec::new();
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { return false };
        if !token(name) {
            return false;
        }
        fields.push((name.to_ascii_lowercase(), value.trim()));
    }
    let all = |wanted: &str| -> Vec<&str> {
        fields.iter().filter(|(name, _)| name == wanted).map(|(_, value)| *value).collect()
    };
    // CGI folds them into the others.
    if fields.iter().any(|(name, _)| name == "content_length" || name == "transfer_encoding") {
        return false;
    }
    let framed = match (all("content-length").as_slice(), all("transfer-encoding").as_slice()) {
        ([], []) => body.is_empty(),
        ([length], []) => {
            length.bytes().all(|byte| byte.is_ascii_digit())
                && length.parse::<usize>().is_ok_and(|length| length == body.len())
        }
        // An empty element of a list is none (RFC 9110, 5.6.1).
        ([], [coding]) => {
            let mut codings = coding.split(',').map(str::trim).filter(|one| !one.is_empty());
            codings.next().is_some_and(|one| one.eq_ignore_ascii_case("chunked"))
                && codings.next().is_none()
                && dechunks(body)
        }
        _ => false,
    };
    framed && all("host").len() <= 1
}

/// Whether that is one strictly chunked body, and nothing more.
fn dechunks(mut body: &[u8]) -> bool {
    loop {
        let Some(end) = body.windows(2).position(|two| two == b"\r\n") else { return false };
        let Ok(line) = std::str::from_utf8(&body[..end]) else { return false };
        let digits = line.split(';').next().unwrap_or_default();
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit())
            || line.matches('"').count() % 2 != 0
        {
            return false;
        }
        let Ok(size) = usize::from_str_radix(digits, 16) else { return false };
        body = &body[end + 2..];
        if size == 0 {
            return body == b"\r\n" || (body.ends_with(b"\r\n\r\n") && body.contains(&b':'));
        }
        if body.get(size..size + 2) != Some(b"\r\n") {
            return false;
        }
        body = &body[size + 2..];
    }
}
