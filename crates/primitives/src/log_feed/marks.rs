//! The marks of a page that was applied, as one entry of the log of marks.
//!
//! | bytes | content |
//! |---|---|
//! | 2 | length of the source, big-endian |
//! | so many | the source |
//! | 8 | sequence of the first entry, big-endian |
//! | 4 each | the marks of the first and the following entries |

/// Marks of entries whose sequences follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) source: String,
    pub(super) first: u64,
    pub(super) marks: Vec<u32>,
}

impl Marks {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(10 + self.source.len() + 4 * self.marks.len());
        out.extend_from_slice(&(self.source.len() as u16).to_be_bytes());
        out.extend_from_slice(self.source.as_bytes());
        out.extend_from_slice(&self.first.to_be_bytes());
        self.marks.iter().for_each(|mark| out.extend_from_slice(&mark.to_be_bytes()));
        out
    }

    /// `None` if an external client wrote something else.
    pub(super) fn decode(bytes: &[u8]) -> Option<Marks> {
        let (len, bytes) = bytes.split_first_chunk::<2>()?;
        let (source, bytes) = bytes.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        let (first, marks) = bytes.split_first_chunk::<8>()?;
        let (marks, rest) = marks.as_chunks::<4>();
        let source = std::str::from_utf8(source).ok()?.to_owned();
        let marks = marks.iter().map(|mark| u32::from_be_bytes(*mark)).collect();
        rest.is_empty().then_some(Marks { source, first: u64::from_be_bytes(*first), marks })
    }

    /// Sequence and mark of each entry.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, u32)> {
        (self.first..).zip(self.marks.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn marks_are_read_back(source in "[^\\p{Cc}]{0,40}", first: u64, marks: Vec<u32>) {
            let marks = Marks { source, first, marks };
            prop_assert_eq!(Marks::decode(&marks.encode()), Some(marks));
        }

        #[test]
        fn other_bytes_do_not_panic(bytes: Vec<u8>) {
            Marks::decode(&bytes);
        }
    }
}
