//! Cooldowns.

use super::Realm;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, Score, Write};
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_primitives::Cooldowns;
use emberkeep_primitives::cooldown::ClearResult;
use emberkeep_primitives::limits::CLEARED_PER_TRANSACTION_MAX;
use emberkeep_schema::{Id, Key, Number, SortedSet, Text, family};
use std::sync::Arc;
use std::time::Duration;

/// The longest cooldown of these cases.
const LONGEST: Duration = Duration::from_secs(3_600);

family! {
    /// A skill that cools down.
    pub MARKER = "cooldown-test:{realm}:{owner}:{skill}" {
        kind: Text<Number<i64>>, partition: Realm, parts: (owner: u32, skill: u32), ttl: given, owner: "test"
    }
}
family! {
    /// The skills of an owner that cool down.
    pub SKILLS = "cooldown-test:{realm}:{owner}" {
        kind: SortedSet<Id<u32>>, partition: Realm, parts: (owner: u32), ttl: refresh(LONGEST), owner: "test"
    }
}

fn of(owner: u32) -> Cooldowns<SKILLS, impl Fn(&u32) -> Key<MARKER>> {
    Cooldowns::new(SKILLS.key(owner), move |skill| MARKER.key(owner, *skill))
}

async fn start(scope: &Scope<Realm>, owner: u32, skill: u32, time: Duration) -> Result<(), Error> {
    scope.transact(move |tx| of(owner).start(tx, &skill, time)).await
}

async fn remaining(scope: &Scope<Realm>, owner: u32, skill: u32) -> Option<Duration> {
    scope.transact(move |tx| of(owner).remaining(tx, &skill)).await.unwrap()
}

/// A marker that a service in another language sets.
async fn external(scope: &Scope<Realm>, owner: u32, skill: u32, expiry: Expiry) {
    let key = Bytes::from(MARKER.key(owner, skill).to_text(scope.store().key_layout(), scope.partition()));
    let transaction = move |tx: &mut Tx<'_, Realm>| {
        tx.raw_write(key.clone(), Write::Set(Bytes::from_static(b"cooling"), expiry))
    };
    scope.transact(transaction).await.unwrap();
}

pub async fn a_skill_cools_down_for_its_time(store: Store) {
    let scope = store.scope(Realm::new());
    assert_eq!(remaining(&scope, 1, 7).await, None);
    start(&scope, 1, 7, Duration::from_secs(60)).await.unwrap();
    let left = remaining(&scope, 1, 7).await.unwrap();
    assert!(left > Duration::from_secs(30) && left <= Duration::from_secs(60), "{left:?}");
    assert_eq!(remaining(&scope, 1, 8).await, None);
    assert_eq!(remaining(&scope, 2, 7).await, None);
    let ends =
        scope.transact(|tx| Ok::<_, Error>((tx.deadline(&MARKER.key(1, 7))?, tx.deadline(&SKILLS.key(1))?)));
    let (marker, index) = ends.await.unwrap();
    assert!(marker.is_some() && index > marker, "the index outlives its markers: {index:?}, {marker:?}");
}

pub async fn times_out_of_bounds_are_refused(store: Store) {
    let scope = store.scope(Realm::new());
    start(&scope, 1, 7, Duration::ZERO).await.unwrap();
    assert_eq!(remaining(&scope, 1, 7).await, None);
    let error = start(&scope, 1, 7, LONGEST + Duration::from_nanos(1)).await.unwrap_err();
    assert_eq!(error.to_string(), "invalid cooldown: 3600.000000001s, expected at most 3600s");
    assert_eq!(remaining(&scope, 1, 7).await, None);
    start(&scope, 1, 7, LONGEST).await.unwrap();
}

pub async fn one_owners_cooldowns_go_together(store: Store) {
    let scope = store.scope(Realm::new());
    for skill in 0..3 {
        start(&scope, 1, skill, Duration::from_secs(60)).await.unwrap();
    }
    start(&scope, 2, 0, Duration::from_secs(60)).await.unwrap();
    assert_eq!(scope.transact(|tx| of(1).clear(tx, &1)).await, Ok(true));
    assert_eq!(scope.transact(|tx| of(1).clear(tx, &1)).await, Ok(false));
    assert_eq!(scope.transact(|tx| of(1).clear_all(tx)).await, Ok(ClearResult { count: 2, more: false }));
    for skill in 0..3 {
        assert_eq!(remaining(&scope, 1, skill).await, None);
    }
    assert!(remaining(&scope, 2, 0).await.is_some());
    assert_eq!(scope.transact(|tx| tx.exists(&SKILLS.key(1))).await, Ok(false));
}

