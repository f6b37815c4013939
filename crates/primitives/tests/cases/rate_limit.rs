//! Rate limits.

use super::Realm;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, Score, Write};
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_primitives::RateLimit;
use emberkeep_primitives::limits::{RATE_EVENTS_MAX, RATE_WINDOW_MS_MAX};
use emberkeep_primitives::rate_limit::Admission;
use emberkeep_schema::{Id, SortedSet, family};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

family! {
    /// Events.
    pub RATE = "ratelimit-test:{realm}:{action}" {
        kind: SortedSet<Id<u32>>, partition: Realm, parts: (action: u32), ttl: refresh(60_000), owner: "test"
    }
}

const MINUTE: Duration = Duration::from_secs(60);

fn limit(action: u32, events: usize, window: Duration) -> RateLimit<RATE> {
    RateLimit::new(RATE.key(action), events, window).expect("a good limit")
}

async fn write(scope: &Scope<Realm>, action: u32, write: Write) {
    let key = Bytes::from(RATE.key(action).to_text(scope.store().key_layout(), scope.partition()));
    scope.transact(move |tx: &mut Tx<'_, Realm>| tx.raw_write(key.clone(), write.clone())).await.unwrap();
}

/// An event as a service in another language writes it.
async fn external(scope: &Scope<Realm>, event: &'static str, at: f64) {
    let entry = (Bytes::from_static(event.as_bytes()), Score::new(at).unwrap());
    write(scope, 1, Write::ZAdd(vec![entry])).await;
}

pub async fn events_are_admitted_up_to_the_limit(store: Store) {
    let scope = store.scope(Realm::new());
    let three = limit(1, 3, MINUTE);
    for (event, remaining) in [(1, 2), (2, 1)] {
        let admission = three.acquire_in(&scope, event).await;
        assert_eq!(admission, Ok(Admission { allowed: true, remaining, retry_after: Duration::ZERO }));
    }
    let last = three.acquire_in(&scope, 3).await.unwrap();
    assert!(last.allowed && last.remaining == 0 && last.retry_after > MINUTE / 2, "{last:?}");
    let refused = three.acquire_in(&scope, 4).await.unwrap();
    assert!(!refused.allowed && refused.remaining == 0, "{refused:?}");
    assert!(refused.retry_after > MINUTE / 2 && refused.retry_after <= MINUTE, "{refused:?}");
    // A retry of an event that counts is not counted again; a refused one did not count.
    assert!(three.acquire_in(&scope, 2).await.unwrap().allowed);
    assert_eq!(scope.zcard(&RATE.key(1)).await, Ok(3));
    // Another action has a limit of its own.
    assert!(limit(2, 3, MINUTE).acquire_in(&scope, 4).await.unwrap().allowed);
}

pub async fn a_limit_is_part_of_the_callers_transaction(store: Store) {
    let scope = store.scope(Realm::new());
    let undone = scope.transact(|tx| {
        assert!(limit(1, 1, MINUTE).acquire(tx, &1)?.allowed);
        Err::<(), _>(Error::Closed)
    });
    assert_eq!(undone.await, Err(Error::Closed));
    let both = scope.transact(|tx| {
        let first = limit(1, 1, MINUTE).acquire(tx, &1)?;
        let second = limit(1, 1, MINUTE).acquire(tx, &2)?;
        Ok::<_, Error>((first.allowed, second.allowed, limit(1, 1, MINUTE).peek(tx)?.allowed))
    });
    assert_eq!(both.await, Ok((true, false, false)));
}

pub async fn events_leave_the_window(store: Store) {
    let scope = store.scope(Realm::new());
    let now = store.now().await.unwrap() as f64;
    external(&scope, "1", now - 61_000.0).await;
    external(&scope, "not a number", now - 120_000.0).await;
    external(&scope, "2", now - 1_000.0).await;
    let two = limit(1, 2, MINUTE);
    assert_eq!(scope.transact(|tx| limit(1, 2, MINUTE).peek(tx)).await.unwrap().remaining, 1);
    assert!(two.acquire_in(&scope, 1).await.unwrap().allowed, "an event that left the window is new");
    assert_eq!(scope.zcard(&RATE.key(1)).await, Ok(2), "what left the window was removed");
    assert!(!two.acquire_in(&scope, 3).await.unwrap().allowed);
}

pub async fn events_of_other_services_count(store: Store) {
    let scope = store.scope(Realm::new());
    let now = store.now().await.unwrap() as f64;
    external(&scope, "an event of ours", now).await;
    // A clock that was set back.
    external(&scope, "ahead", now + 30_000.0).await;
    external(&scope, "far ahead", now + 3_600_000.0).await;
    external(&scope, "never", f64::INFINITY).await;
    external(&scope, "ever", f64::NEG_INFINITY).await;
    let three = limit(1, 3, MINUTE);
    assert!(three.acquire_in(&scope, 1).await.unwrap().allowed);
    assert_eq!(scope.zcard(&RATE.key(1)).await, Ok(3));
    let refused = three.acquire_in(&scope, 2).await.unwrap();
    assert!(!refused.allowed && refused.retry_after <= MINUTE, "{refused:?}");
}

pub async fn the_key_lives_as_long_as_the_window(store: Store) {
    let scope = store.scope(Realm::new());
    for (action, window, least) in [(1, Duration::from_secs(1), 60_000), (2, MINUTE * 60, 3_600_000)] {
        let before = store.now().await.unwrap();
        assert!(limit(action, 3, window).acquire_in(&scope, 1).await.unwrap().allowed);
        let deadline = scope.deadline_of(&RATE.key(action)).await.unwrap().expect("a deadline");
        // The engine's clock on Redis is an estimate of the server's.
        assert!((deadline - before - least).abs() < 30_000, "{deadline} {before} {least}");
    }
}

pub async fn limits_out_of_bounds_are_refused(store: Store) {
    let new = |events, window| RateLimit::new(RATE.key(1), events, window).map(|_| ());
    let longest = Duration::from_millis(RATE_WINDOW_MS_MAX as u64);
    for (events, window) in [
        (0, MINUTE),
        (RATE_EVENTS_MAX + 1, MINUTE),
        (usize::MAX, MINUTE),
        (1, Duration::ZERO),
        (1, longest + Duration::from_nanos(1)),
        (1, Duration::MAX),
    ] {
        let error = new(events, window).unwrap_err();
        assert!(matches!(error, Error::Invalid { what: "rate limit", .. }), "{error}");
    }
    assert_eq!((new(RATE_EVENTS_MAX, longest), new(1, Duration::from_nanos(1))), (Ok(()), Ok(())));

    let scope = store.scope(Realm::new());
    let most = limit(1, RATE_EVENTS_MAX, MINUTE);
    let fill = |tx: &mut Tx<'_, Realm>| {
        let now = tx.now() as f64;
        (1..RATE_EVENTS_MAX as u32).try_for_each(|event| tx.zadd(&RATE.key(1), &event, now))
    };
    scope.transact(fill).await.unwrap();
    assert!(most.acquire_in(&scope, 0).await.unwrap().allowed);
    assert!(!most.acquire_in(&scope, u32::MAX).await.unwrap().allowed);
    write(&scope, 1, Write::Set(Bytes::from_static(b"no set"), Expiry::Never)).await;
    let error = most.acquire_in(&scope, 1).await.unwrap_err();
    assert!(matches!(error, Error::WrongType { .. }), "{error}");
}

