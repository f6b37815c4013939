//! Replies of a server, in RESP2 or RESP3.

use std::io::{self, BufRead, Read};

/// One answer of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// `+OK`: a text without line ends
    Simple(String),
    /// `-ERR …`, without the dash.
    Error(String),
    /// `:1`: a 64-bit integer
    Int(i64),
    /// `$…`; also a RESP3 verbatim string (with its `txt:`) and a big number.
    Bulk(Vec<u8>),
    /// `$-1`, `*-1` or `_`
    Nil,
    /// `*…`: several replies
    Array(Vec<Reply>),
    /// `%…` of RESP3: pairs of replies
    Map(Vec<(Reply, Reply)>),
    /// `~…` of RESP3: several replies without an order
    Set(Vec<Reply>),
    /// `>…` of RESP3: a message that no request asked for
    Push(Vec<Reply>),
    /// `,1.5` of RESP3: a double
    Double(f64),
    /// `#t` of RESP3: a boolean
    Bool(bool),
}

impl Reply {
    /// The integer.
    ///
    /// # Panics
    /// When it is something else, with what it is: tests want to see that.
    #[track_caller]
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(i) => *i,
            other => panic!("expected an integer, got {other:?}"),
        }
    }

    /// The text of a string, status or error.
    ///
    /// # Panics
    /// When it is something else.
    #[track_caller]
    pub fn text(&self) -> String {
        match self {
            Self::Simple(s) | Self::Error(s) => s.clone(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("expected a string, got {other:?}"),
        }
    }

    /// The bytes of a bulk string.
    ///
    /// # Panics
    /// When it is something else.
    #[track_caller]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bulk(bytes) => bytes,
            other => panic!("expected a bulk string, got {other:?}"),
        }
    }

    /// The elements of an array, set or push.
    ///
    /// # Panics
    /// When it is something else.
    #[track_caller]
    pub fn items(&self) -> &[Reply] {
        match self {
            Self::Array(items) | Self::Set(items) | Self::Push(items) => items,
            other => panic!("expected an array, got {other:?}"),
        }
    }

    /// Whether it is an error that starts with `word` (`MOVED`, `ASK`, `WRONGTYPE`…).
    pub fn is_error(&self, word: &str) -> bool {
        matches!(self, Self::Error(text) if text.split(' ').next() == Some(word))
    }

    /// Whether it is `+OK`.
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Simple(text) if text == "OK")
    }

    /// Reads one reply; end of stream is `UnexpectedEof`.
    pub(crate) fn read(input: &mut impl BufRead) -> io::Result<Self> {
        let line = read_line(input)?;
        let (kind, rest) = line.split_at_checked(1).ok_or_else(|| bad("an empty line"))?;
        match kind {
            "+" => Ok(Self::Simple(rest.into())),
            "-" => Ok(Self::Error(rest.into())),
            ":" => number(rest).map(Self::Int),
            "," => rest.parse().map(Self::Double).map_err(|_| bad(rest)),
            "#" => Ok(Self::Bool(rest == "t")),
            "_" => Ok(Self::Nil),
            "(" => Ok(Self::Bulk(rest.into())),
            "$" | "=" | "!" => Self::read_bulk(input, kind, number(rest)?),
            "*" | "~" | ">" | "%" => Self::read_many(input, kind, number(rest)?),
            other => Err(bad(other)),
        }
    }

    fn read_bulk(input: &mut impl BufRead, kind: &str, len: i64) -> io::Result<Self> {
        let Ok(len) = usize::try_from(len) else { return Ok(Self::Nil) };
        let mut bytes = vec![0; len + 2];
        input.read_exact(&mut bytes)?;
        bytes.truncate(len);
        Ok(match kind {
            "!" => Self::Error(String::from_utf8_lossy(&bytes).into_owned()),
            _ => Self::Bulk(bytes),
        })
    }

    fn read_many(input: &mut impl BufRead, kind: &str, len: i64) -> io::Result<Self> {
        if len < 0 {
            return Ok(Self::Nil);
        }
        if kind == "%" {
            let pairs = (0..len).map(|_| Ok((Self::read(input)?, Self::read(input)?)));
            return pairs.collect::<io::Result<_>>().map(Self::Map);
        }
        let items = (0..len).map(|_| Self::read(input)).collect::<io::Result<_>>()?;
        Ok(match kind {
            "~" => Self::Set(items),
            ">" => Self::Push(items),
            _ => Self::Array(items),
        })
    }
}

fn read_line(input: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    // Bounded, so that garbage from a broken server ends as an error and not as a full memory.
    input.by_ref().take(64 * 1024).read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(text) => Ok(text.into()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn number(text: &str) -> io::Result<i64> {
    text.parse().map_err(|_| bad(text))
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a RESP reply: {what:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Reply> {
        Reply::read(&mut &bytes[..])
    }

    #[test]
    fn every_kind_is_read() {
        assert_eq!(read(b"+OK\r\n").unwrap(), Reply::Simple("OK".into()));
        assert!(read(b"-MOVED 1 a:1\r\n").unwrap().is_error("MOVED"));
        assert_eq!(read(b"$3\r\na\r\n\r\n").unwrap(), Reply::Bulk(b"a\r\n".into()));
        assert_eq!(read(b"*-1\r\n").unwrap(), Reply::Nil);
        let nested = Reply::Array(vec![Reply::Int(-7), Reply::Array(vec![Reply::Nil])]);
        assert_eq!(read(b"*2\r\n:-7\r\n*1\r\n$-1\r\n").unwrap(), nested);
        let map = Reply::Map(vec![(Reply::Simple("a".into()), Reply::Bool(true))]);
        assert_eq!(read(b"%1\r\n+a\r\n#t\r\n").unwrap(), map);
        assert_eq!(read(b",1.5\r\n").unwrap(), Reply::Double(1.5));
    }

    #[test]
    fn a_cut_reply_is_end_of_stream() {
        for cut in [&b""[..], b"+O", b"$3\r\nab", b"*2\r\n:1\r\n"] {
            assert_eq!(read(cut).unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{cut:?}");
        }
    }
}
