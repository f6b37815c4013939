//! The engine's clock is the server's, followed by an offset to this machine's monotonic time.
//!
//! An answer with the server's time was made between its request and its arrival, so it bounds the offset
//! from both sides. The bounds of many answers together are narrower than those of one; the estimate is the
//! middle of what all of them allow. An answer that contradicts the others proves that the server's clock was
//! set; then the bounds begin anew.
//!
//! Bodies see milliseconds, but the offset is kept in microseconds: one in whole milliseconds would be behind
//! the server by up to one, and a deadline that another process has just set would seem further away than its
//! TTL.

use crate::limits::*;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How much the bounds of the offset widen in a second, because no two clocks run equally fast.
const DRIFT_US_PER_SECOND: i64 = 1_000;

/// Follows the time of one server and the round trip to it. All partitions on the server share one.
pub(crate) struct ServerClock {
    start: Instant,
    bounds: Mutex<Option<Bounds>>,
    /// The server's time at `start`: the middle of the bounds.
    offset_us: AtomicI64,
    /// The latest time handed to a body.
    latest_ms: AtomicI64,
    /// The same of all servers of the engine.
    floor_ms: Arc<AtomicI64>,
    /// When the server's time was last observed, counted from `start`; negative = never.
    observed_us: AtomicI64,
    /// Smoothed round trip and its smoothed deviation, as TCP keeps them (RFC 6298); 0 = not measured.
    round_trip_us: AtomicI64,
    deviation_us: AtomicI64,
}

/// What the answers allow for the server's time at `start`.
#[derive(Clone, Copy)]
struct Bounds {
    least_us: i64,
    greatest_us: i64,
    /// When they were observed, counted from `start`.
    at_us: i64,
}

impl ServerClock {
    /// A clock that shows this time until the server's own is observed. `floor_ms` is shared by all servers.
    pub(crate) fn new(estimate_ms: i64, floor_ms: Arc<AtomicI64>) -> ServerClock {
        ServerClock {
            start: Instant::now(),
            bounds: Mutex::new(None),
            offset_us: AtomicI64::new(estimate_ms * 1_000),
            latest_ms: AtomicI64::new(0),
            floor_ms,
            observed_us: AtomicI64::new(i64::MIN / 2),
            round_trip_us: AtomicI64::new(0),
            deviation_us: AtomicI64::new(0),
        }
    }

    fn elapsed_us(&self) -> i64 {
        self.start.elapsed().as_micros() as i64
    }

    /// The server's clock showed this time at some moment between `asked` and now.
    pub(crate) fn observe(&self, server_us: i64, asked: Instant) {
        let now = self.elapsed_us();
        let asked_us = asked.saturating_duration_since(self.start).as_micros() as i64;
        // Whole microseconds on both sides: one more in each direction.
        let (least_us, greatest_us) = (server_us - now - 1, server_us - asked_us + 1);
        let mut bounds = self.bounds.lock();
        let found = Bounds { least_us, greatest_us, at_us: now };
        let narrowed = bounds.and_then(|before| before.narrowed(found)).unwrap_or(found);
        *bounds = Some(narrowed);
        self.offset_us.store((narrowed.least_us + narrowed.greatest_us) / 2, Relaxed);
        self.observed_us.store(now, Relaxed);
    }

    /// A call was answered after this time.
    pub(crate) fn measured(&self, took: Duration) {
        let took = took.as_micros() as i64;
        let (before, deviation) = (self.round_trip_us.load(Relaxed), self.deviation_us.load(Relaxed));
        let (smoothed, deviation) = match before {
            0 => (took, took / 2),
            _ => (before + (took - before) / 8, deviation + ((took - before).abs() - deviation) / 4),
        };
        self.round_trip_us.store(smoothed.max(1), Relaxed);
        self.deviation_us.store(deviation, Relaxed);
    }

    /// What a call rarely exceeds: the smoothed round trip and four deviations.
    pub(crate) fn round_trip(&self) -> Duration {
        let us = self.round_trip_us.load(Relaxed) + 4 * self.deviation_us.load(Relaxed);
        Duration::from_micros(us.max(0) as u64).min(ROUND_TRIP_MAX)
    }

    /// Whether other processes are usually so much nearer that a transaction needs a lease with its first
    /// conflict.
    pub(crate) fn is_far(&self) -> bool {
        self.round_trip_us.load(Relaxed) > FAR_ROUND_TRIP.as_micros() as i64
    }

    /// How long a lease must be: the owner's next commit comes one round trip after the answer that granted
    /// it.
    pub(crate) fn lease(&self) -> Duration {
        LEASE_MIN + self.round_trip()
    }

    /// How far the server's clock may be from an estimate that was made so long ago, when a commit arrives
    /// with it. The whole round trip may be on the way there: routes differ in both directions, and a server
    /// has a queue.
    pub(crate) fn allowance(&self, age: Duration) -> Duration {
        (CLOCK_DIFFERENCE_MAX + self.round_trip() + age).min(CLOCK_ALLOWANCE_MAX)
    }