pub async fn of_many_events_at_once_the_limit_is_admitted(store: Store) {
    let scope = store.scope(Realm::new());
    acquire_at_once(vec![scope; 64]).await;
}

pub async fn two_processes_share_a_limit(one: Store, other: Store) {
    let realm = Realm::new();
    let scopes = [one.scope(realm), other.scope(realm)];
    acquire_at_once(scopes.into_iter().cycle().take(64).collect()).await;
}

/// Lets everybody try four events, of which twenty in all are admitted.
async fn acquire_at_once(callers: Vec<Scope<Realm>>) {
    let scope = callers[0].clone();
    let callers: Vec<_> = (0u32..)
        .zip(callers)
        .map(|(number, scope)| {
            tokio::spawn(async move {
                let mut admitted = 0;
                for event in 0..4 {
                    let admission = limit(1, 20, MINUTE).acquire_in(&scope, number * 4 + event).await;
                    admitted += usize::from(admission.unwrap().allowed);
                }
                admitted
            })
        })
        .collect();
    let mut admitted = 0;
    for caller in callers {
        admitted += caller.await.unwrap();
    }
    assert_eq!((admitted, scope.zcard(&RATE.key(1)).await), (20, Ok(20)));
}

/// With a clock of the test's own: admissions agree with a model, to the millisecond.
pub async fn a_limit_agrees_with_a_model() {
    let clock = ManualClock::at(1_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
    let store = Store::new(Arc::new(engine));
    let runtime = tokio::runtime::Handle::current();
    let calls = proptest::collection::vec((0u32..12, prop_oneof![Just(0), Just(1), 0u64..700]), 1..80);
    tokio::task::spawn_blocking(move || {
        let cases = ProptestConfig::with_cases(128);
        proptest!(cases, |(calls in calls, most in 1usize..5, window in 1i64..1_000)| {
            let scope = store.scope(Realm::new());
            let limited = limit(1, most, Duration::from_millis(window as u64));
            let mut model = BTreeMap::<u32, i64>::new();
            for (event, passes) in calls {
                clock.advance(passes);
                let now = clock.now();
                model.retain(|_, at| *at + window > now);
                let allowed = model.contains_key(&event) || model.len() < most;
                if allowed {
                    model.entry(event).or_insert(now);
                }
                // How long until one leaves, if all places are taken.
                let oldest = model.values().min().filter(|_| model.len() == most);
                let expected = Admission {
                    allowed,
                    remaining: most - model.len(),
                    retry_after: Duration::from_millis(oldest.map_or(0, |at| (at + window - now) as u64)),
                };
                prop_assert_eq!(runtime.block_on(limited.acquire_in(&scope, event)), Ok(expected));
            }
        });
    })
    .await
    .unwrap();
}

/// Events that a clock wrote which was more than a window ahead neither count nor hide what counts.
pub async fn events_of_the_far_future_do_not_count() {
    let clock = ManualClock::at(10_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
    let scope = Store::new(Arc::new(engine)).scope(Realm::new());
    let limited = limit(1, 3, MINUTE);
    for (event, remaining) in [(100, 2), (101, 1), (102, 0)] {
        // More of them than one read shows.
        add_ahead(&scope, event * 100, 10_060_001).await;
        let admission = limited.acquire_in(&scope, event).await.unwrap();
        assert_eq!((admission.allowed, admission.remaining), (true, remaining), "{event}");
        assert_eq!(scope.zcard(&RATE.key(1)).await, Ok(3 - remaining), "those ahead are removed");
    }
    add_ahead(&scope, 20_000, 10_060_001).await;
    let refused = limited.acquire_in(&scope, 103).await.unwrap();
    assert_eq!((refused.allowed, refused.retry_after), (false, MINUTE));
    let peeked = scope.read(move |tx| limit(1, 3, MINUTE).peek(tx)).await.unwrap();
    assert!(!peeked.allowed, "a transaction that only reads sees the same");
    clock.advance(60_000);
    assert!(
        !limited.acquire_in(&scope, 103).await.unwrap().allowed,
        "they are within a window now, and count"
    );
}

/// Adds twenty events at a time.
async fn add_ahead(scope: &Scope<Realm>, first: u32, at: i64) {
    let add = move |tx: &mut Tx<'_, Realm>| {
        (first..first + 20).try_for_each(|event| tx.zadd(&RATE.key(1), &event, at as f64))
    };
    scope.transact(add).await.unwrap();
}
