//! Which slot a key belongs to.

/// Slots of a cluster.
pub(super) const SLOTS: u16 = 16_384;

/// The cluster slot of a key: of what stands between its first `{` and the next `}`, or of the whole
/// key when there is no such part or it is empty.
pub fn key_slot(key: &[u8]) -> u16 {
    crc16(tag(key)) % SLOTS
}

fn tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|b| *b == b'{') else { return key };
    let rest = &key[open + 1..];
    match rest.iter().position(|b| *b == b'}') {
        Some(close) if close > 0 => &rest[..close],
        _ => key,
    }
}

/// CRC-16/XMODEM, bit by bit: tests do not need a table.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc: u16, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(key_slot(b"foo"), 12_182);
        assert_eq!(key_slot(b"{foo}.bar"), key_slot(b"foo"));
        assert_eq!(key_slot(b"a{foo}{bar}"), key_slot(b"foo"));
        assert_ne!(key_slot(b"{}foo"), key_slot(b"foo"));
    }
}
