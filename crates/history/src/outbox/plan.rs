//! Which entries are delivered next, and under which incarnation of their log. A pure function of what is stored.
//!
//! Totals count an entry once by (source, position): an amount at or below the position that its source has reached is
//! ignored. That is exact only if one position of a source never means two entries. A log that is set back gives its
//! sequences again, to other entries. Therefore:
//!
//! 1. Before entries are delivered under an incarnation, their marks are **claimed** for it. One claim wins for each
//!    (incarnation, first sequence), so two consumers never deliver different entries under one position.
//! 2. An entry whose mark is claimed is delivered under the incarnation of its claim, also when it comes again: it
//!    counts once, whether it was stored before or not.
//! 3. An entry that is not claimed continues the present incarnation, unless that one has claimed its sequence for
//!    another entry. Then it begins a new incarnation, named after itself.

use crate::delivery::Entry;

/// Entries that were claimed for an incarnation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) incarnation: String,
    pub(super) first: u64,
    pub(super) marks: Vec<u32>,
}

impl Claim {
    fn sequences(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.marks.len() as u64
    }

    fn has(&self, entry: &Entry) -> bool {
        let place = entry.sequence.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.marks.get(place)) == Some(&entry.mark)
    }
}

/// The next entries to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// What they are delivered under.
    pub(super) incarnation: String,
    /// How many of the entries.
    pub(super) len: usize,
    /// They must be claimed first.
    pub(super) is_new: bool,
    /// The incarnation that the entry after them continues. Empty = it begins one.
    pub(super) next: String,
}

/// The incarnation that begins with an entry.
pub(super) fn incarnation_of(entry: &Entry) -> String {
    format!("{}-{:08x}", entry.sequence, entry.mark)
}

/// What stands in place of the present incarnation if its source was closed: what it has claimed, and not
/// acknowledged, is delivered under another one.
pub(super) fn closed(incarnation: &str) -> String {
    format!("{CLOSED}{incarnation}")
}

const CLOSED: char = '~';

/// The first run of some entries, which are not empty. `present` is the incarnation that they continue; it is empty
/// at the beginning of a log and after a set-back. `claims` are all that overlap with the entries.
pub(super) fn first_run(present: &str, entries: &[Entry], claims: &[Claim]) -> Run {
    let first = &entries[0];
    let (present, closed) = present.strip_prefix(CLOSED).map_or((present, None), |closed| ("", Some(closed)));
    let claims = || claims.iter().filter(|claim| Some(claim.incarnation.as_str()) != closed);
    let mut begun = incarnation_of(first);
    if closed == Some(&begun) {
        begun.push(CLOSED);
    }
    let is_claimed = |entry: &Entry| claims().any(|claim| claim.has(entry));
    if let Some(Claim { incarnation, .. }) = claims().find(|claim| claim.has(first)) {
        let of_it =
            |entry: &&Entry| claims().any(|claim| claim.incarnation == *incarnation && claim.has(entry));
        let len = entries.iter().take_while(of_it).count();
        // A consumer that crashed after its claim is continued. After a set-back the claimed incarnation has ended: it may
        // have delivered sequences that the log will give again.
        let goes_on = incarnation == present || present.is_empty() && *incarnation == begun;
        let next = if goes_on { incarnation.clone() } else { String::new() };
        return Run { incarnation: incarnation.clone(), len, is_new: false, next };
    }
    let ends = |claim: &&Claim| claim.incarnation == present && claim.sequences().end > first.sequence;
    let incarnation =
        if present.is_empty() || claims().any(|claim| ends(&claim)) { begun } else { present.to_owned() };
    let len = entries.iter().take_while(|entry| !is_claimed(entry)).count();
    Run { next: incarnation.clone(), incarnation, len, is_new: true }
}

/// The mark of bytes that are not an entry: an external client wrote them, and they have none.
pub(super) fn mark_of_bytes(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}
