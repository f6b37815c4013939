//! The file format of the journal: Redis commands under checksummed comment lines.
//!
#![doc = include_str!("../../../../docs/journal-format.md")]

use crate::command::{Expiry, Score, Write};
use bytes::Bytes;
use std::fmt::Write as _;

/// Version of the file format.
pub(super) const VERSION: u32 = 1;
/// What a record begins with.
pub(super) const RECORD: &[u8] = b"#EK:";
/// Longest line of ours: Redis reads lines into 128 bytes.
pub(super) const LINE_BYTES_MAX: usize = 120;

/// What a file of the journal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    /// The whole state at one sequence number.
    Base,
    /// Transactions in the order of their sequence numbers.
    Increment,
}

impl FileKind {
    /// The word in names and headers.
    pub(super) fn word(self) -> &'static str {
        match self {
            FileKind::Base => "base",
            FileKind::Increment => "incr",
        }
    }
}

/// The first line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) kind: FileKind,
    pub(super) number: u64,
    pub(super) after: u64,
    pub(super) salt: u32,
}

/// A comment line of ours that is not a record header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    File(FileHeader),
    Synced(u64),
    End(u64),
}

impl Line {
    /// Appends the line. `salt` is the file's.
    pub(super) fn encode(self, out: &mut Vec<u8>, salt: u32) {
        let text = match self {
            Line::File(FileHeader { kind, number, after, salt }) => {
                format!("#EK-FILE:{VERSION}:{}:{number}:{after}:{salt:08x}", kind.word())
            }
            Line::Synced(sequence) => format!("#EK-SYNC:{sequence}"),
            Line::End(records) => format!("#EK-END:{records}"),
        };
        // The header's own line cannot be salted: its reader does not know the salt yet.
        let salt = if matches!(self, Line::File(_)) { 0 } else { salt };
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(format!(":{:08x}\r\n", line_crc(text.as_bytes(), salt)).as_bytes());
    }

    /// Reads a whole line without its `\r\n`; `None` if a single byte is not as [`Line::encode`] wrote it.
    pub(super) fn decode(line: &[u8], salt: u32) -> Option<Line> {
        let text = std::str::from_utf8(line).ok()?;
        let mut words = text.split(':');
        let decoded = match words.next()? {
            "#EK-FILE" => Line::File(decode_file(&mut words)?),
            "#EK-SYNC" => Line::Synced(decimal(words.next()?.as_bytes())?),
            "#EK-END" => Line::End(decimal(words.next()?.as_bytes())?),
            _ => return None,
        };
        let mut again = Vec::with_capacity(LINE_BYTES_MAX);
        decoded.encode(&mut again, salt);
        (again.strip_suffix(b"\r\n") == Some(line)).then_some(decoded)
    }
}

fn decode_file<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<FileHeader> {
    if words.next()?.parse() != Ok(VERSION) {
        return None;
    }
    let kind = match words.next()? {
        "base" => FileKind::Base,
        "incr" => FileKind::Increment,
        _ => return None,
    };
    let number = decimal(words.next()?.as_bytes())?;
    let after = decimal(words.next()?.as_bytes())?;
    let salt = u32::from_str_radix(words.next()?, 16).ok()?;
    Some(FileHeader { kind, number, after, salt })
}

fn line_crc(text: &[u8], salt: u32) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(text), &salt.to_le_bytes())
}

/// A salt that differs from file to file.
pub(super) fn new_salt() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) as u32
}

/// The line before a record's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub(super) sequence: u64,
    pub(super) bytes: usize,
    pub(super) crc: u32,
}

impl RecordHeader {
    /// Appends the line of a record with this body checksum.
    pub(super) fn encode(sequence: u64, bytes: usize, body_crc: u32, salt: u32, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(RECORD);
        out.extend_from_slice(digits.format(sequence).as_bytes());
        out.push(b':');
        out.extend_from_slice(digits.format(bytes).as_bytes());
        out.push(b':');
        out.extend_from_slice(&hex(seal(body_crc, sequence, salt)));
        out.extend_from_slice(b"\r\n");
    }

    /// Reads a line without its `\r\n`.
    pub(super) fn decode(line: &[u8]) -> Option<RecordHeader> {
        let mut words = line.strip_prefix(RECORD)?.split(|byte| *byte == b':');
        let sequence = decimal(words.next()?)?;
        let bytes = usize::try_from(decimal(words.next()?)?).ok()?;
        let crc = unhex(words.next()?)?;
        words.next().is_none().then_some(RecordHeader { sequence, bytes, crc })
    }

    /// Whether this is the body that was written under this line, in a file of this salt.
    pub(super) fn fits(&self, body: &[u8], salt: u32) -> bool {
        seal(crc32c::crc32c(body), self.sequence, salt) == self.crc
    }
}

/// Ties a body's checksum to its place, so that a whole record in a wrong place is noticed too.
fn seal(body_crc: u32, sequence: u64, salt: u32) -> u32 {
    let mut place = [0; 12];
    place[..8].copy_from_slice(&sequence.to_le_bytes());
    place[8..].copy_from_slice(&salt.to_le_bytes());
    crc32c::crc32c_append(body_crc, &place)
}

fn hex(crc: u32) -> [u8; 8] {
    std::array::from_fn(|at| b"0123456789abcdef"[(crc >> (28 - 4 * at)) as usize & 15])
}

fn unhex(text: &[u8]) -> Option<u32> {
    let digits: &[u8; 8] = text.try_into().ok()?;
    digits.iter().try_fold(0, |crc, digit| match digit {
        b'0'..=b'9' => Some(crc << 4 | u32::from(digit - b'0')),
        b'a'..=b'f' => Some(crc << 4 | u32::from(digit - b'a' + 10)),
        _ => None,
    })
}

