//! Values as bytes whose order is the order of the values, ascending or descending.
//!
//! | type | bytes |
//! |---|---|
//! | integers, timestamp | big endian with the sign bit flipped |
//! | float, double | the bits; negative ones inverted, positive ones with the sign bit set (so -0 is before 0) |
//! | boolean | 0 or 1 |
//! | uuid | its 16 bytes with the version in front, then the time of a version 1: the order of CQL |
//! | inet | 4 or 6, then the octets |
//! | text, blob | the bytes with 0 as `00 FF`, then `00 00` |
//! | set, tuples | `01` before each element, `00` at the end |
//!
//! A descending value has all its bytes inverted. Every encoding ends by itself, so that the values of a key
//! stand behind each other.

use emberkeep_schema::{ColumnType, Order, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use uuid::Uuid;

/// Appends a value in an order.
pub(crate) fn push(out: &mut Vec<u8>, value: &Value, order: Order) {
    let start = out.len();
    push_ascending(out, value);
    if order == Order::Descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn push_ascending(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Text(text) => push_bytes(out, text.as_bytes()),
        Value::Blob(bytes) => push_bytes(out, bytes),
        Value::Int(number) => out.extend((*number as u32 ^ 1 << 31).to_be_bytes()),
        Value::BigInt(number) | Value::Timestamp(number) => {
            out.extend((*number as u64 ^ 1 << 63).to_be_bytes())
        }
        Value::SmallInt(number) => out.extend((*number as u16 ^ 1 << 15).to_be_bytes()),
        Value::TinyInt(number) => out.push(*number as u8 ^ 1 << 7),
        Value::Float(float) => {
            let bits = float.to_bits();
            out.extend((if bits >> 31 == 1 { !bits } else { bits ^ 1 << 31 }).to_be_bytes());
        }
        Value::Double(double) => {
            let bits = double.to_bits();
            out.extend((if bits >> 63 == 1 { !bits } else { bits ^ 1 << 63 }).to_be_bytes());
        }
        Value::Boolean(truth) => out.push(u8::from(*truth)),
        Value::Uuid(uuid) => out.extend(uuid_in_order(*uuid).to_be_bytes()),
        Value::Inet(IpAddr::V4(address)) => {
            out.push(4);
            out.extend(address.octets());
        }
        Value::Inet(IpAddr::V6(address)) => {
            out.push(6);
            out.extend(address.octets());
        }
        Value::TextSet(texts) => {
            for text in texts {
                out.push(1);
                push_bytes(out, text.as_bytes());
            }
            out.push(0);
        }
        Value::Tuples(tuples) => {
            for tuple in tuples {
                out.push(1);
                tuple.iter().for_each(|element| push_ascending(out, element));
            }
            out.push(0);
        }
        // The enum may grow in its crate; a new type has no key form until it is written here.
        other => unreachable!("a column type without a key form: {other:?}"),
    }
}

/// A number that orders UUIDs as Cassandra's `UUIDType` does: by version, those of version 1 by time, then by bytes.
/// Every bit is kept: the upper half begins with the version, and the other 60 bits follow in the order that compares.
fn uuid_in_order(uuid: Uuid) -> u128 {
    let (upper, lower) = uuid.as_u64_pair();
    let version = upper >> 12 & 0xF;
    let rest = match version {
        // Stored as the low, middle and high part of the time.
        1 => (upper & 0xFFF) << 48 | (upper >> 16 & 0xFFFF) << 32 | upper >> 32,
        _ => upper >> 16 << 12 | upper & 0xFFF,
    };
    u128::from(version << 60 | rest) << 64 | u128::from(lower)
}

fn uuid_from_order(number: u128) -> Uuid {
    let (upper, lower) = ((number >> 64) as u64, number as u64);
    let (version, rest) = (upper >> 60, upper & (u64::MAX >> 4));
    let upper = match version {
        1 => rest << 32 | (rest >> 32 & 0xFFFF) << 16 | rest >> 48,
        _ => rest >> 12 << 16 | rest & 0xFFF,
    };
    Uuid::from_u64_pair(upper | version << 12, lower)
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xFF);
        }
    }
    out.extend([0, 0]);
}

/// A value in ascending order, as bytes of its own.
pub(crate) fn encoded(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    push_ascending(&mut out, value);
    out
}

/// The length of a value in this encoding.
pub(crate) fn encoded_bytes(value: &Value) -> usize {
    // Zero bytes stand doubled.
    let escaped = |bytes: &[u8]| bytes.len() + bytes.iter().filter(|byte| **byte == 0).count() + 2;
    match value {
        Value::Text(text) => escaped(text.as_bytes()),
        Value::Blob(bytes) => escaped(bytes),
        Value::Int(_) | Value::Float(_) => 4,
        Value::BigInt(_) | Value::Timestamp(_) | Value::Double(_) => 8,
        Value::Uuid(_) => 16,
        other => encoded(other).len(),
    }
}

