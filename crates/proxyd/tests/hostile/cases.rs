//! The cases, and what makes a request plain.

/// What is hidden behind a case: whoever takes it for a request has lost count.
const HIDDEN: &str = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";

/// A case.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    pub bytes: Vec<u8>,
    /// proxyd refuses it: the RFCs leave no choice, or leave one that two programs make differently.
    pub refused_here: bool,
}

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

struct Cases(Vec<Case>);

impl Cases {
    fn add(&mut self, refused_here: bool, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        let (name, bytes) = (name.into(), bytes.into());
        self.0.push(Case { name, bytes, refused_here });
    }

    /// A head with these lines, and what is hidden behind it.
    fn head(&mut self, refused_here: bool, name: &str, lines: &str) {
        let bytes = format!("GET /p HTTP/1.1\r\nHost: h\r\n{lines}Connection: close\r\n\r\n");
        self.add(refused_here, name, bytes);
    }

    /// A POST with these lines about its body, and that body.
    fn post(&mut self, refused_here: bool, lines: &str, body: &str) {
        let head = format!("POST /p HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{lines}\r\n\r\n");
        let name = format!("{} / {}", lines.escape_default(), body.escape_default());
        self.add(refused_here, name, head + body + if refused_here { HIDDEN } else { "" });
    }
}

/// All of them.
pub fn all() -> Vec<Case> {
    let mut cases = Cases(Vec::new());
    good(&mut cases);
    framing(&mut cases);
    chunks(&mut cases);
    bytes_in_names_and_values(&mut cases);
    request_lines(&mut cases);
    hosts_and_targets(&mut cases);
    lines(&mut cases);
    cases.0
}

/// What must get through.
fn good(cases: &mut Cases) {
    for method in ["GET", "HEAD", "OPTIONS", "DELETE"] {
        let head = format!("{method} /p HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        cases.add(false, format!("good {method}"), head);
    }
    for (lines, body) in [
        ("Content-Length: 5", "hello"),
        ("Content-Length: 0", ""),
        ("content-LENGTH:   5  ", "hello"),
        ("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"),
        ("Transfer-Encoding: Chunked", "5\r\nhello\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked", "05\r\nhello\r\n000\r\n\r\n"),
        ("Transfer-Encoding: chunked", "5;a=b\r\nhello\r\n0\r\nT: x\r\n\r\n"),
        ("Transfer-Encoding: chunked", "5;a=\"b;c\"\r\nhello\r\n0\r\n\r\n"),
    ] {
        cases.post(false, lines, body);
    }
    for line in [
        "X: \u{e4}\r\n",
        "X:\r\n",
        "X: a\tb\r\n",
        "X-1.2_3: a\r\n",
        "Cookie: a=\"b\"\r\n",
        "Connection: X-A\r\nX-A: 1\r\n",
        "Upgrade: h2c\r\nConnection: Upgrade\r\n",
        "TE: trailers\r\n",
        "Expect: 100-continue\r\n",
        "Via: 1.1 a\r\n",
        "Connection: Host, Content-Length, Transfer-Encoding\r\n",
        "Proxy: http://a/\r\n",
        "X-Forwarded-For: 1.2.3.4\r\n",
        "Max-Forwards: 0\r\n",
    ] {
        cases.head(false, line, line);
    }
}

fn framing(cases: &mut Cases) {
    let chunked = "0\r\n\r\n";
    for length in [
        "5, 5",
        "5,6",
        "+5",
        "-5",
        "0x5",
        "5 5",
        "",
        " ",
        "5;",
        "5.0",
        "5e0",
        "05x",
        "\u{665}",
        "9223372036854775808",
        "18446744073709551616",
        "18446744073709551621",
        "5\t5",
        "NaN",
        "'5'",
        "\"5\"",
        "5,",
        ",5",
        "1_0",
        "0b1",
        "٥",
    ] {
        cases.post(true, &format!("Content-Length: {length}"), "hello");
    }
    for lines in [
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 6\r\ncontent-length: 5",
        "Content-Length : 5",
        "Content-Length\t: 5",
        "Content-Length:5\r\n 0",
        "\tContent-Length: 5",
        " Content-Length: 5",
        "X: y\r\n Content-Length: 5",
        "Content-Length\r\n: 5",
        "Content-Length;: 5",
        "Content-Length\u{b}: 5",
    ] {
        cases.post(true, lines, "hello");
    }
    for coding in [
        "chunked, identity",
        "identity, chunked",
        "identity",
        "chunked, chunked",
        "gzip, chunked",
        "gzip",
        "xchunked",
        "chunkedx",
        "x",
        "",
        "chunked;q=1",
        "chunked; a=b",
        "\"chunked\"",
        "'chunked'",
        "chunked,",
        ",chunked",
        "chunked\u{b}",
        "\u{b}chunked",
        "chunked\u{c}",
        "chunked\u{a0}",
        "c\u{125}unked",
        "chunked chunked",
        "chunked\u{1}",
        "chunk\u{0}ed",
        "cHuNkEd, ",
        "compress",
        "deflate, chunked",
        "trailers",
        "0",
        "[chunked]",
    ] {
        cases.post(true, &format!("Transfer-Encoding: {coding}"), chunked);
    }
    for lines in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding\t: chunked",
        "Transfer-Encoding\r\n: chunked",
        "Transfer-Encoding:\r\n chunked",
        "Transfer-Encoding:\n chunked",
        " Transfer-Encoding: chunked",
        "X: y\r\n Transfer-Encoding: chunked",
        "X: y\nTransfer-Encoding: chunked",
        "X: y\rTransfer-Encoding: chunked",
        "X: y\r\rTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r",
        "Transfer-Encoding\u{0}: chunked",
        "Transfer\u{0}-Encoding: chunked",
        "Content-Length: 5\r\nTransfer-Encoding: xchunked",
        "Content-Length: 5\r\nTransfer-Encoding:",
        "Content-Length: 5\r\n Transfer-Encoding: chunked",
        "Content-Length: 5\r\nTransfer-Encoding\u{b}: chunked",
    ] {
        cases.post(true, lines, chunked);
    }
    // Which CGI folds: to be dropped, at least.
    for lines in ["Transfer_Encoding: chunked", "Content_Length: 5", "Content.Length: 5"] {
        cases.post(false, lines, "");
    }
    let old = format!(
        "POST /p HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}{HIDDEN}"
    );
    cases.add(true, "a coding in HTTP/1.0", old);
}

