//! The order of values on a CQL server, for rows of several partitions that are merged here.

use emberkeep_schema::{Order, Value};
use std::cmp::Ordering;
use uuid::Uuid;

/// Compares two values of one type as the server does.
pub(crate) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Uuid(a), Value::Uuid(b)) => compare_uuids(*a, *b),
        (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
        (Value::Double(a), Value::Double(b)) => a.total_cmp(b),
        // Texts and blobs compare by their bytes, numbers by value.
        _ => a.partial_cmp(b).unwrap_or(Ordering::Equal),
    }
}

/// By version first; those of version 1 by their time; then by all bytes, unsigned.
fn compare_uuids(a: Uuid, b: Uuid) -> Ordering {
    let version = |uuid: Uuid| uuid.as_u128() >> 76 & 0xF;
    let time = |uuid: Uuid| {
        let high = (uuid.as_u128() >> 64) as u64;
        (high & 0x0FFF) << 48 | (high >> 16 & 0xFFFF) << 32 | high >> 32
    };
    let by_time = if version(a) == 1 { time(a).cmp(&time(b)) } else { Ordering::Equal };
    version(a).cmp(&version(b)).then(by_time).then(a.as_u128().cmp(&b.as_u128()))
}

/// Compares two rows by their clustering values.
pub(crate) fn compare_rows(a: &[Value], b: &[Value], orders: &[Order], is_reversed: bool) -> Ordering {
    let columns = a.iter().zip(b).zip(orders).map(|((a, b), order)| match order {
        Order::Ascending => compare(a, b),
        Order::Descending => compare(b, a),
    });
    let order = columns.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
    if is_reversed { order.reverse() } else { order }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uuid(text: &str) -> Value {
        Value::Uuid(text.parse().unwrap())
    }

    #[test]
    fn uuids_sort_by_version_then_time_then_bytes() {
        let sorted = [
            uuid("ffffffff-ffff-0fff-8000-000000000000"),
            uuid("ffffffff-0000-1000-8000-000000000000"),
            uuid("00000000-0001-1000-8000-000000000000"),
            uuid("00000000-0000-4000-8000-000000000000"),
            uuid("00000000-0000-4000-8000-0000000000ff"),
            uuid("ffffffff-0000-4000-8000-000000000000"),
            uuid("00000000-0000-7000-8000-000000000000"),
        ];
        for pair in sorted.windows(2) {
            assert_eq!(compare(&pair[0], &pair[1]), Ordering::Less, "{pair:?}");
        }
        let (old, new) = ([Value::Int(1), uuid("00000000-0000-4000-8000-000000000001")], [Value::Int(2)]);
        assert_eq!(
            compare_rows(&old, &new, &[Order::Descending, Order::Ascending], false),
            Ordering::Greater
        );
    }
}
