//! Exponential backoff between retries, with jitter.

use std::time::Duration;
use tokio::time::sleep;

/// Growing pauses between retries of a store that is away.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    first: Duration,
    max: Duration,
}

impl Backoff {
    /// Pauses that double from the first one up to a maximum.
    pub(crate) const fn new(first: Duration, max: Duration) -> Backoff {
        Backoff { next: first, first, max }
    }

    /// A try succeeded: the next pause is the first one again.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }

    /// Waits before the next try.
    pub(crate) async fn wait(&mut self) {
        sleep(self.pause(fastrand::f64())).await;
    }

    /// The next pause: from half of it on, by a jitter of 0 to 1, so that many do not come back to a store at once.
    fn pause(&mut self, jitter: f64) -> Duration {
        let pause = self.next.mul_f64(0.5 + jitter / 2.0);
        self.next = (2 * self.next).min(self.max);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum_and_begin_anew_after_a_success() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(50), ms(150));
        assert_eq!(
            [1.0, 0.0, 1.0, 1.0].map(|jitter| backoff.pause(jitter)),
            [ms(50), ms(50), ms(150), ms(150)]
        );
        backoff.reset();
        assert_eq!(backoff.pause(0.0), ms(25));
    }
}
