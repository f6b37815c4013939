//! The order of a sorted set: by score, then by the member's bytes, with positions.
//!
//! A list of sorted blocks of at most [`BLOCK_MAX`] items. Finding a place is two binary searches; a
//! position is the number of items in the blocks before it, which [`PrefixSums`] has in logarithmic time.
//! Inserting moves at most one block's items. Only when a block is split or joined, about once in 256 changes
//! of a block, the list of blocks moves and the sums are made anew: some 4,000 numbers for a million items.
//! Invariants: no block is empty; all items are in order; the sums are those of the blocks' lengths.

use crate::command::Score;
use std::sync::Arc;

/// Items of a full block. At 24 bytes an item, an insertion moves 12 KiB at most.
const BLOCK_MAX: usize = 512;
/// A block shorter than this is joined with its neighbour if both fit into one with room to spare.
const BLOCK_SMALL: usize = BLOCK_MAX / 4;

/// A member with its score. The member's bytes are shared with the map from member to score.
pub(super) type Item = (Score, Arc<[u8]>);

/// The members of a sorted set by score, then by bytes.
#[derive(Debug, Default)]
pub(super) struct SortedBlocks {
    blocks: Vec<Vec<Item>>,
    sums: PrefixSums,
    len: usize,
}

impl SortedBlocks {
    /// How many members there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds an item that is not there yet.
    pub(super) fn insert(&mut self, item: Item) {
        self.len += 1;
        let block = self.block_of(&item);
        let Some(items) = self.blocks.get_mut(block) else {
            return self.append(item);
        };
        let at = items.partition_point(|held| *held < item);
        items.insert(at, item);
        if items.len() > BLOCK_MAX {
            let upper = items.split_off(BLOCK_MAX / 2);
            self.blocks.insert(block + 1, upper);
            self.sums = PrefixSums::of(&self.blocks);
        } else {
            self.sums.increase(block);
        }
    }

    /// Adds behind everything. A full last block is left full, so that ascending scores (times) fill blocks
    /// instead of halving each.
    fn append(&mut self, item: Item) {
        match self.blocks.last_mut() {
            Some(last) if last.len() < BLOCK_MAX => {
                last.push(item);
                self.sums.increase(self.blocks.len() - 1);
            }
            _ => {
                self.blocks.push(vec![item]);
                self.sums = PrefixSums::of(&self.blocks);
            }
        }
    }

    /// Removes an item; nothing happens if it is not there.
    pub(super) fn remove(&mut self, item: &Item) {
        let block = self.block_of(item);
        let Some(items) = self.blocks.get_mut(block) else { return };
        let Ok(at) = items.binary_search(item) else { return };
        items.remove(at);
        self.len -= 1;
        self.sums.decrease(block);
        self.join_if_small(block);
    }

    fn join_if_small(&mut self, block: usize) {
        let len = self.blocks[block].len();
        if len == 0 {
            self.blocks.remove(block);
            self.sums = PrefixSums::of(&self.blocks);
        } else if len < BLOCK_SMALL {
            let left = if block + 1 < self.blocks.len() { block } else { block.saturating_sub(1) };
            if left + 1 < self.blocks.len()
                && self.blocks[left].len() + self.blocks[left + 1].len() <= BLOCK_MAX / 2
            {
                let mut right = self.blocks.remove(left + 1);
                self.blocks[left].append(&mut right);
                self.sums = PrefixSums::of(&self.blocks);
            }
        }
    }

    /// The first block whose last item is not below `item`; one past the end if there is none.
    fn block_of(&self, item: &Item) -> usize {
        self.blocks.partition_point(|items| items.last().is_some_and(|last| last < item))
    }

    /// How many items at the beginning fulfil `below`, which must be true of a prefix of the order.
    pub(super) fn rank(&self, below: impl Fn(&Item) -> bool) -> usize {
        let block = self.blocks.partition_point(|items| items.last().is_some_and(&below));
        self.sums.before(block) + self.blocks.get(block).map_or(0, |items| items.partition_point(&below))
    }

    /// Items from position `from` on, ascending.
    pub(super) fn ascending(&self, from: usize) -> impl Iterator<Item = &Item> {
        let (block, at) = self.sums.locate(from);
        let first = self.blocks.get(block).map_or(&[][..], |items| &items[at..]);
        first.iter().chain(self.blocks.iter().skip(block + 1).flatten())
    }

    /// Items before position `end`, descending.
    pub(super) fn descending(&self, end: usize) -> impl Iterator<Item = &Item> {
        let (block, at) = self.sums.locate(end);
        let first = self.blocks.get(block).map_or(&[][..], |items| &items[..at]);
        first.iter().rev().chain(self.blocks[..block].iter().rev().flat_map(|items| items.iter().rev()))
    }
}

/// How many items stand before a block, as a Fenwick tree of the blocks' lengths: element `n` (from 1) has the
/// sum of as many lengths up to the `n`th as its lowest set bit says.
#[derive(Debug, Default)]
struct PrefixSums(Vec<usize>);

