//! The word list of a request, and the packed numbers that refer to it.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Longer words are rarely repeated, so they are not searched for.
const REPEATED_BYTES_MAX: usize = 64;

/// Words in the order of their places, from 0.
#[derive(Default)]
pub(super) struct Words {
    text: Vec<u8>,
    ends: Vec<usize>,
    /// Places of the short ones.
    places: HashTable<u32>,
    hasher: RandomState,
}

impl Words {
    /// Adds a word and returns its place.
    pub(super) fn push(&mut self, word: &[u8]) -> u32 {
        self.text.extend_from_slice(word);
        self.ends.push(self.text.len());
        self.ends.len() as u32 - 1
    }

    /// Returns the place of a word, and adds it if it is new.
    pub(super) fn once(&mut self, word: &[u8]) -> u32 {
        if word.len() > REPEATED_BYTES_MAX {
            return self.push(word);
        }
        let hash = self.hasher.hash_one(word);
        if let Some(place) = self.places.find(hash, |place| self.at(*place) == word) {
            return *place;
        }
        let place = self.push(word);
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        self.places.insert_unique(hash, place, |place| hasher.hash_one(slice(text, ends, *place)));
        place
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len() as u32).map(|place| self.at(place))
    }

    fn at(&self, place: u32) -> &[u8] {
        slice(&self.text, &self.ends, place)
    }
}

fn slice<'a>(text: &'a [u8], ends: &[usize], place: u32) -> &'a [u8] {
    let place = place as usize;
    let from = place.checked_sub(1).map_or(0, |before| ends[before]);
    &text[from..ends[place]]
}

/// Numbers as an array of MessagePack, which the server's Lua unpacks by one call.
pub(super) fn pack(numbers: &[u32]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(5 + 3 * numbers.len());
    packed.push(0xdd);
    packed.extend_from_slice(&(numbers.len() as u32).to_be_bytes());
    for number in numbers {
        match *number {
            small @ 0..=0x7f => packed.push(small as u8),
            byte @ 0x80..=0xff => packed.extend_from_slice(&[0xcc, byte as u8]),
            short @ 0x100..=0xffff => {
                packed.push(0xcd);
                packed.extend_from_slice(&(short as u16).to_be_bytes());
            }
            long => {
                packed.push(0xce);
                packed.extend_from_slice(&long.to_be_bytes());
            }
        }
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_word_is_passed_once() {
        let mut words = Words::default();
        assert_eq!(
            [words.once(b"GET"), words.once(b""), words.once(b"GET"), words.push(b"GET")],
            [0, 1, 0, 2]
        );
        let long = [7; REPEATED_BYTES_MAX + 1];
        assert_ne!(words.once(&long), words.once(&long));
        assert_eq!(words.iter().take(3).collect::<Vec<_>>(), [&b"GET"[..], b"", b"GET"]);
        assert_eq!((words.len(), words.bytes()), (5, 6 + 2 * long.len()));
    }

    #[test]
    fn numbers_are_packed_by_their_size() {
        assert_eq!(pack(&[]), [0xdd, 0, 0, 0, 0]);
        let packed = pack(&[0x7f, 0x80, 0x1234, 0x0001_0000]);
        let numbers = [0x7f, 0xcc, 0x80, 0xcd, 0x12, 0x34, 0xce, 0, 1, 0, 0];
        assert_eq!(packed, [&[0xdd, 0, 0, 0, 4], &numbers[..]].concat());
    }
}