    /// What the server's clock probably shows; the commit compares it.
    pub(crate) fn estimate_ms(&self) -> i64 {
        (self.offset_us.load(Relaxed) + self.elapsed_us()).div_euclid(1_000)
    }

    /// The time for a body: the estimate, but never before an earlier one of this server's partitions, nor of
    /// other servers that are not ahead by more than [`CLOCK_AHEAD_MAX`]. After a failover to a slower clock
    /// it stands still for a while; the estimate is what is compared, so transactions go on.
    pub(crate) fn now_ms(&self) -> i64 {
        let estimate = self.estimate_ms();
        if self.is_borrowed() {
            // Perhaps far off: then the commit is refused, and no caller has received a result with this
            // time.
            return self.raised(estimate);
        }
        self.shown(estimate)
    }

    /// Raised to what was shown of other servers, unless that is too far ahead.
    fn raised(&self, server_ms: i64) -> i64 {
        let floor = self.floor_ms.load(Relaxed);
        let is_near = floor.saturating_sub(server_ms) <= CLOCK_AHEAD_MAX.as_millis() as i64;
        if is_near { server_ms.max(floor) } else { server_ms }
    }

    /// A time of the server as bodies see it: never before an earlier one.
    pub(crate) fn shown(&self, server_ms: i64) -> i64 {
        let raised = self.raised(server_ms);
        let shown = self.latest_ms.fetch_max(raised, Relaxed).max(raised);
        self.floor_ms.fetch_max(shown, Relaxed);
        shown
    }

    /// Whether its time comes from another server, because its own was not observed yet.
    pub(crate) fn is_borrowed(&self) -> bool {
        self.observed_us.load(Relaxed) < 0
    }

    /// A commit whose bodies were shown this time was not refused: later bodies see none before it, also if
    /// it was borrowed.
    pub(crate) fn accepted(&self, shown_ms: i64) {
        self.latest_ms.fetch_max(shown_ms, Relaxed);
        self.floor_ms.fetch_max(shown_ms, Relaxed);
    }

    /// Whether the server's time was not observed for a while.
    pub(crate) fn is_due(&self) -> bool {
        self.elapsed_us() - self.observed_us.load(Relaxed) > CLOCK_REFRESH.as_micros() as i64
    }
}

impl Bounds {
    /// What both allow; `None` if they contradict each other.
    fn narrowed(self, newer: Bounds) -> Option<Bounds> {
        let drift = (newer.at_us - self.at_us) * DRIFT_US_PER_SECOND / 1_000_000;
        let least_us = newer.least_us.max(self.least_us - drift);
        let greatest_us = newer.greatest_us.min(self.greatest_us + drift);
        // Drift counts in whole microseconds: what is left of it must not be lost.
        let at_us = if drift > 0 { newer.at_us } else { self.at_us };
        (least_us <= greatest_us).then_some(Bounds { least_us, greatest_us, at_us })
    }
}

/// The time that the bodies of one run were shown.
#[derive(Clone, Copy)]
pub(crate) struct BodyTime {
    pub(crate) now_ms: i64,
    /// The estimate of the server's time behind it, which the commit compares.
    pub(crate) estimate_ms: i64,
}

/// A partition's clock: that of the server it is on, and never before what it showed on another one.
#[derive(Clone)]
pub(crate) struct Clock {
    server: Arc<ServerClock>,
    floor_ms: i64,
}

impl Clock {
    pub(crate) fn new(server: Arc<ServerClock>) -> Clock {
        Clock { server, floor_ms: 0 }
    }

    /// The partition is on this server now.
    pub(crate) fn follow(&mut self, server: &Arc<ServerClock>) {
        if !Arc::ptr_eq(&self.server, server) {
            self.floor_ms = self.floor_ms.max(self.server.latest_ms.load(Relaxed));
            self.server = server.clone();
        }
    }

    pub(crate) fn server(&self) -> &Arc<ServerClock> {
        &self.server
    }

    /// [`ServerClock::now_ms`], but never before what the partition showed on an earlier server.
    pub(crate) fn now_ms(&self) -> i64 {
        self.server.now_ms().max(self.floor_ms)
    }

    /// The time for the bodies of a batch.
    pub(crate) fn body_time(&self) -> BodyTime {
        BodyTime { estimate_ms: self.estimate_ms(), now_ms: self.now_ms() }
    }
}

impl std::ops::Deref for Clock {
    type Target = ServerClock;

