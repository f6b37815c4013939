//! Every write survives its encoding; what Redis writes is understood.

use super::super::decode::{CommandError, apply_body};
use super::super::format::*;
use super::*;
use crate::command::Score;
use proptest::collection::vec;
use proptest::prelude::*;

fn text() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn score() -> impl Strategy<Value = Score> {
    prop_oneof![
        any::<f64>().prop_filter_map("NaN is not a score", |x| Score::new(x).ok()),
        any::<i64>().prop_map(Score::from_i64),
        Just(Score::new(f64::INFINITY).unwrap()),
        Just(Score::new(f64::NEG_INFINITY).unwrap()),
    ]
}

pub(super) fn write() -> impl Strategy<Value = Write> {
    let list = || vec(text(), 1..5);
    let expiry = prop_oneof![Just(Expiry::Keep), Just(Expiry::Never), (1i64..1 << 48).prop_map(Expiry::At)];
    prop_oneof![
        (text(), expiry).prop_map(|(value, expiry)| Write::Set(value, expiry)),
        Just(Write::Del),
        any::<i64>().prop_map(Write::IncrBy),
        vec((text(), text()), 1..5).prop_map(Write::HSet),
        (text(), any::<i64>()).prop_map(|(field, by)| Write::HIncrBy(field, by)),
        list().prop_map(Write::HDel),
        list().prop_map(Write::SAdd),
        list().prop_map(Write::SRem),
        vec((text(), score()), 1..5).prop_map(Write::ZAdd),
        (text(), score()).prop_map(|(member, by)| Write::ZIncrBy(member, by)),
        list().prop_map(Write::ZRem),
        list().prop_map(Write::LPush),
        list().prop_map(Write::RPush),
        (1usize..1000).prop_map(Write::LPop),
        (1usize..1000).prop_map(Write::RPop),
        (any::<i64>(), text()).prop_map(|(at, value)| Write::LSet(at, value)),
        any::<(i64, i64)>().prop_map(|(start, stop)| Write::LTrim(start, stop)),
        (1i64..1 << 48).prop_map(Write::ExpireAt),
        (1i64..1 << 48).prop_map(Write::ExpireAtIfNone),
        Just(Write::Persist),
    ]
}

fn decode(body: &[u8]) -> Result<Transaction, CommandError> {
    let mut transaction = Transaction::new();
    apply_body(body, &mut |key, write| {
        transaction.push((key, write));
        Ok(())
    })?;
    Ok(transaction)
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(transaction in vec((text(), write()), 1..6)) {
        let mut body = Vec::new();
        encode_body(&mut body, &transaction);
        prop_assert_eq!(decode(&body).unwrap(), transaction);
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(body in vec(any::<u8>(), 0..200)) {
        let _ = decode(&body);
    }

    #[test]
    fn no_change_of_a_command_makes_the_decoder_panic(
        transaction in vec((text(), write()), 1..4),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut body = Vec::new();
        encode_body(&mut body, &transaction);
        let at = at.index(body.len());
        body[at] = byte;
        let _ = decode(&body);
    }
}

#[test]
fn a_record_looks_like_this() {
    let mut bytes = Vec::new();
    let mut body = Vec::new();
    encode_body(&mut body, &[set("k", "v")]);
    RecordHeader::encode(7, body.len(), crc32c::crc32c(&body), 1, &mut bytes);
    bytes.extend_from_slice(&body);
    assert_eq!(
        bytes.escape_ascii().to_string(),
        r"#EK:7:27:e66871bd\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
    );
}

#[test]
fn lines_are_read_only_as_they_were_written() {
    let header = FileHeader { kind: FileKind::Increment, number: 3, after: 41, salt: 0xfeed };
    for line in [Line::File(header), Line::Synced(u64::MAX), Line::End(0)] {
        let mut text = Vec::new();
        line.encode(&mut text, header.salt);
        assert!(text.len() <= LINE_BYTES_MAX);
        let text = text.strip_suffix(b"\r\n").unwrap();
        assert_eq!(Line::decode(text, header.salt), Some(line));
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut flipped = text.to_vec();
                flipped[at] ^= 1 << bit;
                assert_eq!(Line::decode(&flipped, header.salt), None, "{}", flipped.escape_ascii());
            }
        }
    }
}

#[test]
fn what_redis_writes_is_understood() {
    let spoken = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        let mut command = format!("*{}\r\n", words.len());
        for word in words {
            command += &format!("${}\r\n{word}\r\n", word.len());
        }
        decode(command.as_bytes())
    };
    let means =
        |words: &str, write: Write| assert_eq!(spoken(words).unwrap(), [(bytes("k"), write)], "{words}");
    means("SET k v NX PXAT 5", Write::Set(bytes("v"), Expiry::At(5)));
    means("set k v exat 5", Write::Set(bytes("v"), Expiry::At(5000)));
    means("SET k v KEEPTTL", Write::Set(bytes("v"), Expiry::Keep));
    means("INCR k", Write::IncrBy(1));
    means("DECRBY k 3", Write::IncrBy(-3));
    means("HMSET k f v", Write::HSet(vec![(bytes("f"), bytes("v"))]));
    means("LPOP k", Write::LPop(1));
    means("EXPIREAT k 7", Write::ExpireAt(7000));
    means("PEXPIREAT k 7 nx", Write::ExpireAtIfNone(7));
    assert_eq!(spoken("SELECT 0").unwrap(), []);
    assert_eq!(spoken("UNLINK a b").unwrap(), [(bytes("a"), Write::Del), (bytes("b"), Write::Del)]);
    for unknown in
        ["SELECT 3", "XADD k * f v", "SET k", "ZADD k GT 1 m", "ZADD k nan m", "INCRBY k 1.5", "PING"]
    {
        assert!(matches!(spoken(unknown), Err(CommandError::Bad(_))), "{unknown}");
    }
}
