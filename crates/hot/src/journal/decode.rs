//! Decodes Redis commands into writes: ours, and the forms in which Redis writes them to its files.
//!
//! The input is not trusted: any bytes give writes or an error.

use crate::command::{Expiry, RawKey, Score, Write};
use crate::error::{Error, Result};
use bytes::Bytes;
use smallvec::SmallVec;

/// The arguments of one command, name first, still in the buffer they were read into.
pub(super) type Args<'a> = SmallVec<[&'a [u8]; 8]>;

/// Takes what is read from the journal.
pub(super) type Apply<'a> = &'a mut dyn FnMut(RawKey, Write) -> Result<()>;

/// Why bytes are not a command.
#[derive(Debug)]
pub(super) enum CommandError {
    /// They end too early; more might help.
    Incomplete,
    /// They are wrong, and this is how.
    Bad(String),
    /// They are right, but the receiver refused them.
    Refused(Error),
}

impl From<Error> for CommandError {
    fn from(error: Error) -> CommandError {
        CommandError::Refused(error)
    }
}

fn bad<T>(problem: impl Into<String>) -> Result<T, CommandError> {
    Err(CommandError::Bad(problem.into()))
}

/// Applies all commands of a record's body and says how many there were. All are read before the first is
/// applied: a record is applied whole or not at all.
pub(super) fn apply_body(body: &[u8], apply: Apply<'_>) -> Result<u64, CommandError> {
    let (mut rest, mut writes) = (body, SmallVec::<[(RawKey, Write); 4]>::new());
    while !rest.is_empty() {
        let args = next_command(&mut rest)?;
        // The checksum already made the transaction whole; these are for Redis.
        if !matches!(args[0], b"MULTI" | b"EXEC") {
            apply_command(&args, &mut |key, write| {
                writes.push((key, write));
                Ok(())
            })?;
        }
    }
    let commands = writes.len() as u64;
    writes.into_iter().try_for_each(|(key, write)| apply(key, write))?;
    Ok(commands)
}

/// Takes the next command off the bytes. It has at least a name.
pub(super) fn next_command<'a>(rest: &mut &'a [u8]) -> Result<Args<'a>, CommandError> {
    let count = length(rest, b'*')?;
    if count == 0 {
        return bad("a command without a name");
    }
    let mut args = Args::new();
    for _ in 0..count {
        let bytes = length(rest, b'$')?;
        // Subtraction, because a damaged length must not overflow a sum.
        if rest.len() < 2 || rest.len() - 2 < bytes {
            return Err(CommandError::Incomplete);
        }
        if &rest[bytes..bytes + 2] != b"\r\n" {
            return bad("an argument is not followed by a line end");
        }
        args.push(&rest[..bytes]);
        *rest = &rest[bytes + 2..];
    }
    Ok(args)
}

/// Reads a length of RESP: `<marker><decimal>\r\n`.
fn length(rest: &mut &[u8], marker: u8) -> Result<usize, CommandError> {
    let Some((first, tail)) = rest.split_first() else { return Err(CommandError::Incomplete) };
    if *first != marker {
        return bad(format!("expected {:?}, found {:?}", marker as char, first.escape_ascii().to_string()));
    }
    let mut value = 0usize;
    // A length of more than ten digits is none of Redis' (its bulk limit is 512 MiB).
    for (at, byte) in tail.iter().enumerate().take(12) {
        match byte {
            b'0'..=b'9' if at < 10 => value = value * 10 + usize::from(byte - b'0'),
            b'\r' if at > 0 => {
                return match tail.get(at + 1) {
                    Some(b'\n') => {
                        *rest = &tail[at + 2..];
                        Ok(value)
                    }
                    Some(_) => bad("a length is not followed by a line end"),
                    None => Err(CommandError::Incomplete),
                };
            }
            _ => return bad("a length is not a number"),
        }
    }
    Err(CommandError::Incomplete)
}

/// Applies one command; answers how many writes it was.
pub(super) fn apply_command(args: &[&[u8]], apply: Apply<'_>) -> Result<u64, CommandError> {
    let upper;
    let name = if args[0].iter().any(u8::is_ascii_lowercase) {
        upper = args[0].to_ascii_uppercase();
        upper.as_slice()
    } else {
        args[0]
    };
    if name == b"SELECT" {
        return select(args);
    }
    let [_, key, rest @ ..] = args else { return bad(format!("{} without a key", name.escape_ascii())) };
    if matches!(name, b"DEL" | b"UNLINK") {
        for key in &args[1..] {
            apply(copy(key), Write::Del)?;
        }
        return Ok(args.len() as u64 - 1);
    }
    apply(copy(key), write(name, rest)?)?;
    Ok(1)
}

/// Redis opens each of its files with `SELECT 0`. There is only that database here.
fn select(args: &[&[u8]]) -> Result<u64, CommandError> {
    match args {
        [_, b"0"] => Ok(0),
        _ => bad("keys of another database than 0; move them to 0 in Redis first"),
    }
}

