//! The file of a snapshot, byte by byte.
#![doc = include_str!("../../../../docs/snapshot-format.md")]

use crate::info::SnapshotInfo;
use crate::limits::BLOCK_BYTES_MAX;
use std::io::{self, Read};

/// The first bytes of a file.
pub(super) const MAGIC: &[u8; 8] = b"EMBSNAP\n";
/// The last bytes of a file.
pub(super) const END: &[u8; 8] = b"EMBSEND\n";
/// The format that is written.
pub(super) const VERSION: u32 = 1;
/// Bytes before the first block.
pub(super) const HEADER_BYTES: usize = 12;
/// Bytes behind the last block.
pub(super) const FOOTER_BYTES: usize = 20;

/// What a block has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// Keys.
    Keys = b'K' as isize,
    /// The metadata; the last block.
    Info = b'I' as isize,
}

impl BlockKind {
    fn from(byte: u8) -> Option<BlockKind> {
        [BlockKind::Keys, BlockKind::Info].into_iter().find(|kind| *kind as u8 == byte)
    }
}

pub(super) fn header() -> Vec<u8> {
    [&MAGIC[..], &VERSION.to_le_bytes()].concat()
}

/// A block: kind, length, checksum of both and of the payload, payload.
pub(super) fn block(kind: BlockKind, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("blocks are bounded");
    let mut out = Vec::with_capacity(payload.len() + 9);
    out.push(kind as u8);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&crc32c::crc32c_append(crc32c::crc32c(&out), payload).to_le_bytes());
    out.extend_from_slice(payload);
    out
}

/// Where the last block begins, with a checksum.
pub(super) fn footer(info_at: u64) -> Vec<u8> {
    let at = info_at.to_le_bytes();
    [&at[..], &crc32c::crc32c(&at).to_le_bytes(), END].concat()
}

/// The place of the last block in a footer.
pub(super) fn info_at(footer: &[u8; FOOTER_BYTES]) -> Option<u64> {
    let (at, rest) = footer.split_first_chunk::<8>()?;
    let (checksum, end) = rest.split_first_chunk::<4>()?;
    let is_whole = end == END && u32::from_le_bytes(*checksum) == crc32c::crc32c(at);
    is_whole.then(|| u64::from_le_bytes(*at))
}

/// Reads a block. The inner error says what is wrong with it.
pub(super) fn read_block(input: &mut impl Read) -> io::Result<Result<(BlockKind, Vec<u8>), &'static str>> {
    let mut start = [0; 9];
    if let Err(error) = input.read_exact(&mut start) {
        return ended_early(error, "the file ends within a block");
    }
    let [kind, length @ .., _, _, _, _] = start;
    let length = u32::from_le_bytes(length) as usize;
    let Some(found) = BlockKind::from(kind) else { return Ok(Err("a block of no known kind")) };
    if length > BLOCK_BYTES_MAX {
        return Ok(Err("a block longer than any"));
    }
    let mut payload = Vec::new();
    if input.take(length as u64).read_to_end(&mut payload)? < length {
        return Ok(Err("the file ends within a block"));
    }
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&start[..5]), &payload);
    Ok(if start[5..] == checksum.to_le_bytes() {
        Ok((found, payload))
    } else {
        Err("a block with a wrong checksum")
    })
}

fn ended_early<T>(error: io::Error, problem: &'static str) -> io::Result<Result<T, &'static str>> {
    if error.kind() == io::ErrorKind::UnexpectedEof { Ok(Err(problem)) } else { Err(error) }
}

/// The metadata in a block.
pub(super) fn parse_info(payload: &[u8]) -> Result<SnapshotInfo, &'static str> {
    serde_json::from_slice(payload).map_err(|_| "metadata that cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_of_a_block_is_found() {
        let sound = block(BlockKind::Keys, b"payload");
        assert_eq!(read_block(&mut &sound[..]).unwrap(), Ok((BlockKind::Keys, b"payload".to_vec())));
        for place in 0..sound.len() {
            let mut damaged = sound.clone();
            damaged[place] ^= 1;
            assert!(read_block(&mut &damaged[..]).unwrap().is_err(), "byte {place}");
            assert!(read_block(&mut &sound[..place]).unwrap().is_err(), "cut at {place}");
        }
        let sound: [u8; FOOTER_BYTES] = footer(77).try_into().expect("its length");
        assert_eq!(info_at(&sound), Some(77));
        for place in 0..FOOTER_BYTES {
            let mut damaged = sound;
            damaged[place] ^= 1;
            assert_eq!(info_at(&damaged), None, "byte {place}");
        }
    }
}
