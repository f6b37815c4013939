//! Indexes.

use super::Realm;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, Write};
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_primitives::index::{self, Indexed, Listing, Sweeper};
use emberkeep_schema::{Family, Id, Json, Key, Set, Text, family, record};
use std::sync::Arc;
use std::time::Duration;

record! {
    /// A sheep.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Sheep {
        /// Its number.
        pub id: u32 => "id",
        /// Its meadow.
        pub meadow: u32 => "meadow",
    }
}
family! {
    /// A sheep.
    pub SHEEP = "index-test:{realm}:sheep:{id}" {
        kind: Text<Json<Sheep>>, partition: Realm, parts: (id: u32), ttl: refresh(3_600_000), owner: "test"
    }
}
family! {
    /// The sheep of a meadow.
    pub MEADOW = "index-test:{realm}:meadow:{meadow}" {
        kind: Set<Id<u32>>, partition: Realm, parts: (meadow: u32), ttl: persistent, owner: "test",
        index_of: SHEEP,
    }
}

/// Sheep by their meadow.
struct ByMeadow;

impl Indexed for ByMeadow {
    type Partition = Realm;
    type Member = u32;
    type Value = Sheep;
    type Codec = Json<Sheep>;
    type Record = SHEEP;
    type Index = MEADOW;

    fn record(id: &u32) -> Key<SHEEP> {
        SHEEP.key(*id)
    }

    fn member(record: &Key<SHEEP>) -> u32 {
        SHEEP.parts(record).0
    }

    fn home(sheep: &Sheep) -> Key<MEADOW> {
        MEADOW.key(sheep.meadow)
    }
}

fn sheep(id: u32, meadow: u32) -> Sheep {
    Sheep::new(id, meadow)
}

fn put(tx: &mut Tx<'_, Realm>, sheep: &Sheep) -> Result<(), Error> {
    tx.put(&SHEEP.key(sheep.id), sheep)?;
    index::enter::<ByMeadow>(tx, &sheep.id, sheep)
}

async fn bring(scope: &Scope<Realm>, id: u32, meadow: u32) {
    scope.transact(move |tx| put(tx, &sheep(id, meadow))).await.unwrap();
}

async fn list(scope: &Scope<Realm>, meadow: u32) -> Listing<Sheep> {
    index::list::<ByMeadow>(scope, &MEADOW.key(meadow)).await.unwrap()
}

fn ids(listing: &Listing<Sheep>) -> Vec<u32> {
    listing.living.iter().map(|sheep| sheep.id).collect()
}

/// A write by a client that does not know the index.
async fn external<F: Family<Partition = Realm>>(scope: &Scope<Realm>, key: Key<F>, write: Write) {
    let raw = Bytes::from(key.to_text(scope.store().key_layout(), scope.partition()));
    let transaction = move |tx: &mut Tx<'_, Realm>| tx.raw_write(raw.clone(), write.clone());
    scope.transact(transaction).await.unwrap();
}

async fn members(scope: &Scope<Realm>, meadow: u32) -> Vec<u32> {
    scope.transact(move |tx| tx.smembers(&MEADOW.key(meadow))).await.unwrap()
}

pub async fn a_record_and_its_entry_come_and_go_together(store: Store) {
    let scope = store.scope(Realm::new());
    bring(&scope, 1, 7).await;
    bring(&scope, 2, 7).await;
    bring(&scope, 3, 8).await;
    assert_eq!((ids(&list(&scope, 7).await), ids(&list(&scope, 8).await)), (vec![1, 2], vec![3]));
    let go = |tx: &mut Tx<'_, Realm>| {
        tx.del(&SHEEP.key(1))?;
        index::leave::<ByMeadow>(tx, &1, &sheep(1, 7))
    };
    scope.transact(go).await.unwrap();
    assert_eq!(list(&scope, 7).await, Listing { living: vec![sheep(2, 7)], corrupt: vec![], pruned: 0 });
}

pub async fn stale_entries_are_not_listed_and_are_pruned(store: Store) {
    let scope = store.scope(Realm::new());
    for id in 1..=5 {
        bring(&scope, id, 7).await;
    }
    external(&scope, SHEEP.key(2), Write::Del).await;
    // Moved to another meadow by a client that forgets the index.
    scope.put(&SHEEP.key(4), sheep(4, 8)).await.unwrap();
    external(&scope, MEADOW.key(7), Write::SAdd(vec![Bytes::from_static(b"no number")])).await;

    let read = index::living::<ByMeadow>(&scope, &MEADOW.key(7)).await.unwrap();
    assert_eq!((ids(&read), read.pruned), (vec![1, 3, 5], 0));
    let listing = list(&scope, 7).await;
    assert_eq!((ids(&listing), listing.pruned), (vec![1, 3, 5], 3));
    assert_eq!(members(&scope, 7).await, [1, 3, 5]);
    assert_eq!(list(&scope, 7).await.pruned, 0);
}

