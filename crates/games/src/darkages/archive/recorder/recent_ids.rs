//! The last ids that were seen, in bounded memory.

use std::collections::{HashSet, VecDeque};
use uuid::Uuid;

#[derive(Debug)]
pub(super) struct RecentIds {
    ids: HashSet<Uuid>,
    order: VecDeque<Uuid>,
    max: usize,
}

impl RecentIds {
    pub(super) fn new(max: usize) -> RecentIds {
        RecentIds { ids: HashSet::new(), order: VecDeque::new(), max }
    }

    pub(super) fn contains(&self, id: &Uuid) -> bool {
        self.ids.contains(id)
    }

    /// Remembers an id and forgets the oldest beyond the bound.
    pub(super) fn insert(&mut self, id: Uuid) {
        if self.ids.insert(id) {
            self.order.push_back(id);
        }
        while self.order.len() > self.max {
            self.order.pop_front().map(|oldest| self.ids.remove(&oldest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let mut recent = RecentIds::new(2);
        for id in [1, 2, 2, 3] {
            recent.insert(Uuid::from_u128(id));
        }
        let known: Vec<_> = (1..=3).map(|id| recent.contains(&Uuid::from_u128(id))).collect();
        assert_eq!(known, [false, true, true]);
    }
}