/// The write that the words after the key mean.
fn write(name: &[u8], rest: &[&[u8]]) -> Result<Write, CommandError> {
    Ok(match (name, rest) {
        (b"SET", [value, options @ ..]) => Write::Set(copy(value), expiry(options)?),
        (b"INCRBY", [by]) => Write::IncrBy(integer(by)?),
        (b"DECRBY", [by]) => Write::IncrBy(integer::<i64>(by)?.saturating_neg()),
        (b"INCR", []) => Write::IncrBy(1),
        (b"DECR", []) => Write::IncrBy(-1),
        (b"HSET" | b"HMSET", _) => Write::HSet(pairs(rest)?),
        (b"HINCRBY", [field, by]) => Write::HIncrBy(copy(field), integer(by)?),
        (b"HDEL", _) => Write::HDel(list(rest)?),
        (b"SADD", _) => Write::SAdd(list(rest)?),
        (b"SREM", _) => Write::SRem(list(rest)?),
        (b"ZADD", _) => Write::ZAdd(scored(rest)?),
        (b"ZINCRBY", [by, member]) => Write::ZIncrBy(copy(member), number(by)?),
        (b"ZREM", _) => Write::ZRem(list(rest)?),
        (b"LPUSH", _) => Write::LPush(list(rest)?),
        (b"RPUSH", _) => Write::RPush(list(rest)?),
        (b"LPOP", []) => Write::LPop(1),
        (b"RPOP", []) => Write::RPop(1),
        (b"LPOP", [count]) => Write::LPop(integer(count)?),
        (b"RPOP", [count]) => Write::RPop(integer(count)?),
        (b"LSET", [at, value]) => Write::LSet(integer(at)?, copy(value)),
        (b"LTRIM", [start, stop]) => Write::LTrim(integer(start)?, integer(stop)?),
        (b"PEXPIREAT", [at, option]) if option.eq_ignore_ascii_case(b"NX") => {
            Write::ExpireAtIfNone(integer(at)?)
        }
        (b"PEXPIREAT", [at, ..]) => Write::ExpireAt(integer(at)?),
        (b"EXPIREAT", [at, ..]) => Write::ExpireAt(integer::<i64>(at)?.saturating_mul(1000)),
        (b"PERSIST", []) => Write::Persist,
        _ => {
            return bad(format!(
                "{} with {} arguments is not a write of this journal",
                name.escape_ascii(),
                rest.len()
            ));
        }
    })
}

/// What follows the value of a SET. Conditions (NX, XX, GET) had been met, or Redis would not have kept it.
fn expiry(mut options: &[&[u8]]) -> Result<Expiry, CommandError> {
    let mut expiry = Expiry::Never;
    while let [option, rest @ ..] = options {
        options = rest;
        match (option.to_ascii_uppercase().as_slice(), rest) {
            (b"KEEPTTL", _) => expiry = Expiry::Keep,
            (b"NX" | b"XX" | b"GET", _) => {}
            (b"PXAT", [at, rest @ ..]) => (expiry, options) = (Expiry::At(integer(at)?), rest),
            (b"EXAT", [at, rest @ ..]) => {
                (expiry, options) = (Expiry::At(integer::<i64>(at)?.saturating_mul(1000)), rest);
            }
            _ => return bad(format!("SET with the option {}", option.escape_ascii())),
        }
    }
    Ok(expiry)
}

/// Own copies: a slice of the read buffer would keep megabytes alive for one small key.
fn copy(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

fn list(values: &[&[u8]]) -> Result<Vec<Bytes>, CommandError> {
    if values.is_empty() {
        return bad("a command without elements");
    }
    Ok(values.iter().map(|value| copy(value)).collect())
}

fn pairs(values: &[&[u8]]) -> Result<Vec<(Bytes, Bytes)>, CommandError> {
    match values.as_chunks::<2>() {
        (pairs @ [_, ..], []) => Ok(pairs.iter().map(|[field, value]| (copy(field), copy(value))).collect()),
        _ => bad("fields and values do not pair up"),
    }
}

fn scored(values: &[&[u8]]) -> Result<Vec<(Bytes, Score)>, CommandError> {
    match values.as_chunks::<2>() {
        (pairs @ [_, ..], []) => {
            pairs.iter().map(|[score, member]| Ok((copy(member), number(score)?))).collect()
        }
        _ => bad("scores and members do not pair up"),
    }
}

fn number(text: &[u8]) -> Result<Score, CommandError> {
    let value = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
    match value.map(Score::new) {
        Some(Ok(score)) => Ok(score),
        _ => bad(format!("{} is not a score", text.escape_ascii())),
    }
}

fn integer<T: std::str::FromStr>(text: &[u8]) -> Result<T, CommandError> {
    match std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
        Some(value) => Ok(value),
        None => bad(format!("{} is not a number of the expected range", text.escape_ascii())),
    }
}