fn chunks(cases: &mut Cases) {
    for body in [
        "5 \r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "\t5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "5h\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhell\r\n0\r\n\r\n",
        "5\r\nhelloo\r\n0\r\n\r\n",
        "5\r\rhello\r\n0\r\n\r\n",
        "5\r\nhello\r\r0\r\n\r\n",
        "\r\n0\r\n\r\n",
        "\r\n5\r\nhello\r\n0\r\n\r\n",
        ";\r\n0\r\n\r\n",
        ";a=b\r\n0\r\n\r\n",
        "5;\nx\r\nhello\r\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "5;\rx\r\nhello\r\n0\r\n\r\n",
        "5;a=\"b\r\nhello\r\n0\r\n\r\n",
        "5;a=\"\\\"\r\nhello\r\n0\r\n\r\n",
        "5;\u{0}\r\nhello\r\n0\r\n\r\n",
        "5;\u{1}\r\nhello\r\n0\r\n\r\n",
        "5\u{b}\r\nhello\r\n0\r\n\r\n",
        "10000000000000005\r\nhello\r\n0\r\n\r\n",
        "fffffffffffffffb\r\nhello\r\n0\r\n\r\n",
        "5_0\r\nhello\r\n0\r\n\r\n",
        "5,\r\nhello\r\n0\r\n\r\n",
        "\"5\"\r\nhello\r\n0\r\n\r\n",
        "0\r\nX\r\n\r\n",
        "0\r\n X: y\r\n\r\n",
        "0\r\nX : y\r\n\r\n",
        "0\r\nX: y\n\r\n",
        "0\r\n: y\r\n\r\n",
        "0\n\r\n",
        "0\r\n\n",
        "0\r\rX",
        "0\r\nX: a\u{0}b\r\n\r\n",
        "5\r\nhello\r\n-0\r\n\r\n",
        "5\r\nhello\r\n0 \r\n\r\n",
        "5\r\nhello\r\n0x0\r\n\r\n",
    ] {
        cases.post(true, "Transfer-Encoding: chunked", body);
    }
}

fn bytes_in_names_and_values(cases: &mut Cases) {
    for byte in (0..=0x20).chain([
        0x7f, b'"', b'(', b')', b',', b'/', b';', b'<', b'=', b'>', b'?', b'@', b'[', b'\\', b']',
        b'{', b'}', 0x80, 0xff,
    ]) {
        let mut head = b"GET /p HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-".to_vec();
        head.push(byte);
        head.extend(b"Y: z\r\n\r\n");
        head.extend(HIDDEN.as_bytes());
        cases.add(true, format!("{byte:#04x} in a name"), head);
    }
    for byte in (0..0x20_u8).filter(|byte| *byte != b'\t').chain([0x7f]) {
        let mut head = b"GET /p HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX: y".to_vec();
        head.push(byte);
        head.extend(b"z\r\n\r\n");
        cases.add(matches!(byte, 0 | b'\r' | b'\n'), format!("{byte:#04x} in a value"), head);
    }
}

