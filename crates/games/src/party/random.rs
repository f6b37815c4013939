//! The source of random codes and keys: the operating system, or a test.

use super::error::{Error, Result};
use std::sync::Arc;

/// Fills a buffer with random bytes.
type Fill = dyn Fn(&mut [u8]) -> Result<()> + Send + Sync;

/// A source of random bytes.
#[derive(Clone)]
pub struct RandomSource(Arc<Fill>);

impl RandomSource {
    /// The random source of the operating system.
    pub fn system() -> RandomSource {
        RandomSource(Arc::new(|bytes| {
            getrandom::fill(bytes).map_err(|error| Error::NoRandomness(error.to_string()))
        }))
    }

    /// A source for tests. Room codes and master keys are as predictable as its bytes.
    pub fn of(fill: impl Fn(&mut [u8]) + Send + Sync + 'static) -> RandomSource {
        RandomSource(Arc::new(move |bytes| {
            fill(bytes);
            Ok(())
        }))
    }

    pub(super) fn bytes<const N: usize>(&self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        (self.0)(&mut bytes)?;
        Ok(bytes)
    }
}
