//! Claims.

use super::Realm;
use bytes::Bytes;
use emberkeep_hot::command::Write;
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_primitives::{Claims, claim::Take};
use emberkeep_schema::{Family, Hash, Id, Key, family};
use tokio::task::JoinSet;

family! {
    /// The seat of a guest.
    pub SEAT_OF = "claim-test:{realm}:seat-of" {
        kind: Hash<Id<u32>, Id<u8>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The guest on a seat.
    pub GUEST_ON = "claim-test:{realm}:guest-on" {
        kind: Hash<Id<u8>, Id<u32>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}

fn seats() -> Claims<SEAT_OF, GUEST_ON> {
    Claims::new(SEAT_OF.key(), GUEST_ON.key(), ())
}

async fn take(scope: &Scope<Realm>, guest: u32, seat: u8) -> Take<u32, u8> {
    scope.transact(move |tx| seats().take(tx, &guest, &seat)).await.unwrap()
}

async fn all(scope: &Scope<Realm>) -> Vec<(u32, u8)> {
    scope.transact(|tx| seats().all(tx)).await.unwrap()
}

/// A field that a service in another language sets: half a claim.
async fn half<F: Family<Partition = Realm>>(scope: &Scope<Realm>, key: Key<F>, field: u32, value: u32) {
    let raw = Bytes::from(key.to_text(scope.store().key_layout(), scope.partition()));
    let pair = (Bytes::from(field.to_string()), Bytes::from(value.to_string()));
    let transaction =
        move |tx: &mut Tx<'_, Realm>| tx.raw_write(raw.clone(), Write::HSet(vec![pair.clone()]));
    scope.transact::<(), Error, _>(transaction).await.unwrap();
}

pub async fn each_side_is_taken_once(store: Store) {
    let scope = store.scope(Realm::new());
    assert_eq!(take(&scope, 1, 10).await, Take::Taken);
    assert_eq!(take(&scope, 2, 10).await, Take::RightHeldBy(1));
    assert_eq!(take(&scope, 1, 20).await, Take::LeftHas(10));
    assert_eq!(take(&scope, 1, 10).await, Take::LeftHas(10));
    assert_eq!(take(&scope, 2, 20).await, Take::Taken);
    assert_eq!(all(&scope).await, [(1, 10), (2, 20)]);
    let found = scope.transact(|tx| Ok::<_, Error>((seats().right_of(tx, &2)?, seats().left_of(tx, &10)?)));
    assert_eq!(found.await, Ok((Some(20), Some(1))));
}

pub async fn a_release_frees_both_sides(store: Store) {
    let scope = store.scope(Realm::new());
    take(&scope, 1, 10).await;
    take(&scope, 2, 20).await;
    assert_eq!(scope.transact(|tx| seats().release_left(tx, &1)).await, Ok(Some(10)));
    assert_eq!(scope.transact(|tx| seats().release_left(tx, &1)).await, Ok(None));
    assert_eq!(scope.transact(|tx| seats().release_right(tx, &20)).await, Ok(Some(2)));
    assert_eq!(all(&scope).await, []);
    assert_eq!(take(&scope, 2, 10).await, Take::Taken);
    scope.transact(|tx| seats().clear(tx)).await.unwrap();
    assert!(!scope.exists(&SEAT_OF.key()).await.unwrap() && !scope.exists(&GUEST_ON.key()).await.unwrap());
}

pub async fn half_a_claim_belongs_to_no_owner_and_blocks_others(store: Store) {
    let scope = store.scope(Realm::new());
    half(&scope, SEAT_OF.key(), 1, 10).await;
    half(&scope, GUEST_ON.key(), 20, 2).await;
    assert_eq!(all(&scope).await, []);
    assert_eq!(take(&scope, 1, 30).await, Take::LeftHas(10));
    assert_eq!(take(&scope, 3, 20).await, Take::RightHeldBy(2));
    assert_eq!(scope.transact(|tx| seats().held(tx)).await, Ok(vec![20]), "what is in the way");
    // No record says that seat 10 is taken.
    assert_eq!(take(&scope, 3, 10).await, Take::Taken);
    // Now the half of guest 1 can never be whole.
    assert_eq!(take(&scope, 1, 30).await, Take::Taken);
    assert_eq!(all(&scope).await, [(1, 30), (3, 10)]);
    half(&scope, GUEST_ON.key(), 40, 3).await;
    assert_eq!(
        scope.transact(|tx| seats().held(tx)).await,
        Ok(vec![10, 20, 30]),
        "seat 40 never comes to guest 3"
    );
}

pub async fn two_halves_that_disagree_are_no_claim_and_can_be_released(store: Store) {
    let scope = store.scope(Realm::new());
    // Guest 1 says seat 10, seat 10 says guest 2, and guest 2 says nothing: who comes next is not known.
    half(&scope, SEAT_OF.key(), 1, 10).await;
    half(&scope, GUEST_ON.key(), 10, 2).await;
    assert_eq!(all(&scope).await, []);
    assert_eq!(take(&scope, 1, 20).await, Take::LeftHas(10));
    assert_eq!(take(&scope, 3, 10).await, Take::RightHeldBy(2));
    assert_eq!(scope.transact(|tx| seats().release_left(tx, &1)).await, Ok(None), "it was no claim");
    assert_eq!(scope.hget(&GUEST_ON.key(), &10).await, Ok(Some(2)), "what is another's stays");
    assert_eq!(scope.transact(|tx| seats().release_right(tx, &10)).await, Ok(None));
    assert_eq!(take(&scope, 3, 10).await, Take::Taken);
}

pub async fn of_many_takers_each_right_has_one(store: Store) {
    let scope = store.scope(Realm::new());
    let mut takers = JoinSet::new();
    for guest in 0..48_u32 {
        let scope = scope.clone();
        takers.spawn(async move {
            for n in 0..6 {
                if take(&scope, guest, ((guest + n) % 6) as u8).await == Take::Taken {
                    return true;
                }
            }
            false
        });
    }
    let winners = takers.join_all().await.into_iter().filter(|won| *won).count();
    assert_eq!((winners, all(&scope).await.len()), (6, 6));
}
