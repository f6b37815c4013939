//! What an id pool promises, on any store: each case takes a store that others may be using, and a realm of its own.

#![allow(unreachable_pub)] // Cases are `pub` so that every runner can name them.

use emberkeep_hot::{Error, Scope, Store};
use emberkeep_primitives::{Exhausted, IdPool, Taken};
use emberkeep_schema::{Id, List, Number, Text, Utf8, family, partition};
use std::collections::HashSet;
use uuid::Uuid;

/// Runs a macro on the names of all cases.
#[macro_export]
macro_rules! for_each_case {
    ($run:ident) => {
        $run! {
            ids_are_counted_and_the_counter_wraps
            released_ids_come_first_and_the_last_one_before_the_others
            when_every_id_lives_the_pool_is_exhausted
            a_pool_larger_than_a_step_is_searched_to_its_end
            the_one_free_id_is_found_wherever_it_is
            an_id_that_stands_twice_in_the_free_list_is_given_once
            an_id_outside_of_the_range_is_not_taken_in
            takers_at_the_same_time_get_different_ids
        }
    };
}

partition! {
    /// What a pool lives in.
    #[derive(Copy)]
    pub struct Realm(Uuid) as "realm";
}
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

/// Things whose ids come from a pool of `first..=last`.
#[derive(Clone)]
struct Things {
    scope: Scope<Realm>,
    pool: IdPool<NEXT, FREE>,
}

impl Things {
    fn new(store: &Store, first: i64, last: i64) -> Things {
        let pool = IdPool::new(first..=last, NEXT.key(), FREE.key());
        Things { scope: pool.announced(store.scope(Realm(Uuid::new_v4()))), pool }
    }

    async fn make(&self) -> Result<u32, Exhausted> {
        let mut search = self.pool.search();
        loop {
            let pool = self.pool.clone();
            let step = self.scope.transact(move |tx| {
                let taken = pool.take(tx, |tx, id| tx.exists(&THING.key(id)))?;
                if let Taken::Id(id) = taken {
                    tx.put(&THING.key(id), &"here".to_owned())?;
                }
                Ok::<_, Error>(taken)
            });
            match step.await.unwrap() {
                Taken::Id(id) => return Ok(id),
                Taken::NotYet(looked) => search.go_on(looked)?,
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
        let step = move |tx: &mut emberkeep_hot::Tx<'_, Realm>| {
            tx.del(&THING.key(id))?;
            pool.release(tx, &id)
        };
        self.scope.transact(step).await.unwrap();
    }

    /// Removes a thing as somebody does who does not know the pool.
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
    assert_eq!(things.make().await, Err(Exhausted { ids: 4 }));
    things.unmake(3).await;
    assert_eq!(things.make().await, Ok(3));
    assert_eq!(things.make().await, Err(Exhausted { ids: 4 }));
}

pub async fn a_pool_larger_than_a_step_is_searched_to_its_end(store: Store) {
    let things = Things::new(&store, -100, 99);
    // Negative numbers are no u32: a range that the id type cannot hold is told, not skipped.
    let pool = things.pool.clone();
    let told = things.scope.transact(move |tx| pool.take(tx, |_, _| Ok(false))).await.unwrap_err();
    assert!(told.to_string().contains("-100, which is no u32"), "{told}");

    let things = Things::new(&store, 1, 200);
    things.make_all(200).await;
    assert_eq!(things.make().await, Err(Exhausted { ids: 200 }));
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
    let things = Things::new(&store, 1, 10_000);
    let mut takers = Vec::new();
    for _ in 0..8 {
        let things = things.clone();
        takers.push(tokio::spawn(async move {
            let mut ids = things.make_all(20).await;
            for id in ids.split_off(10) {
                things.unmake(id).await;
            }
            ids
        }));
    }
    let mut held = Vec::new();
    for taker in takers {
        held.extend(taker.await.unwrap());
    }
    let free = things.free().await;
    let all: HashSet<u32> = held.iter().chain(&free).copied().collect();
    assert_eq!(
        (held.len(), all.len()),
        (80, held.len() + free.len()),
        "an id is held twice, or held and free"
    );
}
