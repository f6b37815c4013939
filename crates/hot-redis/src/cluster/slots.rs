//! The slots of a Cluster: which one a key has, and the map of their primaries.

use crate::limits::SLOTS;
use crate::script;
use redis::Value;
use std::ops::RangeInclusive;

/// Slots, and host and port of their primary. `None` when the answer has not the shape of CLUSTER SLOTS: half
/// a map would send commands to the wrong servers.
pub(crate) fn ranges_of(map: &Value) -> Option<Vec<(RangeInclusive<usize>, String, u16)>> {
    let Value::Array(ranges) = map else { return None };
    ranges.iter().map(range_of).collect()
}

fn range_of(range: &Value) -> Option<(RangeInclusive<usize>, String, u16)> {
    let Value::Array(parts) = range else { return None };
    let [Value::Int(from), Value::Int(to), Value::Array(primary), ..] = &parts[..] else { return None };
    let [host, Value::Int(port), ..] = &primary[..] else { return None };
    let host = if *host == Value::Nil { String::new() } else { script::text(host) };
    let (from, to) = (usize::try_from(*from).ok()?, usize::try_from(*to).ok()?);
    (from <= to && to < SLOTS).then_some((from..=to, host, u16::try_from(*port).ok()?))
}

/// The slot of a hash tag: CRC16 (XMODEM) modulo 16384.
pub(super) fn slot_of(tag: &[u8]) -> u16 {
    let mut crc: u16 = 0;
    for byte in tag {
        crc ^= (*byte as u16) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
        }
    }
    crc % SLOTS as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!(slot_of(b"123456789"), 12_739, "the example of the Cluster specification");
        assert_eq!(slot_of(b"foo"), 12_182);
    }
}
