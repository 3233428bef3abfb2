//! The head of an HTTP response.

/// The most lines of one from a server that is measured.
const MOST_LINES: usize = 32;

/// Where a head ends, if it is whole: it has to be of status 200, with a body of this length.
pub fn response_end(bytes: &[u8], length: u64) -> Result<Option<usize>, String> {
    let mut lines = [httparse::EMPTY_HEADER; MOST_LINES];
    let mut response = httparse::Response::new(&mut lines);
    let end = match response.parse(bytes) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(format!("an answer that is not HTTP: {error}")),
    };
    if response.code != Some(200) {
        return Err(format!("an answer of status {}", response.code.unwrap_or(0)));
    }
    let mut lengths = response
        .headers
        .iter()
        .filter(|line| line.name.eq_ignore_ascii_case("content-length"))
        .map(|line| std::str::from_utf8(line.value).ok().and_then(|text| text.parse::<u64>().ok()));
    match lengths.next() {
        Some(Some(found)) if found == length => Ok(Some(end)),
        Some(Some(found)) => Err(format!("a body of {found} bytes, where {length} are due")),
        _ => Err("an answer without the length of its body".to_owned()),
    }
}
