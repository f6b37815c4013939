//! Who is known to be in a field: hints of one process, so that a player need not ask the store whom it can hit.
//!
//! Other processes kill, spawn and tear down meanwhile, and ids are used again. What stands here may be gone, or be
//! somebody else by now; whoever meets that strikes it out, and the field is listed again every now and then.

use crate::plan::SPOTS_PER_FIELD;
use fastrand::Rng;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Friendly monsters of a field that a process knows.
const FRIENDS: usize = 4;

/// One field.
pub(super) struct Roster {
    /// Ids of monsters; 0 is an empty place.
    monsters: Vec<AtomicU32>,
    /// Ids of monsters that may have a drop timer.
    friends: [AtomicU32; FRIENDS],
    /// What stands on each spot.
    spots: Vec<Standing>,
}

/// What is known of a spot.
struct Standing {
    /// The reactor; 0 is none.
    reactor: AtomicU32,
    /// When it is worth asking again, in milliseconds since the game began: the spot cools down until then.
    ask_at: AtomicU64,
}

impl Roster {
    /// A field in which about so many monsters live. Some more have room too: they walk about.
    pub(super) fn new(monsters: usize) -> Roster {
        let nobody = || AtomicU32::new(0);
        let empty = || Standing { reactor: nobody(), ask_at: AtomicU64::new(0) };
        Roster {
            monsters: (0..(monsters + monsters / 2 + 4)).map(|_| nobody()).collect(),
            friends: std::array::from_fn(|_| nobody()),
            spots: (0..SPOTS_PER_FIELD).map(|_| empty()).collect(),
        }
    }

    /// A monster at a random place, with the place.
    pub(super) fn pick(&self, random: &mut Rng) -> Option<(usize, u32)> {
        let place = random.usize(..self.monsters.len());
        let id = self.monsters[place].load(Relaxed);
        (id != 0).then_some((place, id))
    }

    /// Puts a monster at a place, whatever stood there.
    pub(super) fn put(&self, place: usize, id: u32) {
        self.monsters[place].store(id, Relaxed);
    }

    /// Puts a monster at an empty place, if one is found.
    pub(super) fn enter(&self, random: &mut Rng, id: u32) {
        let start = random.usize(..self.monsters.len());
        let (after, before) = (&self.monsters[start..], &self.monsters[..start]);
        let _ = after.iter().chain(before).any(|place| swap(place, 0, id));
    }

    /// Strikes out who is not there.
    pub(super) fn strike_out(&self, place: usize, id: u32) {
        swap(&self.monsters[place], id, 0);
    }

    /// Takes in a listing of the field.
    pub(super) fn refresh(&self, random: &mut Rng, living: impl IntoIterator<Item = u32>) {
        let mut missing: HashSet<u32> = living.into_iter().collect();
        for place in &self.monsters {
            let id = place.load(Relaxed);
            if id != 0 && !missing.remove(&id) {
                swap(place, id, 0);
            }
        }
        missing.into_iter().for_each(|id| self.enter(random, id));
    }

    /// Empties the field.
    pub(super) fn clear(&self) {
        self.monsters.iter().chain(&self.friends).for_each(|place| place.store(0, Relaxed));
        self.spots.iter().for_each(|spot| spot.reactor.store(0, Relaxed));
    }

    /// Makes a friend known, in place of an earlier one if there are many.
    pub(super) fn befriend(&self, random: &mut Rng, id: u32) {
        let empty = self.friends.iter().any(|place| swap(place, 0, id));
        if !empty {
            self.friends[random.usize(..FRIENDS)].store(id, Relaxed);
        }
    }

    /// A friend at a random place.
    pub(super) fn friend(&self, random: &mut Rng) -> Option<u32> {
        Some(self.friends[random.usize(..FRIENDS)].load(Relaxed)).filter(|id| *id != 0)
    }

    /// Strikes out a friend who is not there.
    pub(super) fn unfriend(&self, id: u32) {
        for place in &self.friends {
            swap(place, id, 0);
        }
    }

    /// The reactor on a spot.
    pub(super) fn reactor(&self, spot: usize) -> Option<u32> {
        Some(self.spots[spot].reactor.load(Relaxed)).filter(|id| *id != 0)
    }

    /// A reactor stands on a spot.
    pub(super) fn stands(&self, spot: usize, id: u32) {
        self.spots[spot].reactor.store(id, Relaxed);
    }

    /// A reactor is gone.
    pub(super) fn fell(&self, spot: usize, id: u32) {
        swap(&self.spots[spot].reactor, id, 0);
    }

    /// Whether it is worth trying to put a reactor on a spot.
    pub(super) fn is_free(&self, spot: usize, now_ms: u64) -> bool {
        self.reactor(spot).is_none() && self.spots[spot].ask_at.load(Relaxed) <= now_ms
    }

    /// A spot cools down.
    pub(super) fn cools_until(&self, spot: usize, ms: u64) {
        self.spots[spot].ask_at.store(ms, Relaxed);
    }
}

/// Replaces one value by another, if it is there.
fn swap(place: &AtomicU32, from: u32, to: u32) -> bool {
    place.compare_exchange(from, to, Relaxed, Relaxed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(roster: &Roster) -> Vec<u32> {
        let mut ids: Vec<u32> =
            roster.monsters.iter().map(|id| id.load(Relaxed)).filter(|id| *id != 0).collect();
        ids.sort();
        ids
    }

    #[test]
    fn a_listing_replaces_what_is_gone_and_keeps_the_others_in_their_places() {
        let (roster, mut random) = (Roster::new(4), Rng::with_seed(1));
        roster.put(0, 7);
        roster.put(1, 8);
        roster.refresh(&mut random, [8, 9]);
        assert_eq!(known(&roster), [8, 9]);
        assert_eq!(roster.monsters[1].load(Relaxed), 8);
        roster.strike_out(1, 9);
        assert_eq!(known(&roster), [8, 9], "another monster stands there");
        roster.strike_out(1, 8);
        assert_eq!(known(&roster), [9]);
    }

    #[test]
    fn more_than_have_room_are_no_trouble() {
        let (roster, mut random) = (Roster::new(1), Rng::with_seed(1));
        roster.refresh(&mut random, 1..100);
        assert_eq!(known(&roster).len(), roster.monsters.len());
        roster.clear();
        assert!(known(&roster).is_empty());
    }

    #[test]
    fn a_spot_is_asked_for_again_when_it_has_cooled_down() {
        let roster = Roster::new(1);
        roster.stands(3, 77);
        assert!(!roster.is_free(3, 0));
        roster.cools_until(3, 500);
        roster.fell(3, 77);
        assert!(!roster.is_free(3, 499) && roster.is_free(3, 500));
    }
}