/// Reads a value off the front of `rest`; `None` if the bytes are not one of this type.
pub(crate) fn take(rest: &mut &[u8], kind: ColumnType, order: Order) -> Option<Value> {
    let mut reader = Reader { rest, mask: if order == Order::Descending { 0xFF } else { 0 } };
    let value = reader.value(kind)?;
    *rest = reader.rest;
    Some(value)
}

struct Reader<'b> {
    rest: &'b [u8],
    mask: u8,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first ^ self.mask)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(first.map(|byte| byte ^ self.mask))
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    0 => return Some(out),
                    0xFF => out.push(0),
                    _ => return None,
                },
                byte => out.push(byte),
            }
        }
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    fn value(&mut self, kind: ColumnType) -> Option<Value> {
        Some(match kind {
            ColumnType::Text => Value::Text(self.text()?),
            ColumnType::Blob => Value::Blob(self.bytes()?),
            ColumnType::Int => Value::Int((u32::from_be_bytes(self.array()?) ^ 1 << 31) as i32),
            ColumnType::BigInt => Value::BigInt((u64::from_be_bytes(self.array()?) ^ 1 << 63) as i64),
            ColumnType::Timestamp => Value::Timestamp((u64::from_be_bytes(self.array()?) ^ 1 << 63) as i64),
            ColumnType::SmallInt => Value::SmallInt((u16::from_be_bytes(self.array()?) ^ 1 << 15) as i16),
            ColumnType::TinyInt => Value::TinyInt((self.byte()? ^ 1 << 7) as i8),
            ColumnType::Float => {
                let bits = u32::from_be_bytes(self.array()?);
                Value::Float(f32::from_bits(if bits >> 31 == 1 { bits ^ 1 << 31 } else { !bits }))
            }
            ColumnType::Double => {
                let bits = u64::from_be_bytes(self.array()?);
                Value::Double(f64::from_bits(if bits >> 63 == 1 { bits ^ 1 << 63 } else { !bits }))
            }
            ColumnType::Boolean => match self.byte()? {
                0 => Value::Boolean(false),
                1 => Value::Boolean(true),
                _ => return None,
            },
            ColumnType::Uuid => Value::Uuid(uuid_from_order(u128::from_be_bytes(self.array()?))),
            ColumnType::Inet => match self.byte()? {
                4 => Value::Inet(IpAddr::V4(Ipv4Addr::from(self.array::<4>()?))),
                6 => Value::Inet(IpAddr::V6(Ipv6Addr::from(self.array::<16>()?))),
                _ => return None,
            },
            ColumnType::TextSet => {
                let mut texts = std::collections::BTreeSet::new();
                while self.is_element()? {
                    texts.insert(self.text()?);
                }
                Value::TextSet(texts)
            }
            ColumnType::Tuples(types) => {
                let mut tuples = Vec::new();
                while self.is_element()? {
                    tuples.push(types.iter().map(|of| self.value(*of)).collect::<Option<Vec<_>>>()?);
                }
                Value::Tuples(tuples)
            }
            _ => return None,
        })
    }

    fn is_element(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    const PAIR: ColumnType = ColumnType::Tuples(&[ColumnType::Text, ColumnType::Double]);
    const TYPES: [ColumnType; 14] = [
        ColumnType::Text,
        ColumnType::Int,
        ColumnType::BigInt,
        ColumnType::SmallInt,
        ColumnType::TinyInt,
        ColumnType::Float,
        ColumnType::Double,
        ColumnType::Boolean,
        ColumnType::Timestamp,
        ColumnType::Uuid,
        ColumnType::Inet,
        ColumnType::Blob,
        ColumnType::TextSet,
        PAIR,
    ];

    fn finite() -> impl Strategy<Value = f64> {
        any::<f64>().prop_filter("finite", |double| double.is_finite())
    }

    /// Short texts over few characters, so that one is often the beginning of another.
    fn text() -> impl Strategy<Value = String> {
        proptest::collection::vec(
            prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), Just('é'), any::<char>()],
            0..5,
        )
        .prop_map(|characters| characters.into_iter().collect())
    }

    fn value(kind: ColumnType) -> BoxedStrategy<Value> {
        match kind {
            ColumnType::Text => text().prop_map(Value::Text).boxed(),
            ColumnType::Int => any::<i32>().prop_map(Value::Int).boxed(),
            ColumnType::BigInt => any::<i64>().prop_map(Value::BigInt).boxed(),
            ColumnType::SmallInt => any::<i16>().prop_map(Value::SmallInt).boxed(),
            ColumnType::TinyInt => any::<i8>().prop_map(Value::TinyInt).boxed(),
            ColumnType::Float => {
                let float = any::<f32>().prop_filter("finite", |float| float.is_finite());
                float.prop_map(Value::Float).boxed()
            }
            ColumnType::Double => finite().prop_map(Value::Double).boxed(),
            ColumnType::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
            ColumnType::Timestamp => any::<i64>().prop_map(Value::Timestamp).boxed(),
            // Mostly of one version, and often of version 1.
            ColumnType::Uuid => (any::<u128>(), 0..3_u128)
                .prop_map(|(id, version)| match version {
                    0 => id,
                    _ => id & !(0xF << 76) | version << 76,
                })
                .prop_map(|id| Value::Uuid(Uuid::from_u128(id)))
                .boxed(),
            ColumnType::Inet => any::<IpAddr>().prop_map(Value::Inet).boxed(),
            ColumnType::Blob => proptest::collection::vec(prop_oneof![Just(0), Just(255), any::<u8>()], 0..5)
                .prop_map(Value::Blob)
                .boxed(),
            ColumnType::TextSet => {
                proptest::collection::btree_set(text(), 0..3).prop_map(Value::TextSet).boxed()
            }
            _ => proptest::collection::vec((text(), finite()), 0..3)
                .prop_map(|pairs| {
                    let pair = |(text, double)| vec![Value::Text(text), Value::Double(double)];
                    Value::Tuples(pairs.into_iter().map(pair).collect())
                })
                .boxed(),
        }
    }

    fn encoded_in(value: &Value, order: Order) -> Vec<u8> {
        let mut out = Vec::new();
        push(&mut out, value, order);
        out
    }

    /// UUIDs as Cassandra compares them, byte by byte.
    fn compared_uuids(a: &Uuid, b: &Uuid) -> Ordering {
        let (a, b) = (a.as_bytes(), b.as_bytes());
        let version = |bytes: &[u8; 16]| bytes[6] >> 4;
        let time = |bytes: &[u8; 16]| [6, 7, 4, 5, 0, 1, 2, 3].map(|at: usize| bytes[at]);
        let by_time = if version(a) == 1 { time(a).cmp(&time(b)) } else { Ordering::Equal };
        version(a).cmp(&version(b)).then(by_time).then(a.cmp(b))
    }

    /// The order of values; zeros of both signs are apart, as in CQL.
    fn compared(a: &Value, b: &Value) -> Ordering {
        match (a, b) {
            (Value::Uuid(a), Value::Uuid(b)) => compared_uuids(a, b),
            (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
            (Value::Double(a), Value::Double(b)) => a.total_cmp(b),
            (Value::Tuples(a), Value::Tuples(b)) => {
                let flat = |tuples: &[Vec<Value>]| tuples.iter().flatten().cloned().collect::<Vec<_>>();
                let (a, b) = (flat(a), flat(b));
                let differs = a.iter().zip(&b).map(|(a, b)| compared(a, b)).find(|order| order.is_ne());
                differs.unwrap_or(a.len().cmp(&b.len()))
            }
            _ => a.partial_cmp(b).expect("values of one type compare"),
        }
    }

    proptest! {
        #[test]
        fn the_order_of_bytes_is_the_order_of_values(
            (kind, a, b) in proptest::sample::select(&TYPES[..]).prop_flat_map(|kind| (Just(kind), value(kind), value(kind)))
        ) {
            let expected = compared(&a, &b);
            prop_assert_eq!(encoded_in(&a, Order::Ascending).cmp(&encoded_in(&b, Order::Ascending)), expected, "{:?}", kind);
            prop_assert_eq!(encoded_in(&b, Order::Descending).cmp(&encoded_in(&a, Order::Descending)), expected, "{:?}", kind);
        }

        #[test]
        fn values_are_read_back_from_behind_each_other(
            values in proptest::collection::vec(
                proptest::sample::select(&TYPES[..]).prop_flat_map(|kind| (Just(kind), value(kind), any::<bool>())), 0..6)
        ) {
            let order = |descending| if descending { Order::Descending } else { Order::Ascending };
            let mut bytes = Vec::new();
            values.iter().for_each(|(_, value, descending)| push(&mut bytes, value, order(*descending)));
            let mut rest = &bytes[..];
            for (kind, value, descending) in &values {
                let read = take(&mut rest, *kind, order(*descending));
                prop_assert_eq!(read.as_ref(), Some(value));
            }
            prop_assert!(rest.is_empty());
            prop_assert_eq!(values.iter().map(|(_, value, _)| encoded_bytes(value)).sum::<usize>(), bytes.len());
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>, kind in proptest::sample::select(&TYPES[..])) {
            let _ = take(&mut &bytes[..], kind, Order::Ascending);
            let _ = take(&mut &bytes[..], kind, Order::Descending);
        }
    }
}
