//! Latencies in buckets of fixed number: counting one costs the same at the first hit and at the millionth.
//!
//! A list of all of them would grow by megabytes a second, and the kernel would clear that memory on the workers'
//! time. Thirty-two buckets to a doubling: a value is told to three percent, the largest exactly.

/// Buckets per doubling.
const FINE: u32 = 32;
const FINE_BITS: u32 = FINE.ilog2();
/// One row for the values below [`FINE`], one for every doubling above.
const BUCKETS: usize = (FINE * (32 - FINE_BITS + 1)) as usize;

/// How often each latency was seen.
#[derive(Clone)]
pub(super) struct Histogram {
    counts: Vec<u32>,
    count: u64,
    max: u32,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], count: 0, max: 0 }
    }
}

impl Histogram {
    pub(super) fn push(&mut self, value: u32) {
        self.counts[bucket(value)] += 1;
        self.count += 1;
        self.max = self.max.max(value);
    }

    /// All that another one has seen, too.
    pub(super) fn absorb(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// How many values it has seen.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn max(&self) -> u32 {
        self.max
    }

    /// The value below which `share` of all lie; 0 of none.
    pub(super) fn percentile(&self, share: f64) -> u32 {
        let wanted = (self.count as f64 * share) as u64;
        let mut below = 0;
        let passes = |count: &u32| {
            below += u64::from(*count);
            below > wanted
        };
        self.counts.iter().position(passes).map_or(self.max, |bucket| least(bucket as u32))
    }
}

fn bucket(value: u32) -> usize {
    if value < FINE {
        return value as usize;
    }
    let doubling = value.ilog2() - FINE_BITS;
    ((doubling << FINE_BITS) + (value >> doubling)) as usize
}

/// The least value of a bucket.
fn least(bucket: u32) -> u32 {
    let doubling = (bucket >> FINE_BITS).saturating_sub(1);
    (bucket - (doubling << FINE_BITS)) << doubling
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_at_most_three_percent_wide() {
        for value in [0, 1, 31, 32, 33, 63, 64, 65, 999, 123_456, u32::MAX] {
            let told = least(bucket(value) as u32);
            assert!(told <= value && u64::from(value - told) * 32 <= u64::from(value), "{value} {told}");
        }
        assert_eq!(bucket(u32::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_of_few_and_of_many() {
        let mut few = Histogram::default();
        assert_eq!((few.percentile(0.99), few.max()), (0, 0));
        few.push(7);
        assert_eq!((few.percentile(0.99), few.max()), (7, 7));
        let mut many = Histogram::default();
        (0..1_000).for_each(|value| many.push(value));
        many.absorb(&few);
        assert_eq!((many.count(), many.max()), (1_001, 999));
        assert!((960..=990).contains(&many.percentile(0.99)), "{}", many.percentile(0.99));
    }
}