fn request_lines(cases: &mut Cases) {
    for line in [
        "GET  /p HTTP/1.1",
        "GET /p  HTTP/1.1",
        "GET\t/p HTTP/1.1",
        "GET /p\tHTTP/1.1",
        " GET /p HTTP/1.1",
        "GET /p HTTP/1.1 ",
        "GET /p",
        "GET",
        "/p HTTP/1.1",
        "GET /p HTTP/1.1 x",
        "GET /a b HTTP/1.1",
        "GET /p HTTP/2.0",
        "GET /p HTTP/1.2",
        "GET /p HTTP/1.10",
        "GET /p HTTP/01.1",
        "GET /p http/1.1",
        "GET /p HTTP/1",
        "GET /p HTTP/1.",
        "GET /p HTTP/.1",
        "GET /p HTTP/1.1\u{0}",
        "GET /p HTTPS/1.1",
        "G\u{0}T /p HTTP/1.1",
        "G(T /p HTTP/1.1",
        "GE\u{e4} /p HTTP/1.1",
        "GET /\u{0} HTTP/1.1",
        "GET /\u{1} HTTP/1.1",
        "GET /\u{7f} HTTP/1.1",
        "GET /p#f HTTP/1.1",
        "PRI * HTTP/2.0",
        "CONNECT h:80 HTTP/1.1",
        "TRACE /p HTTP/1.1",
        "GET /p HTTP/1.1\rX",
        "GET /p HTTP/0.9",
        "GET /p HTTP/-1.1",
        "GET /p FTP/1.1",
        "GET /\u{e4} HTTP/1.1",
    ] {
        let head = format!("{line}\r\nHost: h\r\nConnection: close\r\n\r\n{HIDDEN}");
        cases.add(true, line.escape_default().to_string(), head);
    }
    for (name, head) in [
        ("bare line feeds", format!("GET /p HTTP/1.1\nHost: h\n\n{HIDDEN}")),
        ("a bare line feed first", format!("GET /p HTTP/1.1\nHost: h\r\n\r\n{HIDDEN}")),
        ("a bare line feed last", format!("GET /p HTTP/1.1\r\nHost: h\r\n\n{HIDDEN}")),
        ("bare returns", format!("GET /p HTTP/1.1\rHost: h\r\r{HIDDEN}")),
        ("a line feed before", format!("\nGET /p HTTP/1.1\r\nHost: h\r\n\r\n{HIDDEN}")),
        ("TLS to a plain port", "\u{16}\u{3}\u{1}\u{0}\u{a5}\u{1}".to_owned()),
        ("nothing but nulls", "\u{0}".repeat(100)),
    ] {
        cases.add(true, name, head);
    }
}

fn hosts_and_targets(cases: &mut Cases) {
    for host in [
        "Host: h\r\nHost: h",
        "Host: h\r\nHost: i",
        "Host: h, i",
        "Host: h i",
        "Host: u@h",
        "Host: h/p",
        "Host: h\\i",
        "Host: h?x",
        "Host: h#x",
        "Host: \u{e4}",
        "Host : h",
        "host\t: h",
        "Host: h\u{1}",
        "X: y",
        " Host: h",
        "Host: h\r\n i",
        "Host: \"h\"",
        "Host: <h>",
        "Host: {h}",
        "Host: h|i",
        "Host: h^",
    ] {
        let head = format!("GET /p HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n{HIDDEN}");
        cases.add(true, host.escape_default().to_string(), head);
    }
    for target in [
        "http://u@h/",
        "http:///p",
        "ftp://h/p",
        "h:80",
        "*",
        "?q",
        "//",
        "http://h\\i/",
        "http://h i/",
        "http://\u{e4}/",
        "javascript:0",
        "p",
        "../p",
    ] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        cases.add(target != "//", format!("target {}", target.escape_default()), head);
    }
    for target in
        ["http://i/p", "HTTP://i/p?q", "http://i", "/p?http://x/", "/p//q", "/%00", "/a%2f..%2fb"]
    {
        let head = format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        cases.add(false, format!("target {target}"), head);
    }
}

fn lines(cases: &mut Cases) {
    for lines in [
        "X: a\r\n folded\r\n",
        "X: a\r\n\tfolded\r\n",
        "no colon\r\n",
        ": no name\r\n",
        "X : y\r\n",
        "X\t: y\r\n",
        "X: a\nY: b\r\n",
        "X: a\rY: b\r\n",
        "X: a\r\r\nY: b\r\n",
        "\u{e4}: y\r\n",
        "X Y: z\r\n",
    ] {
        cases.head(true, lines, lines);
    }
    cases.head(true, "an unknown expectation", "Expect: 200-ok\r\n");
    let many = "X: y\r\n".repeat(2000);
    cases.head(true, "2000 lines", &many);
    let long = format!("X: {}\r\n", "y".repeat(100_000));
    cases.head(true, "a line of 100 kB", &long);
    cases.add(
        true,
        "a target of 100 kB",
        format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "p".repeat(100_000)),
    );
}
