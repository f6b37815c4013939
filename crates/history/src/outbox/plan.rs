//! Which entries are delivered next, and for which source. Pure functions of what is stored.
//!
//! Totals count an entry once by (source, position): an amount at or below the position that its source has reached is
//! ignored. That is exact only if one position of a source never means two entries, and if the entries of a source are
//! delivered in order. A log that is set back gives its sequences again, to other entries; and an entry that was
//! moved into a spool may still be in the log, or in the spool of another process. Therefore:
//!
//! 1. Before an entry is delivered its mark is **claimed**. All claims for a sequence are in one row, which is changed by
//!    compare and set: an entry is claimed once, for one owner.
//! 2. An owner is an *incarnation* of the log, for consumers that read the log, or a *spool*: one opening of a spool's
//!    folder. A spool delivers its own entries, at their positions in it, in order. An entry that is claimed by
//!    another spool is not delivered: that folder has it.
//! 3. An entry that is claimed by an incarnation is delivered under it by any consumer, also when it comes again: it counts
//!    once, whether it was stored before or not. A claim says up to where its incarnation has been delivered; the next
//!    entry is the only one that may follow. A consumer that has a later one waits for the one that has it.
//! 4. An entry that is not claimed continues the present incarnation, unless that one has claimed its sequence for
//!    another entry. Then it begins a new incarnation, named after itself.

use crate::delivery::Entry;
use crate::limits::CLAIM_SLOT_SEQUENCES;

/// Who delivers claimed entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// Consumers, under this incarnation of the log.
    Incarnation(String),
    /// The spool with this source. The position is that of the first entry of the claim.
    Spool { source: String, position: u64 },
}

/// Entries of one slot that were claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) owner: Owner,
    pub(super) first: u64,
    pub(super) marks: Vec<u32>,
    /// The entries of its incarnation before this sequence are in history.
    pub(super) delivered: u64,
}

impl Claim {
    pub(super) fn end(&self) -> u64 {
        self.first + self.marks.len() as u64
    }

    fn has(&self, entry: &Entry) -> bool {
        let place = entry.sequence.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.marks.get(place)) == Some(&entry.mark)
    }

    pub(super) fn is_of(&self, name: &str) -> bool {
        matches!(&self.owner, Owner::Incarnation(incarnation) if incarnation == name)
    }

    fn is_of_spool(&self) -> bool {
        matches!(self.owner, Owner::Spool { .. })
    }

    /// Whether it has the entry for this position of a spool.
    fn has_at(&self, entry: &Entry, of: &str) -> bool {
        match &self.owner {
            Owner::Spool { source, position } => {
                source == of && self.has(entry) && position + (entry.sequence - self.first) == entry.position
            }
            Owner::Incarnation(_) => false,
        }
    }
}

/// What is to be done with the next entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// To be delivered under an incarnation of the log.
    Deliver,
    /// To be delivered for the spool that they are in.
    DeliverOwn,
    /// In history already, or in a spool that delivers them.
    Skip,
    /// Another spool has the entries before them, which come first.
    Wait,
}

/// Entries at the front of a page that are treated alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) action: Action,
    /// What they are delivered under; empty for those of a spool.
    pub(super) incarnation: String,
    /// How many of the entries.
    pub(super) len: usize,
    /// They must be claimed first.
    pub(super) is_new: bool,
    /// The incarnation that the entry after them continues. Empty = it begins one.
    pub(super) next: String,
}

