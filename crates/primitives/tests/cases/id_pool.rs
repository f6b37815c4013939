//! What an id pool promises, on any store: each case takes a store that others may be using, and a realm of
//! its own.

use super::Realm;
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_hot::{Error, Scope, Store};
use emberkeep_primitives::{Exhausted, IdPool, IdResult, RestingPool};
use emberkeep_schema::{Id, List, Number, SortedSet, Text, Utf8, family};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

family! {
    /// A thing with an id.
    pub THING = "pool-test:{realm}:thing:{id}" {
        kind: Text<Utf8>, partition: Realm, parts: (id: u32), ttl: persistent, owner: "test"
    }
}
family! {
    /// Counter.
    pub NEXT = "pool-test:{realm}:next" {
        kind: Text<Number<i64>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// Free list.
    pub FREE = "pool-test:{realm}:free" {
        kind: List<Id<u32>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}

family! {
    /// Ids that rest.
    pub RESTING = "pool-test:{realm}:resting" {
        kind: SortedSet<Id<u32>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}

/// Things whose ids come from a pool of `first..=last`.
#[derive(Clone)]
struct Things {
    scope: Scope<Realm>,
    pool: RestingPool<NEXT, FREE, RESTING>,
}

impl Things {
    fn new(store: &Store, first: i64, last: i64) -> Things {
        Things::resting(store, first, last, Duration::ZERO)
    }

    fn resting(store: &Store, first: i64, last: i64, reuse_after: Duration) -> Things {
        let pool = IdPool::new(first..=last, NEXT.key(), FREE.key()).resting(RESTING.key(), reuse_after);
        Things { scope: pool.prefetched(store.scope(Realm::new())), pool }
    }

    /// The same things, of another process.
    fn through(&self, store: &Store) -> Things {
        let scope = self.pool.prefetched(store.scope(*self.scope.partition()));
        Things { scope, pool: self.pool.clone() }
    }

    async fn make(&self) -> Result<u32, Exhausted> {
        let mut search = self.pool.search();
        loop {
            let pool = self.pool.clone();
            let transaction = self.scope.transact(move |tx| {
                let taken = pool.take(tx, |tx, id| tx.exists(&THING.key(id)))?;
                if let IdResult::Id(id) = taken {
                    tx.put(&THING.key(id), &"here".to_owned())?;
                }
                Ok::<_, Error>(taken)
            });
            match transaction.await.unwrap() {
                IdResult::Id(id) => return Ok(id),
                IdResult::NotYet(looked) => search.go_on(looked)?,
            }
        }
    }

    async fn make_all(&self, count: usize) -> Vec<u32> {
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(self.make().await.unwrap());
        }
        ids
    }

    async fn unmake(&self, id: u32) {
        let pool = self.pool.clone();
        let transaction = move |tx: &mut emberkeep_hot::Tx<'_, Realm>| {
            tx.del(&THING.key(id))?;
            pool.release(tx, &id)
        };
        self.scope.transact(transaction).await.unwrap();
    }

    /// Removes a thing by a client that does not know the pool.
    async fn lose(&self, id: u32) {
        assert_eq!(self.scope.del(&THING.key(id)).await, Ok(true));
    }

    async fn free(&self) -> Vec<u32> {
        self.scope.transact(|tx| tx.lrange(&FREE.key(), 0, -1)).await.unwrap()
    }
}

pub async fn ids_are_counted_and_the_counter_wraps(store: Store) {
    let things = Things::new(&store, 5, 7);
    assert_eq!(things.make_all(3).await, [5, 6, 7]);
    things.lose(6).await;
    assert_eq!(things.make().await, Ok(6));
}

pub async fn released_ids_come_first_and_the_last_one_before_the_others(store: Store) {
    let things = Things::new(&store, 1, 100);
    things.make_all(4).await;
    for id in [2, 4, 1] {
        things.unmake(id).await;
    }
    assert_eq!(things.make_all(4).await, [1, 4, 2, 5]);
}

pub async fn when_every_id_lives_the_pool_is_exhausted(store: Store) {
    let things = Things::new(&store, 1, 4);
    things.make_all(4).await;
    assert_eq!(things.make().await, Err(Exhausted { looked: 4, ids: 4 }));
    things.unmake(3).await;
    assert_eq!(things.make().await, Ok(3));
    assert_eq!(things.make().await, Err(Exhausted { looked: 4, ids: 4 }));
}

pub async fn a_pool_larger_than_a_transaction_is_searched_to_its_end(store: Store) {
    let things = Things::new(&store, -100, 99);
    // Negative numbers are not a u32: a range that the id type cannot hold is an error, not skipped.
    let pool = things.pool.clone();
    let error = things.scope.transact(move |tx| pool.take(tx, |_, _| Ok(false))).await.unwrap_err();
    assert!(error.to_string().contains("-100, which is not a u32"), "{error}");

    let things = Things::new(&store, 1, 200);
    things.make_all(200).await;
    assert_eq!(things.make().await, Err(Exhausted { looked: 200, ids: 200 }));
}

pub async fn the_one_free_id_is_found_wherever_it_is(store: Store) {
    let things = Things::new(&store, 1, 150);
    things.make_all(150).await;
    for id in [1, 64, 65, 128, 150] {
        things.lose(id).await;
        assert_eq!(things.make().await, Ok(id));
    }
}

pub async fn an_id_that_stands_twice_in_the_free_list_is_given_once(store: Store) {
    let things = Things::new(&store, 1, 100);
    things.make_all(2).await;
    things.unmake(2).await;
    things.unmake(2).await;
    assert_eq!(things.free().await, [2, 2]);
    assert_eq!(things.make_all(2).await, [2, 3]);
    assert_eq!(things.free().await, [0u32; 0]);
}

pub async fn an_id_outside_of_the_range_is_not_taken_in(store: Store) {
    let things = Things::new(&store, 10, 20);
    things.unmake(9).await;
    things.unmake(21).await;
    assert_eq!(things.free().await, [0u32; 0]);
}

pub async fn takers_at_the_same_time_get_different_ids(store: Store) {
    take_at_once(vec![Things::new(&store, 1, 10_000); 8]).await;
}

pub async fn two_processes_take_different_ids(one: Store, other: Store) {
    let things = Things::new(&one, 1, 10_000);
    let theirs = things.through(&other);
    take_at_once(vec![things.clone(), theirs.clone(), things, theirs]).await;
}

/// Lets each taker make 20 things and end 10 of them, and sees that no id is held twice, or held and free.
async fn take_at_once(takers: Vec<Things>) {
    let (things, count) = (takers[0].clone(), takers.len());
    let mut running = Vec::new();
    for things in takers {
        running.push(tokio::spawn(async move {
            let mut ids = things.make_all(20).await;
            for id in ids.split_off(10) {
                things.unmake(id).await;
            }
            ids
        }));
    }
    let mut taken = Vec::new();
    for taker in running {
        taken.extend(taker.await.unwrap());
    }
    let free = things.free().await;
    let all: HashSet<u32> = taken.iter().chain(&free).copied().collect();
    assert_eq!(
        (taken.len(), all.len()),
        (10 * count, taken.len() + free.len()),
        "an id is held twice, or held and free"
    );
}

pub async fn a_released_id_rests_before_it_is_handed_out_again(store: Store) {
    let things = Things::resting(&store, 1, 100, Duration::from_secs(60));
    assert_eq!(things.make_all(3).await, [1, 2, 3]);
    let before = things.scope.transact(|tx| Ok::<_, Error>(tx.now())).await.unwrap();
    things.unmake(2).await;
    assert_eq!(things.free().await, [0u32; 0]);
    assert_eq!(things.make().await, Ok(4));
    let resting = things.scope.transact(|tx| tx.zscore(&RESTING.key(), &2)).await.unwrap();
    assert!(resting.is_some_and(|at| at as i64 >= before + 60_000), "{resting:?}");

    // Its time came: as if the minute were over.
    things.scope.transact(move |tx| tx.zadd(&RESTING.key(), &2, before as f64)).await.unwrap();
    assert_eq!(things.make_all(2).await, [2, 5]);
}

pub async fn a_living_id_that_rests_is_not_handed_out(store: Store) {
    let things = Things::resting(&store, 1, 100, Duration::from_secs(60));
    things.make_all(2).await;
    things.scope.transact(|tx| tx.zadd(&RESTING.key(), &1, 1.0)).await.unwrap();
    assert_eq!(things.make().await, Ok(3));
}

/// With a clock of the test's own.
pub async fn many_ids_rest_to_the_millisecond() {
    let clock = ManualClock::at(1_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
    let things = Things::resting(&Store::new(Arc::new(engine)), 1, 40, Duration::from_millis(500));
    let ids = things.make_all(40).await;
    for id in &ids {
        things.unmake(*id).await;
    }
    clock.advance(499);
    assert_eq!(things.make().await, Err(Exhausted { looked: 40, ids: 40 }));
    clock.advance(1);
    let again: HashSet<u32> = things.make_all(40).await.into_iter().collect();
    assert_eq!(again, ids.into_iter().collect());
}
