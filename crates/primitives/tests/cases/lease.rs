//! Leases with epochs.

use super::Realm;
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_hot::{Error, Scope, Store};
use emberkeep_primitives::lease::{Acquisition, Lease, LeaseError, LeaseRecord};
use emberkeep_primitives::limits::{HOLDER_BYTES_MAX, LEASE_MS_MAX};
use emberkeep_schema::{Json, List, Number, Text, family};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

family! {
    /// The lease.
    pub LEASE = "lease-test:{realm}" {
        kind: Text<Json<LeaseRecord>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The epochs of the holders that wrote, in order.
    pub WRITTEN = "lease-test:{realm}:written" {
        kind: List<Number<i64>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}

/// The time of a lease in these cases.
const TTL: Duration = Duration::from_secs(60);

fn lease() -> Lease<LEASE> {
    Lease::new(LEASE.key(), TTL).expect("a minute is a time")
}

async fn acquire(scope: &Scope<Realm>, holder: &str) -> Acquisition {
    let holder = holder.to_owned();
    scope.transact(move |tx| lease().acquire(tx, &holder)).await.unwrap()
}

async fn granted(scope: &Scope<Realm>, holder: &str) -> i64 {
    match acquire(scope, holder).await {
        Acquisition::Granted { epoch, .. } => epoch,
        other => panic!("{holder}: {other:?}"),
    }
}

/// A write under the lease.
async fn write(scope: &Scope<Realm>, epoch: i64) -> Result<(), LeaseError> {
    let transaction = scope.transact(move |tx| {
        lease().check(tx, epoch)?;
        Ok::<_, LeaseError>(tx.rpush(&WRITTEN.key(), &epoch)?)
    });
    transaction.await
}

async fn renew(scope: &Scope<Realm>, epoch: i64) -> Result<i64, LeaseError> {
    scope.transact(move |tx| lease().renew(tx, epoch)).await
}

async fn release(scope: &Scope<Realm>, epoch: i64) -> bool {
    scope.transact(move |tx| lease().release(tx, epoch)).await.unwrap()
}

/// Lets the time of a lease pass, on engines whose clock cannot be set.
async fn end(scope: &Scope<Realm>) {
    let past = |tx: &mut emberkeep_hot::Tx<'_, Realm>| {
        let mut record = tx.get(&LEASE.key())?.expect("a lease");
        record.until_ms = 1_000;
        tx.put(&LEASE.key(), &record)
    };
    scope.transact(past).await.unwrap();
}

pub async fn one_holder_at_a_time_and_the_epoch_grows(store: Store) {
    let scope = store.scope(Realm::new());
    let first = granted(&scope, "one").await;
    assert!(first >= store.now().await.unwrap() - 60_000, "epochs begin with the time: {first}");
    let Acquisition::Held { by, left } = acquire(&scope, "two").await else { panic!("it is held") };
    assert!(by == "one" && left > TTL / 2 && left <= TTL, "{by} {left:?}");
    write(&scope, first).await.unwrap();
    end(&scope).await;
    assert!(matches!(write(&scope, first).await, Err(LeaseError::Ended { .. })));
    let second = granted(&scope, "two").await;
    assert!(second > first);
    write(&scope, second).await.unwrap();
    let answer = write(&scope, first).await.unwrap_err();
    assert_eq!(answer, LeaseError::Superseded { epoch: first, current: second });
    assert!(answer.to_string().ends_with("stop, and acquire it anew"), "{answer}");
    assert_eq!(scope.lrange(&WRITTEN.key(), 0, -1).await, Ok(vec![first, second]));
}

pub async fn a_holder_renews_and_releases_its_own_lease_only(store: Store) {
    let scope = store.scope(Realm::new());
    let first = granted(&scope, "one").await;
    assert!(renew(&scope, first).await.unwrap() > store.now().await.unwrap());
    // No other holder came after it: a late renewal is accepted.
    end(&scope).await;
    renew(&scope, first).await.unwrap();
    write(&scope, first).await.unwrap();
    assert!(release(&scope, first).await);
    assert!(!release(&scope, first).await, "it has ended");
    assert!(matches!(write(&scope, first).await, Err(LeaseError::Released { .. })));
    assert!(matches!(renew(&scope, first).await, Err(LeaseError::Released { .. })));
    let second = granted(&scope, "two").await;
    assert!(matches!(renew(&scope, first).await, Err(LeaseError::Superseded { .. })));
    assert!(!release(&scope, first).await);
    write(&scope, second).await.unwrap();
}

pub async fn a_restarted_holder_fences_its_former_self(store: Store) {
    let scope = store.scope(Realm::new());
    let (before, after) = (granted(&scope, "one").await, granted(&scope, "one").await);
    assert!(after > before);
    assert!(matches!(write(&scope, before).await, Err(LeaseError::Superseded { .. })));
    write(&scope, after).await.unwrap();
    let holder = scope.transact(|tx| lease().holder(tx)).await.unwrap().expect("it is held");
    assert_eq!((holder.holder.as_str(), holder.epoch), ("one", after));
}

pub async fn an_epoch_survives_the_loss_of_its_key(store: Store) {
    let scope = store.scope(Realm::new());
    let before = granted(&scope, "one").await;
    assert_eq!(scope.del(&LEASE.key()).await, Ok(true));
    assert_eq!(write(&scope, before).await, Err(LeaseError::Superseded { epoch: before, current: 0 }));
    // The engine's clock may still show the millisecond of the first grant.
    let after = granted(&scope, "two").await;
    assert!(after >= before, "{after} {before}");
}

pub async fn bad_times_holders_and_epochs_are_refused(store: Store) {
    let scope = store.scope(Realm::new());
    for ttl in [Duration::ZERO, Duration::from_micros(999), Duration::MAX] {
        let error = Lease::new(LEASE.key(), ttl).unwrap_err();
        assert!(error.to_string().starts_with("invalid lease: "), "{error}");
    }
    Lease::new(LEASE.key(), Duration::from_millis(LEASE_MS_MAX as u64)).unwrap();
    for holder in [String::new(), "x".repeat(HOLDER_BYTES_MAX + 1)] {
        let refused = scope.transact(move |tx| lease().acquire(tx, &holder)).await;
        assert!(matches!(refused, Err(Error::Invalid { what: "holder", .. })), "{refused:?}");
    }
    let last = LeaseRecord {
        holder: "x".into(),
        epoch: i64::MAX,
        until_ms: 0,
        note: None,
        extra: Default::default(),
    };
    scope.put(&LEASE.key(), last).await.unwrap();
    let refused = scope.transact(|tx| lease().acquire(tx, "one")).await;
    assert!(matches!(refused, Err(Error::Invalid { what: "epoch", .. })), "{refused:?}");
}

pub async fn of_many_acquirers_one_wins(store: Store) {
    let scope = store.scope(Realm::new());
    acquire_at_once(vec![scope; 64]).await;
}

pub async fn two_processes_acquire_one_lease(one: Store, other: Store) {
    let realm = Realm::new();
    let scopes = [one.scope(realm), other.scope(realm)];
    acquire_at_once(scopes.into_iter().cycle().take(64).collect()).await;
}

/// Lets everybody acquire: one wins. Then lets everybody acquire, write if granted, and release, and sees
/// that epochs never overlapped.
async fn acquire_at_once(callers: Vec<Scope<Realm>>) {
    let scope = callers[0].clone();
    let tries: Vec<_> = (callers.iter().cloned().enumerate())
        .map(|(number, scope)| {
            tokio::spawn(async move { acquire(&scope, &format!("holder {number}")).await })
        })
        .collect();
    let mut winners = Vec::new();
    for each in tries {
        if let Acquisition::Granted { epoch, .. } = each.await.unwrap() {
            winners.push(epoch);
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
    assert!(release(&scope, winners[0]).await);

    let callers: Vec<_> = callers
        .into_iter()
        .enumerate()
        .map(|(number, scope)| {
            tokio::spawn(async move {
                let Acquisition::Granted { epoch, .. } = acquire(&scope, &format!("holder {number}")).await
                else {
                    return Vec::new();
                };
                write(&scope, epoch).await.unwrap();
                write(&scope, epoch).await.unwrap();
                assert!(release(&scope, epoch).await);
                vec![epoch, epoch]
            })
        })
        .collect();
    let mut granted = Vec::new();
    for caller in callers {
        granted.extend(caller.await.unwrap());
    }
    granted.sort_unstable();
    let written = scope.lrange(&WRITTEN.key(), 0, -1).await.unwrap();
    assert!(!written.is_empty() && written == granted, "{written:?} beside {granted:?}");
    assert!(written.chunk_by(|a, b| a == b).all(|of_one| of_one.len() == 2), "an epoch was used twice");
}

/// With a clock of the test's own: what two holders may do agrees with a model, to the millisecond.
pub async fn a_lease_agrees_with_a_model() {
    let clock = ManualClock::at(1_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
    let store = Store::new(Arc::new(engine));
    let runtime = tokio::runtime::Handle::current();
    let ttl = TTL.as_millis() as i64;
    // Who, what (acquire, renew, release, write), how much time passes before.
    let calls =
        proptest::collection::vec((0usize..3, 0u8..4, prop_oneof![Just(0), Just(1), 0u64..90_000]), 1..60);
    tokio::task::spawn_blocking(move || {
        proptest!(ProptestConfig::with_cases(128), |(calls in calls)| {
            let scope = store.scope(Realm::new());
            // The present grant: holder, epoch, last millisecond (0 = released); and what each was given.
            let (mut present, mut given) = ((usize::MAX, 0i64, 0i64), [-1i64; 3]);
            for (who, what, passes) in calls {
                clock.advance(passes);
                let (now, epoch) = (clock.now(), given[who]);
                let is_own = epoch == present.1;
                match what {
                    0 => match runtime.block_on(acquire(&scope, &who.to_string())) {
                        Acquisition::Granted { epoch, until_ms } => {
                            prop_assert!(present.2 < now || present.0 == who);
                            prop_assert!(epoch > present.1 && epoch >= now && until_ms == now + ttl);
                            present = (who, epoch, until_ms);
                            given[who] = epoch;
                        }
                        Acquisition::Held { by, .. } => {
                            prop_assert!(present.2 >= now && by == present.0.to_string() && present.0 != who);
                        }
                    },
                    1 => {
                        let renewed = runtime.block_on(renew(&scope, epoch));
                        prop_assert_eq!(renewed.is_ok(), is_own && present.2 > 0);
                        if renewed.is_ok() {
                            present.2 = now + ttl;
                        }
                    }
                    2 => {
                        let released = runtime.block_on(release(&scope, epoch));
                        prop_assert_eq!(released, is_own && present.2 >= now);
                        if is_own {
                            present.2 = 0;
                        }
                    }
                    _ => {
                        let written = runtime.block_on(write(&scope, epoch));
                        prop_assert_eq!(written.is_ok(), is_own && present.2 >= now);
                    }
                }
            }
        });
    })
    .await
    .unwrap();
}