pub async fn a_record_that_cannot_be_read_does_not_hide_the_others(store: Store) {
    let scope = store.scope(Realm::new());
    for id in 1..=3 {
        bring(&scope, id, 7).await;
    }
    external(&scope, SHEEP.key(2), Write::Set(Bytes::from_static(b"{\"id\":"), Expiry::Never)).await;
    let listing = list(&scope, 7).await;
    assert_eq!((ids(&listing), listing.pruned, listing.corrupt.len()), (vec![1, 3], 0, 1));
    let error = listing.corrupt[0].to_string();
    assert!(error.contains("sheep:2 (family SHEEP)"), "{error}");
    assert_eq!(members(&scope, 7).await, [1, 2, 3]);
}

pub async fn an_index_larger_than_a_reply_is_listed_whole(store: Store) {
    let scope = store.scope(Realm::new());
    for from in (0..2_400).step_by(100) {
        scope.transact(move |tx| (from..from + 100).try_for_each(|id| put(tx, &sheep(id, 7)))).await.unwrap();
    }
    for id in (0..2_400).step_by(8) {
        external(&scope, SHEEP.key(id), Write::Del).await;
    }
    let listing = list(&scope, 7).await;
    assert_eq!((listing.living.len(), listing.pruned), (2_100, 300));
    assert_eq!(ids(&listing), (0..2_400).filter(|id| id % 8 != 0).collect::<Vec<_>>());
}

/// On Redis a page has about as many entries as were asked for; over all pages each is there.
pub async fn an_index_of_any_size_is_read_in_pages(store: Store) {
    let scope = store.scope(Realm::new());
    for from in (0..1_200).step_by(100) {
        scope.transact(move |tx| (from..from + 100).try_for_each(|id| put(tx, &sheep(id, 7)))).await.unwrap();
    }
    for id in (0..1_200).step_by(8) {
        external(&scope, SHEEP.key(id), Write::Del).await;
    }
    let (mut found, mut pruned, mut pages, mut from) = (Vec::new(), 0, 0, None);
    loop {
        let page = index::page::<ByMeadow>(&scope, &MEADOW.key(7), from, 100).await.unwrap();
        found.extend(ids(&page.listing));
        (pruned, pages, from) = (pruned + page.listing.pruned, pages + 1, page.next);
        if from.is_none() {
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, (0..1_200).filter(|id| id % 8 != 0).collect::<Vec<_>>());
    assert!(pruned == 150 && pages > 1, "{pruned} pruned on {pages} pages");
}

/// Ids are used again: an entry that was a stale one a moment ago may be a living one at the removal.
pub async fn an_id_that_comes_back_is_not_pruned(store: Store) {
    let scope = store.scope(Realm::new());
    let reader = {
        let scope = scope.clone();
        tokio::spawn(async move {
            for _ in 0..200 {
                list(&scope, 7).await;
            }
        })
    };
    for round in 0..100 {
        external(&scope, SHEEP.key(1), Write::Del).await;
        bring(&scope, 1, 7).await;
        assert_eq!(members(&scope, 7).await, [1], "round {round}");
    }
    reader.await.unwrap();
}

/// Everything of a realm of one's own: other cases sweep the same store.
pub async fn a_sweep_repairs_what_is_never_read(store: Store) {
    let scope = store.scope(Realm::new());
    for from in (0..400).step_by(100) {
        scope.transact(move |tx| (from..from + 100).try_for_each(|id| put(tx, &sheep(id, 7)))).await.unwrap();
    }
    for id in 0..150 {
        external(&scope, SHEEP.key(id), Write::Del).await;
    }
    for id in 150..200 {
        external(&scope, MEADOW.key(7), Write::SRem(vec![Bytes::from(id.to_string())])).await;
    }
    scope.put(&SHEEP.key(1_000), sheep(1_000, 8)).await.unwrap();
    let swept = Sweeper::<ByMeadow>::new(store.clone()).run(Duration::ZERO).await.unwrap();
    assert!(swept.stale >= 150 && swept.orphans >= 51, "{swept:?}");
    assert_eq!(members(&scope, 7).await.len(), 250);
    assert_eq!(members(&scope, 8).await, [1_000]);
    let (seven, eight) = (list(&scope, 7).await, list(&scope, 8).await);
    assert_eq!((seven.living.len(), seven.pruned, ids(&eight)), (250, 0, vec![1_000]));
}

pub async fn an_index_that_is_no_set_does_not_stop_a_sweep(store: Store) {
    let scope = store.scope(Realm::new());
    external(&scope, MEADOW.key(7), Write::Set(Bytes::from_static(b"x"), Expiry::Never)).await;
    scope.put(&SHEEP.key(1), sheep(1, 7)).await.unwrap();
    scope.put(&SHEEP.key(2), sheep(2, 8)).await.unwrap();
    let swept = Sweeper::<ByMeadow>::new(store.clone()).run(Duration::ZERO).await.unwrap();
    let reported = swept.corrupt.iter().filter(|error| matches!(error, Error::WrongType { .. })).count();
    assert!(reported >= 2, "reported at the index and at the record: {swept:?}");
    assert_eq!(members(&scope, 8).await, [2]);
}

record! {
    /// A wolf, whose key does not say whose it is.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Wolf {
        /// Where it lives.
        pub realm: uuid::Uuid => "realm",
        /// Its pack.
        pub pack: u32 => "pack",
    }
}
family! {
    /// A wolf.
    pub WOLF = "index-test-wolf:{id}" {
        kind: Text<Json<Wolf>>, partition: shared Realm, parts: (id: u64), ttl: persistent, owner: "test"
    }
}
family! {
    /// The wolves of a pack.
    pub PACK = "index-test-pack:{realm}:{pack}" {
        kind: Set<Id<u64>>, partition: Realm, parts: (pack: u32), ttl: persistent, owner: "test", index_of: WOLF,
    }
}