/// The lowest set bit.
fn lowest_bit(n: usize) -> usize {
    n & n.wrapping_neg()
}

impl PrefixSums {
    fn of(blocks: &[Vec<Item>]) -> PrefixSums {
        let mut sums: Vec<usize> = blocks.iter().map(Vec::len).collect();
        for n in 1..=sums.len() {
            let sum = sums[n - 1];
            if let Some(wider) = sums.get_mut(n + lowest_bit(n) - 1) {
                *wider += sum;
            }
        }
        PrefixSums(sums)
    }

    /// A block has one more item.
    fn increase(&mut self, block: usize) {
        let mut n = block + 1;
        while let Some(sum) = self.0.get_mut(n - 1) {
            *sum += 1;
            n += lowest_bit(n);
        }
    }

    /// A block has one item less.
    fn decrease(&mut self, block: usize) {
        let mut n = block + 1;
        while let Some(sum) = self.0.get_mut(n - 1) {
            *sum -= 1;
            n += lowest_bit(n);
        }
    }

    /// How many items are in the blocks before this one.
    fn before(&self, block: usize) -> usize {
        let (mut n, mut sum) = (block, 0);
        while n > 0 {
            sum += self.0[n - 1];
            n -= lowest_bit(n);
        }
        sum
    }

    /// Block and place of a position; one block past the end for positions beyond.
    fn locate(&self, position: usize) -> (usize, usize) {
        let (mut block, mut left) = (0, position);
        let mut step = self.0.len().checked_ilog2().map_or(0, |log| 1 << log);
        while step > 0 {
            if let Some(sum) = self.0.get(block + step - 1)
                && *sum <= left
            {
                block += step;
                left -= *sum;
            }
            step /= 2;
        }
        (block, if block < self.0.len() { left } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn item(score: i64, member: u16) -> Item {
        (Score::from_i64(score), Arc::from(member.to_be_bytes().as_slice()))
    }

    fn check(ranking: &SortedBlocks, model: &BTreeSet<Item>) {
        assert_eq!(ranking.len(), model.len());
        assert!(ranking.blocks.iter().all(|items| !items.is_empty() && items.len() <= BLOCK_MAX));
        let mut before = 0;
        for (block, items) in ranking.blocks.iter().enumerate() {
            assert_eq!(ranking.sums.before(block), before);
            before += items.len();
        }
        assert_eq!(ranking.sums.before(ranking.blocks.len()), before);
        assert!(ranking.ascending(0).eq(model.iter()));
        assert!(ranking.descending(model.len()).eq(model.iter().rev()));
        for position in [0, 1, model.len() / 3, model.len() / 2, model.len(), model.len() + 5] {
            assert!(ranking.ascending(position).eq(model.iter().skip(position)));
            let reversed: Vec<_> = model.iter().take(position).rev().collect();
            assert!(ranking.descending(position.min(model.len())).eq(reversed));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn it_behaves_like_a_tree_set_that_counts(
            operations in prop::collection::vec((any::<bool>(), -20i64..20, 0u16..600), 0..4_000),
            bounds in prop::collection::vec(-25i64..25, 8),
        ) {
            let (mut ranking, mut model) = (SortedBlocks::default(), BTreeSet::new());
            for (add, score, member) in operations {
                let item = item(score, member);
                if add || member % 3 == 0 {
                    if model.insert(item.clone()) { ranking.insert(item) }
                } else {
                    model.remove(&item);
                    ranking.remove(&item);
                }
            }
            check(&ranking, &model);
            for bound in bounds {
                let bound = Score::from_i64(bound);
                let expected = model.iter().filter(|(score, _)| *score < bound).count();
                prop_assert_eq!(ranking.rank(|(score, _)| *score < bound), expected);
            }
        }
    }

    #[test]
    fn it_grows_and_shrinks_through_many_blocks() {
        let (mut ranking, mut model) = (SortedBlocks::default(), BTreeSet::new());
        for n in 0..6_000u16 {
            let item = item(i64::from(n.wrapping_mul(7_919) % 1_000), n);
            model.insert(item.clone());
            ranking.insert(item);
        }
        check(&ranking, &model);
        let items: Vec<Item> = model.iter().cloned().collect();
        for (n, item) in items.into_iter().enumerate().filter(|(n, _)| n % 50 != 0) {
            ranking.remove(&item);
            model.remove(&item);
            if n % 997 == 0 {
                check(&ranking, &model);
            }
        }
        check(&ranking, &model);
        assert!(ranking.blocks.len() < 6, "{} blocks for {} items", ranking.blocks.len(), ranking.len());
    }

    #[test]
    fn ascending_scores_fill_their_blocks() {
        let mut ranking = SortedBlocks::default();
        (0..10_240u16).for_each(|n| ranking.insert(item(i64::from(n), n)));
        assert_eq!(ranking.blocks.len(), 10_240 / BLOCK_MAX);
    }
}
