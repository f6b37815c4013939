//! Splits a stream into requests.
//!
//! It parses only this much of the protocol: an array of bulk strings, or an inline line.
//! It is what makes "the next n requests" exact, and keeps a half request from counting as one.

/// The length of the first whole request in `bytes`, or `None` while it is incomplete.
///
/// Bytes that are not RESP count as one request.
pub(super) fn first_request(bytes: &[u8]) -> Option<usize> {
    if bytes.is_empty() {
        return None;
    }
    if bytes[0] != b'*' {
        let line = bytes.iter().position(|b| *b == b'\n').map(|i| i + 1);
        return Some(line.unwrap_or(bytes.len()));
    }
    let (words, mut at) = header(bytes, 0)?;
    for _ in 0..words {
        let (len, start) = header(bytes, at)?;
        at = start + len + 2;
    }
    (at <= bytes.len()).then_some(at)
}

/// The number in the line at `at` (`*3`, `$5`), and where the next line begins.
fn header(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = bytes.get(at..)?;
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    let digits = std::str::from_utf8(rest.get(1..end)?).ok()?;
    // A negative or absurd count is the server's to refuse: it ends the request here.
    Some((digits.parse().unwrap_or(0), at + end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &[u8] = b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n";

    #[test]
    fn a_request_is_whole_only_with_its_last_byte() {
        for cut in 0..GET.len() {
            assert_eq!(first_request(&GET[..cut]), None, "{cut}");
        }
        assert_eq!(first_request(GET), Some(GET.len()));
        assert_eq!(first_request(&[GET, b"*1\r\n"].concat()), Some(GET.len()));
    }

    #[test]
    fn inline_and_unknown_bytes_pass() {
        assert_eq!(first_request(b"PING\r\nPING\r\n"), Some(6));
        assert_eq!(first_request(&[4, 0, 0, 1]), Some(4));
        assert_eq!(first_request(b"*-1\r\n"), Some(5));
    }
}
