//! Hostile requests, by RFC 9110 and 9112 and by what others have published of desynchronised
//! proxies; most of them are in `cases.txt`.

/// What is hidden behind a case: whoever takes it for a request has lost count.
const HIDDEN: &[u8] = b"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";
const HEAD: &str = "GET /p HTTP/1.1\\r\\nHost: h\\r\\nConnection: close\\r\\n";

#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    pub bytes: Vec<u8>,
    /// The RFCs leave no choice, or leave one that two programs make differently.
    pub refused: bool,
}

pub fn all() -> Vec<Case> {
    let (mut cases, mut form) = (Vec::new(), "");
    for line in include_str!("cases.txt").lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('\t') {
            Some(text) => cases.push(case(form, text)),
            None => form = line,
        }
    }
    let in_name = (0..=0x20).chain([0x7f, 0x80, 0xff]).chain(*b"\"(),/;<=>?@[\\]{}");
    cases.extend(
        in_name.map(|byte| case(&format!("-{HEAD}X-{{}}Y: z\\r\\n\\r\\n"), &escaped(byte))),
    );
    for byte in (0..0x20).filter(|byte| *byte != b'\t').chain([0x7f]) {
        let kind = if matches!(byte, 0 | b'\r' | b'\n') { '*' } else { '+' };
        cases.push(case(&format!("{kind}{HEAD}X: y{{}}z\\r\\n\\r\\n"), &escaped(byte)));
    }
    let long = "y".repeat(100_000);
    for lines in ["X: y\\r\\n".repeat(2000), format!("X: {long}\\r\\n")] {
        cases.push(case(&format!("*{HEAD}{{}}\\r\\n"), &lines));
    }
    cases.push(case("*GET /{} HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n", &long));
    cases.push(case("*{}", &escaped(0).repeat(100)));
    cases
}

fn escaped(byte: u8) -> String {
    format!("\\x{byte:02x}")
}

fn case(form: &str, text: &str) -> Case {
    let (kind, form) = form.split_at(1);
    let mut bytes = unescape(&form.replacen("{}", text, 1));
    if kind == "-" {
        bytes.extend(HIDDEN);
    }
    Case { name: format!("{form:.20} {text:.60}"), bytes, refused: kind != "+" }
}

fn unescape(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => match rest.next().unwrap() {
                b'r' => bytes.push(b'\r'),
                b'n' => bytes.push(b'\n'),
                b't' => bytes.push(b'\t'),
                b'\\' => bytes.push(b'\\'),
                b'x' => {
                    let digits: String = rest.by_ref().take(2).map(char::from).collect();
                    bytes.push(u8::from_str_radix(&digits, 16).unwrap());
                }
                other => assert_eq!(other, b'e', "{text}"),
            },
            plain => bytes.push(plain),
        }
    }
    bytes
}
