//! Repeatable random numbers (SplitMix64).

use std::time::{SystemTime, UNIX_EPOCH};

/// A repeatable random stream.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// A different seed in every run; print it to repeat a failure.
    pub fn random_seed() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        Rng(since ^ u64::from(std::process::id()).rotate_left(40)).next_u64() >> 16
    }

    /// The next number, of all 64-bit numbers with equal chance.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next_u64() % n as u64) as usize
    }

    /// A number from `from` to `to`, both included.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        from + (self.next_u64() % (to - from + 1) as u64) as i64
    }

    /// An element of a list that is not empty, at random.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}