/// Wolves by their pack.
struct ByPack;

impl Indexed for ByPack {
    type Partition = Realm;
    type Member = u64;
    type Value = Wolf;
    type Codec = Json<Wolf>;
    type Record = WOLF;
    type Index = PACK;

    fn record(id: &u64) -> Key<WOLF> {
        WOLF.key(*id)
    }

    fn member(record: &Key<WOLF>) -> u64 {
        WOLF.parts(record).0
    }

    fn home(wolf: &Wolf) -> Key<PACK> {
        PACK.key(wolf.pack)
    }

    fn partition(wolf: &Wolf) -> Option<Realm> {
        Some(Realm(wolf.realm))
    }

    fn anywhere() -> Option<Realm> {
        Some(Realm(uuid::Uuid::nil()))
    }
}

pub async fn a_record_of_another_partition_is_no_member(store: Store) {
    let (ours, theirs) = (store.scope(Realm::new()), store.scope(Realm::new()));
    let id = uuid::Uuid::new_v4().as_u64_pair().0;
    let wolf = Wolf::new(ours.partition().0, 1);
    let born = wolf.clone();
    let birth = ours.transact(move |tx| {
        tx.put(&WOLF.key(id), &born)?;
        index::enter::<ByPack>(tx, &id, &born)
    });
    birth.await.unwrap();
    let enter = || theirs.transact(move |tx| tx.sadd(&PACK.key(1), &id));
    enter().await.unwrap();
    let listed = index::list::<ByPack>(&theirs, &PACK.key(1)).await.unwrap();
    assert_eq!((listed.living, listed.pruned), (vec![], 1));
    // The sweep sees it the same way.
    enter().await.unwrap();
    let swept = Sweeper::<ByPack>::new(store.clone()).run(Duration::ZERO).await.unwrap();
    assert_eq!((swept.stale, swept.orphans), (1, 0), "{swept:?}");
    assert_eq!(theirs.exists(&PACK.key(1)).await, Ok(false));
    let listed = index::list::<ByPack>(&ours, &PACK.key(1)).await.unwrap();
    assert_eq!((listed.living, listed.pruned), (vec![wolf], 0));
}

pub async fn a_turn_of_a_sweep_takes_many_small_indexes(store: Store) {
    let scope = store.scope(Realm::new());
    let build = |tx: &mut Tx<'_, Realm>| (0..300).try_for_each(|id| put(tx, &sheep(id, 1_000 + id)));
    scope.transact(build).await.unwrap();
    let lose = |tx: &mut Tx<'_, Realm>| (0..10).try_for_each(|id| tx.del(&SHEEP.key(id * 30)));
    scope.transact(lose).await.unwrap();
    let (mut sweeper, mut busy) = (Sweeper::<ByMeadow>::new(store), 0);
    loop {
        let before = sweeper.swept().entries;
        let goes_on = sweeper.turn().await.unwrap();
        busy += usize::from(sweeper.swept().entries > before);
        if !goes_on {
            break;
        }
    }
    let swept = sweeper.swept();
    assert!(swept.entries >= 300 && busy * 8 <= swept.entries, "{busy} turns for {swept:?}");
    assert_eq!(members(&scope, 1_030).await, [0u32; 0]);
    assert_eq!(members(&scope, 1_031).await, [31]);
}

/// With a clock of the test's own.
pub async fn a_record_that_ended_by_its_ttl_leaves_a_stale_entry() {
    let clock = ManualClock::at(1_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
    let store = Store::new(Arc::new(engine));
    let scope = store.scope(Realm::new());
    bring(&scope, 1, 7).await;
    bring(&scope, 2, 8).await;
    clock.advance(1_800_000);
    bring(&scope, 3, 7).await;
    bring(&scope, 4, 8).await;
    clock.advance(1_800_001);
    let listing = list(&scope, 7).await;
    assert_eq!((ids(&listing), listing.pruned), (vec![3], 1));
    let swept = Sweeper::<ByMeadow>::new(store).run(Duration::ZERO).await.unwrap();
    assert_eq!((swept.stale, swept.orphans), (1, 0));
    assert_eq!((members(&scope, 7).await, members(&scope, 8).await), (vec![3], vec![4]));
}
