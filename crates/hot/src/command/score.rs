//! Scores of sorted sets.

use crate::error::{Error, Result};
use std::fmt;

/// A sorted-set score: a double that is never NaN, and for which -0 is 0.
#[derive(Debug, Clone, Copy)]
pub struct Score(pub(super) f64);

impl Score {
    /// Accepts every double but NaN.
    pub fn new(value: f64) -> Result<Score> {
        if value.is_nan() {
            return Err(Error::invalid("score", "NaN, expected a number or an infinity"));
        }
        Ok(Score(value + 0.0))
    }

    /// A time or count as a score; exact below 2^53.
    pub fn from_i64(value: i64) -> Score {
        Score(value as f64)
    }

    /// The sum as the server computes it.
    pub fn plus(self, by: Score) -> Score {
        Score(self.0 + by.0 + 0.0)
    }

    /// The score as a double; never NaN.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Score {}
impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Score {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
impl std::hash::Hash for Score {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}
/// Redis' own text of a score (`%.17g` without noise): what `ZSCORE` prints and `ZADD` reads.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            x if x == f64::INFINITY => f.write_str("inf"),
            x if x == f64::NEG_INFINITY => f.write_str("-inf"),
            x if x.abs() < 1e17 && x.fract() == 0.0 => write!(f, "{}", x as i64),
            x => write!(f, "{x:e}"),
        }
    }
}