    fn deref(&self) -> &ServerClock {
        &self.server
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ago(ms: u64) -> Instant {
        Instant::now().checked_sub(Duration::from_millis(ms)).expect("the machine runs for longer")
    }

    /// A clock that has been there for a minute.
    fn clock() -> ServerClock {
        ServerClock { start: ago(60_000), ..ServerClock::new(0, Arc::default()) }
    }

    #[test]
    fn a_borrowed_time_is_replaced_by_the_observed_one() {
        let clock = ServerClock::new(5_000_000, Arc::default());
        assert!(clock.now_ms() >= 5_000_000);
        clock.observe(1_000_000_000, Instant::now());
        assert!(clock.now_ms() < 2_000_000);
    }

    #[test]
    fn a_borrowed_time_that_a_commit_accepted_is_not_taken_back() {
        let clock = ServerClock::new(1_000_050, Arc::default());
        let shown = clock.now_ms();
        assert!(clock.is_borrowed());
        clock.observe(1_000_000_000, Instant::now());
        clock.accepted(shown);
        assert!(clock.now_ms() >= shown, "the transaction that read it has been answered");
        assert!(clock.estimate_ms() < shown, "the estimate follows the server");
    }

    #[test]
    fn time_follows_the_server_and_never_runs_backwards() {
        let clock = clock();
        assert!(clock.is_due());
        clock.observe(1_000_000_000, Instant::now());
        assert!(!clock.is_due());
        let first = clock.now_ms();
        assert!((1_000_000..1_000_500).contains(&first));
        clock.observe(900_000_000, Instant::now());
        assert!(clock.estimate_ms() < 1_000_000, "the estimate follows the server");
        assert!(clock.now_ms() >= first, "bodies never see an earlier time");
    }

    #[test]
    fn the_estimate_is_the_middle_of_the_way_and_a_fast_answer_beats_a_slow_one() {
        let clock = clock();
        clock.observe(1_000_000_000, ago(600));
        let error = clock.estimate_ms() - 1_000_300;
        assert!((-2..50).contains(&error), "{error}");
        // The same moment, in a fast answer: the server read its clock at the end of the slow one.
        clock.observe(1_000_000_000, ago(0));
        let error = clock.estimate_ms() - 1_000_000;
        assert!((-2..50).contains(&error), "{error}");
        clock.observe(1_000_000_000, ago(600));
        let error = clock.estimate_ms() - 1_000_000;
        assert!((-2..50).contains(&error), "a slow answer adds nothing: {error}");
    }

    #[test]
    fn a_time_is_never_behind_the_last_answer() {
        for us in 0..1_000 {
            let clock = clock();
            let server_us = 1_000_000_000 + us;
            clock.observe(server_us, Instant::now());
            assert!(clock.now_ms() >= server_us / 1_000, "{us}");
            // Also where the bounds of an earlier answer are wider on one side only.
            let clock = self::clock();
            clock.observe(server_us - 2_000, ago(5));
            clock.observe(server_us, Instant::now());
            assert!(clock.estimate_ms() >= server_us / 1_000, "{us}");
        }
    }

    #[test]
    fn a_partition_on_another_server_sees_no_earlier_time() {
        let (fast, slow) = (Arc::new(clock()), Arc::new(clock()));
        fast.observe(1_000_000_000, Instant::now());
        slow.observe(900_000_000, Instant::now());
        let mut clock = Clock::new(fast);
        let shown = clock.now_ms();
        clock.follow(&slow);
        assert!(clock.now_ms() >= shown);
        assert!(Clock::new(slow).now_ms() < shown, "other partitions on that server are not affected");
    }

    #[test]
    fn servers_that_nearly_agree_share_one_time_and_others_do_not() {
        let floor = Arc::<AtomicI64>::default();
        let at = |ms: i64| {
            let clock = ServerClock { start: ago(60_000), ..ServerClock::new(0, floor.clone()) };
            clock.observe(ms * 1_000, Instant::now());
            clock
        };
        let (one, slower, off) = (at(1_000_000), at(998_000), at(800_000));
        let shown = one.now_ms();
        assert!(slower.now_ms() >= shown && slower.shown(998_000) >= shown);
        assert!(slower.estimate_ms() < 999_000, "what is compared follows the server");
        assert!(off.now_ms() < 900_000, "lives would be wrong by minutes");
    }

    #[test]
    fn lease_and_allowance_follow_the_round_trip() {
        let clock = clock();
        (0..100).for_each(|_| clock.measured(Duration::from_micros(200)));
        assert!(!clock.is_far() && clock.lease() < LEASE_MIN + Duration::from_millis(2));
        (0..100).for_each(|_| clock.measured(Duration::from_millis(300)));
        assert!(clock.is_far());
        assert!(clock.lease() >= Duration::from_millis(300) && clock.lease() < Duration::from_millis(400));
        assert!(clock.allowance(Duration::ZERO) >= CLOCK_DIFFERENCE_MAX + Duration::from_millis(300));
        (0..100).for_each(|_| clock.measured(Duration::from_secs(60)));
        assert_eq!(clock.lease(), LEASE_MIN + ROUND_TRIP_MAX);
        assert_eq!(clock.allowance(Duration::from_secs(60)), CLOCK_ALLOWANCE_MAX);
    }
}