/// The slot of a sequence: its claims are in one row.
pub(super) fn slot(sequence: u64) -> u64 {
    sequence / CLAIM_SLOT_SEQUENCES
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

/// The first run of entries of a log, which are not empty and of one slot. `present` is the incarnation that they
/// continue; it is empty at the beginning of a log and after a set-back. `claims` are those of the slot. `is_spooled` = some
/// entries of the log were moved into spools.
pub(super) fn first_run(present: &str, entries: &[Entry], claims: &[Claim], is_spooled: bool) -> Run {
    let first = &entries[0];
    let (present, closed) = present.strip_prefix(CLOSED).map_or((present, None), |closed| ("", Some(closed)));
    let claims = || claims.iter().filter(|claim| closed.is_none_or(|closed| !claim.is_of(closed)));
    let mut begun = incarnation_of(first);
    if closed == Some(&begun) {
        begun.push(CLOSED);
    }
    let count = |is_so: &dyn Fn(&Entry) -> bool| entries.iter().take_while(|entry| is_so(entry)).count();
    // The last one: what was claimed for a source that was closed is claimed again.
    let Some(claim) = claims().rev().find(|claim| claim.has(first)) else {
        let ends = |claim: &Claim| claim.is_of(present) && claim.end() > first.sequence;
        let is_over = present.is_empty() || claims().any(ends);
        let incarnation = if is_over { begun } else { present.to_owned() };
        let len = count(&|entry| !claims().any(|claim| claim.has(entry)));
        let (action, next) = (Action::Deliver, incarnation.clone());
        return Run { action, incarnation, len, is_new: true, next };
    };
    let skip = |len, next| Run { action: Action::Skip, incarnation: String::new(), len, is_new: false, next };
    let Owner::Incarnation(incarnation) = &claim.owner else {
        let of_spool = |entry: &Entry| claims().any(|claim| claim.is_of_spool() && claim.has(entry));
        return skip(count(&of_spool), String::new());
    };
    // A consumer that crashed after its claim is continued. After a set-back the claimed incarnation has ended: it may
    // have delivered sequences that the log will give again.
    let goes_on = incarnation == present || present.is_empty() && *incarnation == begun;
    let next = if goes_on { incarnation.clone() } else { String::new() };
    if first.sequence < claim.delivered {
        return skip(count(&|entry| entry.sequence < claim.delivered && claim.has(entry)), next);
    }
    let follows = first.sequence == claim.delivered || incarnation == present;
    let action = if follows || !is_spooled { Action::Deliver } else { Action::Wait };
    let len = count(&|entry| claim.has(entry));
    Run { action, incarnation: incarnation.clone(), len, is_new: false, next }
}

/// The first run of entries of a spool, which are not empty. `claims` are those of the first entry's slot.
/// `acknowledged` is an incarnation of the log, and up to where it was delivered.
pub(super) fn spooled_run(
    source: &str,
    entries: &[Entry],
    claims: &[Claim],
    acknowledged: Option<(&str, u64)>,
) -> Run {
    let first = &entries[0];
    let in_order = entries.iter().zip(first.sequence..);
    let in_order = || in_order.clone().take_while(|(entry, sequence)| entry.sequence == *sequence);
    let in_slot = || {
        in_order().map(|(entry, _)| entry).take_while(|entry| slot(entry.sequence) == slot(first.sequence))
    };
    let count = |is_so: &dyn Fn(&Entry) -> bool| in_slot().take_while(|entry| is_so(entry)).count();
    let run = |action, incarnation: &str, len| {
        let (incarnation, next) = (incarnation.to_owned(), String::new());
        Run { action, incarnation, len, is_new: false, next }
    };
    let Some(claim) = claims.iter().rev().find(|claim| claim.has(first)) else {
        let len = count(&|entry| !claims.iter().any(|claim| claim.has(entry)));
        return Run { is_new: true, ..run(Action::DeliverOwn, "", len) };
    };
    let Owner::Incarnation(incarnation) = &claim.owner else {
        if claim.has_at(first, source) {
            return run(Action::DeliverOwn, "", count(&|entry| claim.has_at(entry, source)));
        }
        let of_other = |entry: &Entry| {
            claims.iter().any(|claim| claim.is_of_spool() && claim.has(entry) && !claim.has_at(entry, source))
        };
        return run(Action::Skip, "", count(&of_other));
    };
    let through = acknowledged.filter(|(of, _)| of == incarnation).map_or(0, |(_, through)| through + 1);
    let delivered = claim.delivered.max(through);
    if first.sequence < delivered {
        return run(Action::Skip, "", count(&|entry| entry.sequence < delivered && claim.has(entry)));
    }
    let action = if first.sequence == delivered { Action::Deliver } else { Action::Wait };
    run(action, incarnation, count(&|entry| claim.has(entry)))
}

/// The claims of a slot and one more: of entries that follow each other. It is joined with one that it continues.
pub(super) fn with_claim(claims: &[Claim], owner: Owner, entries: &[Entry]) -> Vec<Claim> {
    let mut claims = claims.to_vec();
    let (first, marks) = (entries[0].sequence, entries.iter().map(|entry| entry.mark));
    let continues = |claim: &&mut Claim| {
        claim.end() == first
            && match (&claim.owner, &owner) {
                (Owner::Spool { source, position }, Owner::Spool { source: of, position: at }) => {
                    source == of && position + claim.marks.len() as u64 == *at
                }
                (one, other) => one == other,
            }
    };
    match claims.iter_mut().find(continues) {
        Some(claim) => {
            claim.marks.extend(marks);
            claim.delivered = claim.delivered.max(first);
        }
        None => claims.push(Claim { owner, first, marks: marks.collect(), delivered: first }),
    }
    claims
}

/// The claims of a slot after entries of an incarnation up to a sequence were delivered.
pub(super) fn with_delivered(claims: &[Claim], incarnation: &str, last: &Entry) -> Vec<Claim> {
    let mut claims = claims.to_vec();
    let of_it = |claim: &&mut Claim| claim.is_of(incarnation) && claim.has(last);
    if let Some(claim) = claims.iter_mut().find(of_it) {
        claim.delivered = claim.delivered.max(last.sequence + 1);
    }
    claims
}

/// The mark of bytes that are not an entry: an external client wrote them, and they have none.
pub(super) fn mark_of_bytes(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}
