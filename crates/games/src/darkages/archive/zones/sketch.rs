//! A DDSketch: quantiles of positive numbers with a bounded relative error, and sketches that can be merged.
//!
//! A number `x` is counted in the bin `ceil(log_γ(x))` with `γ = (1 + α) / (1 - α)`. A bin's middle differs from each number
//! in it by a share of at most `α`, here 1 %. Merging adds the counts of equal bins, so that a merged sketch is the sketch of
//! all numbers. Numbers below [`SMALLEST`] count as zero. Beyond 2,048 bins the lowest are merged: high quantiles stay exact.
//!
//! As bytes: version (1), zeros (8), then bins in ascending order: number (4), count (8), all little-endian.

use super::super::limits::{SKETCH_BINS_MAX, SKETCH_RELATIVE_ERROR};
use std::collections::BTreeMap;

const VERSION: u8 = 1;
/// Numbers below it count as zero: a nanosecond, if the unit is a millisecond.
const SMALLEST: f64 = 1e-6;
const BIN_BYTES: usize = 12;

/// Counts of numbers by their size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sketch {
    zeros: u64,
    bins: BTreeMap<i32, u64>,
}

fn gamma() -> f64 {
    (1.0 + SKETCH_RELATIVE_ERROR) / (1.0 - SKETCH_RELATIVE_ERROR)
}

impl Sketch {
    /// Counts a number. One that is negative or not finite counts as zero; callers refuse those before.
    pub fn add(&mut self, number: f64) {
        if !number.is_finite() || number < SMALLEST {
            self.zeros = self.zeros.saturating_add(1);
            return;
        }
        let bin = (number.ln() / gamma().ln()).ceil() as i32;
        self.count(bin, 1);
        self.merge_lowest();
    }

    /// Counts what another sketch has counted.
    pub fn merge(&mut self, other: &Sketch) {
        self.zeros = self.zeros.saturating_add(other.zeros);
        other.bins.iter().for_each(|(bin, count)| self.count(*bin, *count));
        self.merge_lowest();
    }

    /// How many numbers were counted.
    pub fn len(&self) -> u64 {
        self.bins.values().fold(self.zeros, |sum, count| sum.saturating_add(*count))
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number that a share of all numbers, from 0 to 1, does not exceed; `None` if nothing was counted.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.len().checked_sub(1)?;
        let rank = (share.clamp(0.0, 1.0) * last as f64).floor() as u64;
        let mut below = self.zeros;
        if rank < below {
            return Some(0.0);
        }
        let found = self.bins.iter().find(|(_, count)| {
            below = below.saturating_add(**count);
            rank < below
        });
        found.or(self.bins.last_key_value()).map(|(bin, _)| 2.0 * gamma().powi(*bin) / (gamma() + 1.0))
    }

    /// The sketch as it is stored: its version, the zeros, then number and count of each bin.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend(self.zeros.to_le_bytes());
        for (bin, count) in &self.bins {
            bytes.extend(bin.to_le_bytes());
            bytes.extend(count.to_le_bytes());
        }
        bytes
    }

    /// The sketch of these bytes; `None` if they are not those of one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Sketch> {
        let (version, bytes) = bytes.split_first()?;
        let (zeros, rest) = bytes.split_first_chunk::<8>()?;
        if *version != VERSION || rest.len() % BIN_BYTES != 0 || rest.len() / BIN_BYTES > SKETCH_BINS_MAX {
            return None;
        }
        let mut sketch = Sketch { zeros: u64::from_le_bytes(*zeros), bins: BTreeMap::new() };
        for entry in rest.chunks_exact(BIN_BYTES) {
            let (bin, count) = entry.split_first_chunk::<4>()?;
            let (bin, count) = (i32::from_le_bytes(*bin), u64::from_le_bytes(count.try_into().ok()?));
            let is_next = sketch.bins.last_key_value().is_none_or(|(last, _)| *last < bin);
            if !is_next || count == 0 {
                return None;
            }
            sketch.bins.insert(bin, count);
        }
        Some(sketch)
    }

    fn count(&mut self, bin: i32, more: u64) {
        let count = self.bins.entry(bin).or_default();
        *count = count.saturating_add(more);
    }

    fn merge_lowest(&mut self) {
        while self.bins.len() > SKETCH_BINS_MAX {
            let Some((_, count)) = self.bins.pop_first() else { return };
            let Some(mut next) = self.bins.first_entry() else { return };
            *next.get_mut() = next.get().saturating_add(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sketch(numbers: &[f64]) -> Sketch {
        let mut sketch = Sketch::default();
        numbers.iter().for_each(|number| sketch.add(*number));
        sketch
    }

    proptest! {
        #[test]
        fn quantiles_are_within_the_relative_error(
            mut numbers in prop::collection::vec(1e-5_f64..1e9, 1..400), share in 0.0_f64..=1.0,
        ) {
            let found = sketch(&numbers).quantile(share).unwrap();
            numbers.sort_by(f64::total_cmp);
            let exact = numbers[(share * (numbers.len() - 1) as f64).floor() as usize];
            // A hair for the rounding of logarithms.
            prop_assert!((found - exact).abs() <= exact * (SKETCH_RELATIVE_ERROR + 1e-9), "{found} {exact}");
        }

        #[test]
        fn a_merged_sketch_is_that_of_all_numbers(
            numbers in prop::collection::vec(0.0_f64..1e6, 0..200), cut in 0_usize..200,
        ) {
            let (one, other) = numbers.split_at(cut.min(numbers.len()));
            let mut merged = sketch(one);
            merged.merge(&sketch(other));
            prop_assert_eq!(&merged, &sketch(&numbers));
            prop_assert_eq!(merged.len(), numbers.len() as u64);
            prop_assert_eq!(Sketch::from_bytes(&merged.to_bytes()), Some(merged));
        }

        #[test]
        fn bytes_of_others_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(sketch) = Sketch::from_bytes(&bytes) {
                prop_assert_eq!(sketch.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn numbers_at_the_limits() {
        assert_eq!(Sketch::default().quantile(0.5), None);
        let odd = sketch(&[f64::NAN, f64::INFINITY, -1.0, 0.0, 1e-9]);
        assert_eq!((odd.len(), odd.quantile(1.0)), (5, Some(0.0)));
        let wide = sketch(&(0..5_000).map(|n| gamma().powi(n - 600)).collect::<Vec<_>>());
        assert_eq!(wide.bins.len(), SKETCH_BINS_MAX);
        let (found, exact) = (wide.quantile(0.99).unwrap(), gamma().powi((4_999.0 * 0.99) as i32 - 600));
        assert!((found - exact).abs() <= exact * 0.021, "{found} {exact}");
        let full = Sketch { zeros: u64::MAX, bins: BTreeMap::from([(1, u64::MAX)]) };
        assert_eq!((full.len(), full.quantile(0.9)), (u64::MAX, Some(0.0)));
    }
}
