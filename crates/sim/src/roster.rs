//! What a process knows of a field, so that a simulated player need not ask the store for a target.
//!
//! These are hints. Other processes kill, spawn and tear down meanwhile, and ids are reused, so that an entry may be
//! stale. The player that finds a stale entry removes it, and the field is listed again from time to time.

use crate::plan::SPOTS_PER_FIELD;
use fastrand::Rng;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Friendly monsters per field.
const FRIENDS: usize = 4;

/// What actors believe to be in one field. It may be outdated.
pub(super) struct Roster {
    /// Ids of monsters; 0 is an empty place.
    monsters: Vec<AtomicU32>,
    /// Ids of monsters that may have a drop timer.
    friends: [AtomicU32; FRIENDS],
    spots: Vec<Spot>,
}

/// A spot of a reactor.
struct Spot {
    /// The reactor; 0 is none.
    reactor: AtomicU32,
    /// The end of the cooldown, in milliseconds since the game began.
    free_at: AtomicU64,
}

impl Roster {
    /// A field of about this many monsters. There is room for more, because monsters move between fields.
    pub(super) fn new(monsters: usize) -> Roster {
        let no_id = || AtomicU32::new(0);
        let empty = || Spot { reactor: no_id(), free_at: AtomicU64::new(0) };
        Roster {
            monsters: (0..(monsters + monsters / 2 + 4)).map(|_| no_id()).collect(),
            friends: std::array::from_fn(|_| no_id()),
            spots: (0..SPOTS_PER_FIELD).map(|_| empty()).collect(),
        }
    }

    /// A monster at a random place, with the place.
    pub(super) fn pick(&self, random: &mut Rng) -> Option<(usize, u32)> {
        let place = random.usize(..self.monsters.len());
        let id = self.monsters[place].load(Relaxed);
        (id != 0).then_some((place, id))
    }

    /// Puts a monster at a place, and forgets the one that was there.
    pub(super) fn put(&self, place: usize, id: u32) {
        self.monsters[place].store(id, Relaxed);
    }

    /// Puts a monster at an empty place, if one is found.
    pub(super) fn enter(&self, random: &mut Rng, id: u32) {
        let start = random.usize(..self.monsters.len());
        let (after, before) = (&self.monsters[start..], &self.monsters[..start]);
        let _ = after.iter().chain(before).any(|place| swap(place, 0, id));
    }

    /// Removes a monster that is not in the field any more.
    pub(super) fn remove(&self, place: usize, id: u32) {
        swap(&self.monsters[place], id, 0);
    }

    /// Replaces the monsters by a listing of the field.
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

    /// Forgets all monsters and reactors of the field.
    pub(super) fn clear(&self) {
        self.monsters.iter().chain(&self.friends).for_each(|place| place.store(0, Relaxed));
        self.spots.iter().for_each(|spot| spot.reactor.store(0, Relaxed));
    }

    /// Adds a friendly monster, in place of another one if all places are taken.
    pub(super) fn add_friend(&self, random: &mut Rng, id: u32) {
        let empty = self.friends.iter().any(|place| swap(place, 0, id));
        if !empty {
            self.friends[random.usize(..FRIENDS)].store(id, Relaxed);
        }
    }

    /// A random friendly monster.
    pub(super) fn friend(&self, random: &mut Rng) -> Option<u32> {
        Some(self.friends[random.usize(..FRIENDS)].load(Relaxed)).filter(|id| *id != 0)
    }

    /// Removes a friendly monster that is not in the field any more.
    pub(super) fn remove_friend(&self, id: u32) {
        for place in &self.friends {
            swap(place, id, 0);
        }
    }

    /// The reactor on a spot.
    pub(super) fn reactor(&self, spot: usize) -> Option<u32> {
        Some(self.spots[spot].reactor.load(Relaxed)).filter(|id| *id != 0)
    }

    /// Notes a reactor on a spot.
    pub(super) fn put_reactor(&self, spot: usize, id: u32) {
        self.spots[spot].reactor.store(id, Relaxed);
    }

    /// Removes a reactor from a spot.
    pub(super) fn remove_reactor(&self, spot: usize, id: u32) {
        swap(&self.spots[spot].reactor, id, 0);
    }

    /// Whether a reactor can probably be created on a spot.
    pub(super) fn is_free(&self, spot: usize, now_ms: u64) -> bool {
        self.reactor(spot).is_none() && self.spots[spot].free_at.load(Relaxed) <= now_ms
    }

    /// Starts the cooldown of a spot.
    pub(super) fn cool_until(&self, spot: usize, ms: u64) {
        self.spots[spot].free_at.store(ms, Relaxed);
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
        roster.remove(1, 9);
        assert_eq!(known(&roster), [8, 9], "another monster stands there");
        roster.remove(1, 8);
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
        roster.put_reactor(3, 77);
        assert!(!roster.is_free(3, 0));
        roster.cool_until(3, 500);
        roster.remove_reactor(3, 77);
        assert!(!roster.is_free(3, 499) && roster.is_free(3, 500));
    }
}