/// A decimal number as we write it: no sign, no leading zero.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    let plain = matches!(digits, [b'0'] | [b'1'..=b'9', ..]);
    if !plain || digits.len() > 20 {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// Appends the body of a transaction.
pub(super) fn encode_body<K: AsRef<[u8]>>(out: &mut Vec<u8>, writes: &[(K, Write)]) {
    // One command is atomic as it is; more are loaded by Redis all or none only inside MULTI.
    let wrapped = writes.len() > 1;
    if wrapped {
        out.extend_from_slice(b"*1\r\n$5\r\nMULTI\r\n");
    }
    for (key, write) in writes {
        encode_command(out, key.as_ref(), write);
    }
    if wrapped {
        out.extend_from_slice(b"*1\r\n$4\r\nEXEC\r\n");
    }
}

/// Appends one write as the Redis command that does the same.
pub(super) fn encode_command(out: &mut Vec<u8>, key: &[u8], write: &Write) {
    match write {
        // The condition was met, or the write would have been left out.
        Write::Set(value, expiry) | Write::SetIfGreater(value, expiry) => set(out, key, value, *expiry),
        Write::Del => start(out, "DEL", key, 0),
        Write::IncrBy(by) => integers(out, "INCRBY", key, &[*by]),
        Write::HSet(pairs) => hset(out, key, pairs),
        Write::HIncrBy(field, by) => named(out, "HINCRBY", key, field, itoa::Buffer::new().format(*by)),
        Write::HDel(fields) => members(out, "HDEL", key, fields),
        Write::SAdd(values) => members(out, "SADD", key, values),
        Write::SRem(values) => members(out, "SREM", key, values),
        Write::ZAdd(pairs) => zadd(out, key, pairs),
        Write::ZIncrBy(member, by) => named(out, "ZINCRBY", key, by.to_string().as_bytes(), member),
        Write::ZRem(values) => members(out, "ZREM", key, values),
        Write::LPush(values) => members(out, "LPUSH", key, values),
        Write::RPush(values) => members(out, "RPUSH", key, values),
        Write::LPop(count) => integers(out, "LPOP", key, &[*count as i64]),
        Write::RPop(count) => integers(out, "RPOP", key, &[*count as i64]),
        Write::LSet(at, value) => named(out, "LSET", key, itoa::Buffer::new().format(*at), value),
        Write::LTrim(start, stop) => integers(out, "LTRIM", key, &[*start, *stop]),
        Write::ExpireAt(at) => integers(out, "PEXPIREAT", key, &[*at]),
        Write::ExpireAtIfNone(at) => named(out, "PEXPIREAT", key, itoa::Buffer::new().format(*at), "NX"),
        Write::Persist => start(out, "PERSIST", key, 0),
    }
}

/// The most frequent command by far, so its fixed parts are written in one piece.
fn set(out: &mut Vec<u8>, key: &[u8], value: &[u8], expiry: Expiry) {
    out.reserve(key.len() + value.len() + 96);
    out.extend_from_slice(match expiry {
        Expiry::Never => b"*3\r\n$3\r\nSET\r\n",
        Expiry::Keep => b"*4\r\n$3\r\nSET\r\n",
        Expiry::At(_) => b"*5\r\n$3\r\nSET\r\n",
    });
    bulk(out, key);
    bulk(out, value);
    match expiry {
        Expiry::Never => {}
        Expiry::Keep => out.extend_from_slice(b"$7\r\nKEEPTTL\r\n"),
        Expiry::At(at) => {
            out.extend_from_slice(b"$4\r\nPXAT\r\n");
            bulk(out, itoa::Buffer::new().format(at).as_bytes());
        }
    }
}

fn hset(out: &mut Vec<u8>, key: &[u8], pairs: &[(Bytes, Bytes)]) {
    start(out, "HSET", key, pairs.len() * 2);
    for (field, value) in pairs {
        bulk(out, field);
        bulk(out, value);
    }
}

fn zadd(out: &mut Vec<u8>, key: &[u8], pairs: &[(Bytes, Score)]) {
    start(out, "ZADD", key, pairs.len() * 2);
    let mut text = String::new();
    for (member, score) in pairs {
        text.clear();
        write!(text, "{score}").expect("writing to a String cannot fail");
        bulk(out, text.as_bytes());
        bulk(out, member);
    }
}

fn named(out: &mut Vec<u8>, name: &str, key: &[u8], first: impl AsRef<[u8]>, second: impl AsRef<[u8]>) {
    start(out, name, key, 2);
    bulk(out, first.as_ref());
    bulk(out, second.as_ref());
}

fn members(out: &mut Vec<u8>, name: &str, key: &[u8], values: &[Bytes]) {
    start(out, name, key, values.len());
    for value in values {
        bulk(out, value);
    }
}

fn integers(out: &mut Vec<u8>, name: &str, key: &[u8], values: &[i64]) {
    start(out, name, key, values.len());
    for value in values {
        bulk(out, itoa::Buffer::new().format(*value).as_bytes());
    }
}

/// Array header, name and key of a command with `more` arguments to follow.
fn start(out: &mut Vec<u8>, name: &str, key: &[u8], more: usize) {
    out.push(b'*');
    out.extend_from_slice(itoa::Buffer::new().format(more + 2).as_bytes());
    out.extend_from_slice(b"\r\n");
    bulk(out, name.as_bytes());
    bulk(out, key);
}

fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'$');
    out.extend_from_slice(itoa::Buffer::new().format(bytes.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
