//! Durations as the API's milliseconds.

use std::time::Duration;

/// Rounded up, so that a client that waits this long does not come too early. `None` if it does not fit: such
/// a time never ends.
pub(crate) fn ceil_ms(time: Duration) -> Option<u64> {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).ok()
}
