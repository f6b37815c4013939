//! Ballots.

use super::Realm;
use bytes::Bytes;
use emberkeep_hot::command::Write;
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_primitives::{Ballot, ballot::Cast};
use emberkeep_schema::{Hash, Id, Set, Utf8, family};
use tokio::task::JoinSet;

family! {
    /// Votes.
    pub VOTES = "ballot-test:{realm}:votes" {
        kind: Hash<Id<u32>, Utf8>, partition: Realm, parts: (), ttl: given, owner: "test"
    }
}
family! {
    /// Who has voted.
    pub RECEIVED = "ballot-test:{realm}:received" {
        kind: Set<Id<u32>>, partition: Realm, parts: (), ttl: given, owner: "test"
    }
}

fn ballot(until: i64) -> Ballot<VOTES, RECEIVED> {
    Ballot::new(VOTES.key(), RECEIVED.key(), until)
}

async fn cast(scope: &Scope<Realm>, voter: u32, choice: &str, closes_in: Option<i64>) -> Cast {
    let choice = choice.to_owned();
    let transaction = move |tx: &mut Tx<'_, Realm>| {
        let now = tx.now();
        ballot(now + 60_000).cast(tx, &voter, &choice, closes_in.map(|ms| now + ms))
    };
    scope.transact(transaction).await.unwrap()
}

async fn votes(scope: &Scope<Realm>) -> Vec<(u32, String)> {
    scope.transact(|tx| ballot(i64::MAX).votes(tx)).await.unwrap()
}

pub async fn the_first_vote_of_each_counts(store: Store) {
    let scope = store.scope(Realm::new());
    assert_eq!(cast(&scope, 1, "ann", None).await, Cast::Counted);
    assert_eq!(cast(&scope, 1, "ben", None).await, Cast::AlreadyVoted);
    assert_eq!(cast(&scope, 2, "ben", Some(10_000)).await, Cast::Counted);
    assert_eq!(votes(&scope).await, [(1, "ann".into()), (2, "ben".into())]);
    assert_eq!(scope.smembers(&RECEIVED.key()).await, Ok(vec![1, 2]));
    let ends =
        (scope.deadline_of(&VOTES.key()).await.unwrap(), scope.deadline_of(&RECEIVED.key()).await.unwrap());
    assert!(ends.0.is_some() && ends.0 == ends.1, "{ends:?}");
}

pub async fn nothing_counts_at_or_after_the_deadline(store: Store) {
    let scope = store.scope(Realm::new());
    assert_eq!(cast(&scope, 1, "ann", Some(0)).await, Cast::Late);
    assert_eq!(cast(&scope, 1, "ann", Some(-5)).await, Cast::Late);
    assert_eq!(votes(&scope).await, []);
    assert_eq!(cast(&scope, 1, "ann", Some(1)).await, Cast::Counted);
}

pub async fn an_external_vote_counts_with_or_without_its_receipt(store: Store) {
    let scope = store.scope(Realm::new());
    let raw = Bytes::from(VOTES.key().to_text(store.key_layout(), scope.partition()));
    let pair = (Bytes::from_static(b"7"), Bytes::from_static(b"cleo"));
    let transaction =
        move |tx: &mut Tx<'_, Realm>| tx.raw_write(raw.clone(), Write::HSet(vec![pair.clone()]));
    scope.transact::<(), Error, _>(transaction).await.unwrap();
    assert_eq!(cast(&scope, 7, "ann", None).await, Cast::AlreadyVoted);
    assert_eq!(scope.transact(|tx| ballot(i64::MAX).voters(tx)).await, Ok(vec![7]));
}

pub async fn votes_are_struck_and_cleared_with_their_receipts(store: Store) {
    let scope = store.scope(Realm::new());
    cast(&scope, 1, "ann", None).await;
    cast(&scope, 2, "ann", None).await;
    scope.transact(|tx| ballot(i64::MAX).strike(tx, &1)).await.unwrap();
    assert_eq!(votes(&scope).await, [(2, "ann".into())]);
    assert_eq!(scope.smembers(&RECEIVED.key()).await, Ok(vec![2]));
    assert_eq!(cast(&scope, 1, "ben", None).await, Cast::Counted);
    scope.transact(|tx| ballot(i64::MAX).clear(tx)).await.unwrap();
    assert!(!scope.exists(&VOTES.key()).await.unwrap() && !scope.exists(&RECEIVED.key()).await.unwrap());
}

pub async fn of_many_votes_of_one_voter_one_counts(store: Store) {
    let scope = store.scope(Realm::new());
    let mut voters = JoinSet::new();
    for n in 0..40_u32 {
        let scope = scope.clone();
        voters.spawn(async move { cast(&scope, n % 4, &n.to_string(), None).await });
    }
    let counted = voters.join_all().await.into_iter().filter(|cast| *cast == Cast::Counted).count();
    assert_eq!((counted, votes(&scope).await.len()), (4, 4));
}