pub async fn more_cooldowns_than_a_transaction_clears(store: Store) {
    let scope = store.scope(Realm::new());
    let skills = CLEARED_PER_TRANSACTION_MAX as u32 + 1;
    for skill in 0..skills {
        start(&scope, 1, skill, Duration::from_secs(60)).await.unwrap();
    }
    let clear = || scope.transact(|tx| of(1).clear_all(tx));
    assert_eq!(clear().await, Ok(ClearResult { count: CLEARED_PER_TRANSACTION_MAX, more: true }));
    assert_eq!(clear().await, Ok(ClearResult { count: 1, more: false }));
    for skill in [0, skills - 1] {
        assert_eq!(remaining(&scope, 1, skill).await, None);
    }
}

pub async fn an_external_marker_counts_and_can_be_adopted(store: Store) {
    let scope = store.scope(Realm::new());
    external(&scope, 1, 7, Expiry::Never).await;
    assert_eq!(remaining(&scope, 1, 7).await, Some(Duration::MAX));
    let in_a_minute = store.now().await.unwrap() + 60_000;
    external(&scope, 1, 8, Expiry::At(in_a_minute)).await;
    assert!(remaining(&scope, 1, 8).await.unwrap() <= Duration::from_secs(60));
    // Their owner is unknown until the first read.
    assert_eq!(scope.transact(|tx| of(1).clear_all(tx)).await, Ok(ClearResult { count: 0, more: false }));
    for skill in [7, 8] {
        assert_eq!(scope.transact(move |tx| of(1).adopt(tx, &skill)).await, Ok(true));
        assert_eq!(scope.transact(move |tx| of(1).adopt(tx, &skill)).await, Ok(false));
    }
    assert_eq!(scope.transact(|tx| of(1).adopt(tx, &9)).await, Ok(false));
    assert_eq!(scope.transact(|tx| of(1).clear_all(tx)).await, Ok(ClearResult { count: 2, more: false }));
    assert_eq!((remaining(&scope, 1, 7).await, remaining(&scope, 1, 8).await), (None, None));
}

pub async fn rubbish_in_the_index_holds_nothing_up(store: Store) {
    let scope = store.scope(Realm::new());
    let key = Bytes::from(SKILLS.key(1).to_text(store.key_layout(), scope.partition()));
    let rubbish = move |tx: &mut Tx<'_, Realm>| {
        let entry = (Bytes::from_static(b"no number"), Score::new(5.0)?);
        tx.raw_write(key.clone(), Write::ZAdd(vec![entry]))
    };
    scope.transact(rubbish.clone()).await.unwrap();
    start(&scope, 1, 7, Duration::from_secs(60)).await.unwrap();
    assert_eq!(scope.zcard(&SKILLS.key(1)).await, Ok(1));
    scope.transact(rubbish).await.unwrap();
    assert_eq!(scope.transact(|tx| of(1).clear_all(tx)).await, Ok(ClearResult { count: 2, more: false }));
    assert_eq!(scope.exists(&SKILLS.key(1)).await, Ok(false));
}

pub async fn an_index_that_is_none_holds_nothing_up(store: Store) {
    let scope = store.scope(Realm::new());
    let key = Bytes::from(SKILLS.key(1).to_text(store.key_layout(), scope.partition()));
    let corrupt = move |tx: &mut Tx<'_, Realm>| {
        tx.raw_write(key.clone(), Write::Set(Bytes::from_static(b"no index"), Expiry::Never))
    };
    scope.transact(corrupt.clone()).await.unwrap();
    start(&scope, 1, 7, Duration::from_secs(60)).await.unwrap();
    scope.transact(corrupt.clone()).await.unwrap();
    // What it knew is as unknown as an external marker, and is adopted like one.
    assert_eq!(scope.transact(|tx| of(1).adopt(tx, &7)).await, Ok(true));
    assert_eq!(scope.zcard(&SKILLS.key(1)).await, Ok(1));
    scope.transact(corrupt.clone()).await.unwrap();
    assert_eq!(scope.transact(|tx| of(1).clear(tx, &7)).await, Ok(true));
    scope.transact(corrupt).await.unwrap();
    assert_eq!(scope.transact(|tx| of(1).clear_all(tx)).await, Ok(ClearResult { count: 0, more: false }));
    assert_eq!(scope.exists(&SKILLS.key(1)).await, Ok(false));
}

/// With a clock of the test's own.
pub async fn cooldowns_end_and_their_index_stays_short() {
    let clock = ManualClock::at(1_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
    let scope = Store::new(Arc::new(engine)).scope(Realm::new());
    for skill in 0..100 {
        start(&scope, 1, skill, Duration::from_millis(10)).await.unwrap();
        assert_eq!(remaining(&scope, 1, skill).await, Some(Duration::from_millis(10)));
        clock.advance(11);
        assert_eq!(remaining(&scope, 1, skill).await, None);
    }
    let known = scope.transact(|tx| tx.zcard(&SKILLS.key(1))).await.unwrap();
    assert!(known <= 2, "{known} entries");
    clock.advance(LONGEST.as_millis() as u64 + 1);
    assert_eq!(scope.transact(|tx| tx.exists(&SKILLS.key(1))).await, Ok(false));
}
