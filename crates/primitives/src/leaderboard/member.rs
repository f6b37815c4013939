//! A member of a leaderboard's sorted set: bytes that sort as the board does.
//!
//! | bytes | content | order |
//! |---|---|---|
//! | 8 | score, big-endian, all bits but the sign inverted | highest first |
//! | 8 | when it was reached, big-endian, the sign inverted | earliest first |
//! | 1 to 257 | id of the player | ascending |
//!
//! An integer id is a byte for sign and number of digits, then its digits, inverted if it is negative. Any
//! other id is its text.

use emberkeep_schema::{Codec, Part, Shape, ValueError};
use std::marker::PhantomData;

/// A player's entry on a leaderboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry<I> {
    /// The player's id.
    pub player: I,
    /// The score; higher is better.
    pub score: i64,
    /// When the score was reached, usually in milliseconds since 1970.
    pub reached_at: i64,
}

/// The codec of an [`Entry`]: its bytes sort by score descending, then by the time at which it was reached,
/// then by the player's id. Ids of integers sort by value, all others by the bytes of their text.
pub struct Ranked<I>(PhantomData<fn() -> I>);

const SIGN: u64 = 1 << 63;
/// The first byte of an integer id without digits. It grows with the digits of a positive one, and shrinks with
/// those of a negative one.
const NO_DIGITS: u8 = 0x80;
/// Most digits of an integer id; a number of 128 bits has 39.
const DIGITS_MAX: usize = 64;

impl<I: Part + Send + 'static> Codec for Ranked<I> {
    type Value = Entry<I>;
    const TYPE: &'static str = "leaderboard entry";

    fn encode(entry: &Entry<I>, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let before = out.len();
        out.extend_from_slice(&(!(entry.score as u64 ^ SIGN)).to_be_bytes());
        out.extend_from_slice(&(entry.reached_at as u64 ^ SIGN).to_be_bytes());
        let written = write_id(&entry.player, out);
        if written.is_err() {
            out.truncate(before);
        }
        written
    }

    fn decode(bytes: &[u8]) -> Result<Entry<I>, ValueError> {
        let wrong = ValueError::NotCanonical { expected: Self::TYPE, bytes: bytes.len() };
        read(bytes).ok_or(wrong)
    }
}

fn read<I: Part>(bytes: &[u8]) -> Option<Entry<I>> {
    let (score, bytes) = bytes.split_first_chunk()?;
    let (reached_at, id) = bytes.split_first_chunk()?;
    Some(Entry {
        player: read_id(id)?,
        score: (!u64::from_be_bytes(*score) ^ SIGN) as i64,
        reached_at: (u64::from_be_bytes(*reached_at) ^ SIGN) as i64,
    })
}

fn write_id<I: Part>(id: &I, out: &mut Vec<u8>) -> Result<(), ValueError> {
    if I::SHAPE != Shape::Integer {
        id.write(out);
        return Ok(());
    }
    let mut text = Vec::new();
    id.write(&mut text);
    let (is_negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, &text[..]),
    };
    if digits.len() > DIGITS_MAX || !digits.iter().all(u8::is_ascii_digit) {
        return Err(ValueError::NotCanonical { expected: "integer", bytes: text.len() });
    }
    let count = digits.len() as u8;
    if is_negative {
        out.push(NO_DIGITS - count);
        out.extend(digits.iter().map(|digit| inverted(*digit)));
    } else {
        out.push(NO_DIGITS + count);
        out.extend_from_slice(digits);
    }
    Ok(())
}

fn read_id<I: Part>(bytes: &[u8]) -> Option<I> {
    if I::SHAPE != Shape::Integer {
        return I::parse(std::str::from_utf8(bytes).ok()?);
    }
    let (first, digits) = bytes.split_first()?;
    if usize::from(first.abs_diff(NO_DIGITS)) != digits.len() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut text = String::with_capacity(bytes.len());
    if *first < NO_DIGITS {
        text.push('-');
        text.extend(digits.iter().map(|digit| char::from(inverted(*digit))));
    } else {
        text.extend(digits.iter().map(|digit| char::from(*digit)));
    }
    I::parse(&text)
}

