//! The faults that a proxy injects, and counters of those so far.
//!
//! Shared between the test, which sets them, and the proxy's thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::port::mix;

/// What a proxy has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyCounts {
    /// Connections that were let in.
    pub connections: u64,
    /// Connections that were refused.
    pub refused: u64,
    /// Requests that were passed to the server, those with a swallowed reply included.
    pub requests: u64,
    /// Requests that never reached the server.
    pub requests_dropped: u64,
    /// Requests that were executed and whose reply was swallowed.
    pub replies_dropped: u64,
    /// Times that `cut_all` was ordered.
    pub cuts: u64,
    /// Pieces of traffic that vanished in a silence, in either direction.
    pub swallowed: u64,
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Pass,
    DropRequest,
    DropReply,
}

#[derive(Debug, Default)]
struct FaultPlan {
    drop_requests: u64,
    drop_replies: u64,
    random: Option<Random>,
    needle: Vec<u8>,
}

#[derive(Debug)]
struct Random {
    state: u64,
    request: f64,
    reply: f64,
}

/// Orders and counters of one proxy.
#[derive(Debug)]
pub(super) struct Faults {
    request_delay_ns: AtomicU64,
    reply_delay_ns: AtomicU64,
    /// 0 = as fast as it goes.
    reply_bytes_per_s: AtomicU64,
    refusing: AtomicBool,
    silent: AtomicBool,
    orders: Mutex<FaultPlan>,
    counts: Mutex<ProxyCounts>,
    /// Grows at every cut; a connection ends when it sees it move.
    cut: watch::Sender<u64>,
    ended: watch::Sender<bool>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            request_delay_ns: AtomicU64::new(0),
            reply_delay_ns: AtomicU64::new(0),
            reply_bytes_per_s: AtomicU64::new(0),
            refusing: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            orders: Mutex::default(),
            counts: Mutex::default(),
            cut: watch::Sender::new(0),
            ended: watch::Sender::new(false),
        }
    }
}

impl Faults {
    pub(super) fn set_delay(&self, requests: Duration, replies: Duration) {
        self.request_delay_ns.store(requests.as_nanos() as u64, Relaxed);
        self.reply_delay_ns.store(replies.as_nanos() as u64, Relaxed);
    }

    pub(super) fn request_delay(&self) -> Duration {
        Duration::from_nanos(self.request_delay_ns.load(Relaxed))
    }

    pub(super) fn reply_delay(&self) -> Duration {
        Duration::from_nanos(self.reply_delay_ns.load(Relaxed))
    }

    pub(super) fn set_bandwidth(&self, bytes_per_s: u64) {
        self.reply_bytes_per_s.store(bytes_per_s, Relaxed);
    }

    /// How long so many bytes of replies take.
    pub(super) fn reply_time(&self, bytes: usize) -> Duration {
        match self.reply_bytes_per_s.load(Relaxed) {
            0 => Duration::ZERO,
            rate => Duration::from_nanos(bytes as u64 * 1_000_000_000 / rate),
        }
    }

    pub(super) fn drop_requests(&self, n: u64) {
        self.orders().drop_requests = n;
    }

    pub(super) fn drop_replies(&self, n: u64) {
        self.orders().drop_replies = n;
    }

    pub(super) fn random_drops(&self, seed: u64, request: f64, reply: f64) {
        self.orders().random = Some(Random { state: seed, request, reply });
    }

    pub(super) fn only_requests_with(&self, bytes: &[u8]) {
        self.orders().needle = bytes.to_vec();
    }

    pub(super) fn set_refusing(&self, refusing: bool) {
        self.refusing.store(refusing, Relaxed);
    }

    pub(super) fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Relaxed);
    }

    /// Whether bytes that arrive now vanish. A connection that lost some stays `lost`, like one whose peer
    /// is gone.
    pub(super) fn swallows(&self, lost: &AtomicBool) -> bool {
        if self.silent.load(Relaxed) {
            lost.store(true, Relaxed);
        }
        let lost = lost.load(Relaxed);
        self.count(|c| c.swallowed += u64::from(lost));
        lost
    }

    pub(super) fn cut_all(&self) {
        self.count(|c| c.cuts += 1);
        self.cut.send_modify(|cuts| *cuts += 1);
    }

    pub(super) fn end(&self) {
        self.ended.send_replace(true);
    }

    pub(super) fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    pub(super) fn cuts(&self) -> watch::Receiver<u64> {
        self.cut.subscribe()
    }

    /// Whether a new connection may come in.
    pub(super) fn admit(&self) -> bool {
        let admitted = !self.refusing.load(Relaxed);
        self.count(|c| if admitted { c.connections += 1 } else { c.refused += 1 });
        admitted
    }

    /// Decides about one whole request, and counts it.
    pub(super) fn decide(&self, request: &[u8]) -> Decision {
        let fate = self.orders().decide(request);
        self.count(|c| match fate {
            Decision::Pass => c.requests += 1,
            Decision::DropRequest => c.requests_dropped += 1,
            Decision::DropReply => {
                c.requests += 1;
                c.replies_dropped += 1;
            }
        });
        fate
    }

    pub(super) fn counts(&self) -> ProxyCounts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, change: impl FnOnce(&mut ProxyCounts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn orders(&self) -> MutexGuard<'_, FaultPlan> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultPlan {
    fn decide(&mut self, request: &[u8]) -> Decision {
        if !contains(request, &self.needle) {
            return Decision::Pass;
        }
        if take_one(&mut self.drop_requests) {
            return Decision::DropRequest;
        }
        if take_one(&mut self.drop_replies) {
            return Decision::DropReply;
        }
        self.random.as_mut().map_or(Decision::Pass, Random::decide)
    }
}

impl Random {
    fn decide(&mut self) -> Decision {
        self.state = self.state.wrapping_add(1);
        // 53 bits, which is what a float between 0 and 1 can hold evenly.
        let drawn = (mix(mix(self.state)) >> 11) as f64 / (1_u64 << 53) as f64;
        if drawn < self.request {
            Decision::DropRequest
        } else if drawn < self.request + self.reply {
            Decision::DropReply
        } else {
            Decision::Pass
        }
    }
}

fn take_one(left: &mut u64) -> bool {
    let some = *left > 0;
    *left = left.saturating_sub(1);
    some
}

fn contains(hay: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || hay.windows(needle.len()).any(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(seed: u64) -> Vec<Decision> {
        let faults = Faults::default();
        faults.random_drops(seed, 0.1, 0.2);
        (0..1000).map(|_| faults.decide(b"x")).collect()
    }

    #[test]
    fn random_fates_follow_the_seed_and_the_probabilities() {
        assert_eq!(decide(7), decide(7));
        assert_ne!(decide(7), decide(8));
        let count = |fate| decide(7).iter().filter(|f| **f == fate).count();
        assert!((60..140).contains(&count(Decision::DropRequest)));
        assert!((150..250).contains(&count(Decision::DropReply)));
    }

    #[test]
    fn ordered_drops_hit_only_what_was_named() {
        let faults = Faults::default();
        faults.only_requests_with(b"EVAL");
        faults.drop_requests(1);
        assert_eq!(faults.decide(b"HELLO"), Decision::Pass);
        assert_eq!(faults.decide(b"EVALSHA"), Decision::DropRequest);
        assert_eq!(faults.decide(b"EVALSHA"), Decision::Pass);
        assert_eq!(faults.counts().requests_dropped, 1);
    }
}