/// 9 for 0, 0 for 9: more digits of a negative number mean less.
fn inverted(digit: u8) -> u8 {
    b'0' + b'9' - digit
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::Name;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use uuid::Uuid;

    fn bytes<I: Part + Send + 'static>(player: I, score: i64, reached_at: i64) -> Vec<u8> {
        let mut out = b"before".to_vec();
        Ranked::encode(&Entry { player, score, reached_at }, &mut out).unwrap();
        out.split_off(b"before".len())
    }

    fn number() -> impl Strategy<Value = i64> {
        prop_oneof![Just(i64::MIN), Just(i64::MAX), -2..3i64, (1i64 << 53) - 2..(1 << 53) + 3, any::<i64>(),]
    }

    proptest! {
        #[test]
        fn bytes_sort_as_entries_do(a in (number(), number(), number()), b in (number(), number(), number())) {
            let order = |(score, at, id): (i64, i64, i64)| (Reverse(score), at, id);
            let encoded = |(score, at, id): (i64, i64, i64)| bytes(id, score, at);
            prop_assert_eq!(encoded(a).cmp(&encoded(b)), order(a).cmp(&order(b)));
            let entry = Entry { player: a.2, score: a.0, reached_at: a.1 };
            prop_assert_eq!(Ranked::<i64>::decode(&encoded(a)), Ok(entry));
        }

        #[test]
        fn ids_of_any_type_survive_and_sort(a: u64, b: u64, c: u128, d: u128, name in "[^:{}\\p{Cc}]{1,60}") {
            prop_assert_eq!(bytes(a, 7, 7).cmp(&bytes(b, 7, 7)), a.cmp(&b));
            let (c, d) = (Uuid::from_u128(c), Uuid::from_u128(d));
            prop_assert_eq!(bytes(c, 7, 7).cmp(&bytes(d, 7, 7)), c.cmp(&d));
            prop_assert_eq!(Ranked::<Uuid>::decode(&bytes(c, 7, -7)), Ok(Entry { player: c, score: 7, reached_at: -7 }));
            let name = Name::new(&name).unwrap();
            prop_assert_eq!(Ranked::<Name>::decode(&bytes(name.clone(), 0, 0)).map(|entry| entry.player), Ok(name));
        }

        #[test]
        fn other_bytes_are_refused(bytes: Vec<u8>) {
            let number = Ranked::<i8>::decode(&bytes).map(|entry| encoded(&entry));
            let name = Ranked::<Name>::decode(&bytes).map(|entry| encoded(&entry));
            for again in [number, name].into_iter().flatten() {
                prop_assert_eq!(&again, &bytes, "an entry has one form");
            }
        }
    }

    fn encoded<I: Part + Send + 'static>(entry: &Entry<I>) -> Vec<u8> {
        let mut out = Vec::new();
        Ranked::encode(entry, &mut out).unwrap();
        out
    }

    #[test]
    fn what_is_no_entry_is_a_typed_error() {
        let good = bytes(12u32, 5, 6);
        assert_eq!(good.len(), 16 + 3);
        let mut wrong_count = good.clone();
        wrong_count[16] += 1;
        let mut leading_zero = good.clone();
        leading_zero[17] = b'0';
        for wrong in [&good[..15], &good[..16], &good[..18], &wrong_count, &leading_zero, b""] {
            let expected = ValueError::NotCanonical { expected: "leaderboard entry", bytes: wrong.len() };
            assert_eq!(Ranked::<u32>::decode(wrong), Err(expected));
        }
        assert!(Ranked::<u8>::decode(&bytes(300u32, 5, 6)).is_err(), "an id that the type does not have");
        assert!(Ranked::<u8>::decode(&bytes(-1i8, 5, 6)).is_err());
    }
}
