//! Groups of keys that end together.

use super::Realm;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, Write};
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_primitives::{ExpiringGroup, expiring_group::member};
use emberkeep_schema::{Log, Newest, Raw, Set, Text, Utf8, family};

family! {
    /// A note of the group.
    pub NOTE = "group-test:{realm}:note:{id}" {
        kind: Text<Utf8>, partition: Realm, parts: (id: u32), ttl: given, owner: "test"
    }
}
family! {
    /// The log of the group.
    pub EVENTS = "log:group-test:{realm}" {
        kind: Log<Utf8, Newest<10>>, partition: Realm, parts: (), ttl: given, owner: "test"
    }
}
family! {
    /// Not of the group.
    pub OTHER = "group-test:{realm}:other:{id}" {
        kind: Text<Utf8>, partition: Realm, parts: (id: u32), ttl: given, owner: "test"
    }
}
family! {
    /// The names of the group's keys.
    pub ROSTER = "ember:group-test:{realm}" {
        kind: Set<Raw>, partition: Realm, parts: (), ttl: given, owner: "test"
    }
}

fn group() -> ExpiringGroup<ROSTER> {
    ExpiringGroup::new(ROSTER.key(), &[member::<NOTE>, member::<EVENTS>])
}

/// Three notes, two of which exist, and a log.
async fn made(store: &Store) -> (Scope<Realm>, i64) {
    let scope = store.scope(Realm::new());
    let until = store.now().await.unwrap() + 60_000;
    let transaction = move |tx: &mut Tx<'_, Realm>| {
        for id in 1..=3 {
            group().join(tx, &NOTE.key(id), until)?;
        }
        tx.put_until(&NOTE.key(1), &"one".to_owned(), until)?;
        tx.put_until(&NOTE.key(2), &"two".to_owned(), until)?;
        tx.put_until(&OTHER.key(1), &"other".to_owned(), until)?;
        group().join(tx, &EVENTS.key(), until)?;
        tx.append_until(&EVENTS.key(), &"begun".to_owned(), until)
    };
    scope.transact(transaction).await.unwrap();
    (scope, until)
}

async fn write(scope: &Scope<Realm>, name: Bytes, write: Write) {
    let transaction = move |tx: &mut Tx<'_, Realm>| tx.raw_write(name.clone(), write.clone());
    scope.transact::<(), Error, _>(transaction).await.unwrap();
}

fn name(scope: &Scope<Realm>, id: u32) -> Bytes {
    Bytes::from(NOTE.key(id).to_text(scope.store().key_layout(), scope.partition()))
}

pub async fn all_keys_of_a_group_get_one_end(store: Store) {
    let (scope, until) = made(&store).await;
    // An external service writes one anew, without an end, and makes the one that was not there.
    for id in [2, 3] {
        write(&scope, name(&scope, id), Write::Set(Bytes::from_static(b"new"), Expiry::Never)).await;
    }
    let later = until + 60_000;
    assert_eq!(scope.transact(move |tx| group().extend(tx, later)).await, Ok(4));
    assert_eq!(scope.deadline_of(&EVENTS.key()).await, Ok(Some(later)));
    for id in 1..=3 {
        assert_eq!(scope.deadline_of(&NOTE.key(id)).await, Ok(Some(later)), "note {id}");
    }
    assert_eq!(scope.deadline_of(&ROSTER.key()).await, Ok(Some(later)));
    assert_eq!(scope.deadline_of(&OTHER.key(1)).await, Ok(Some(until)), "what is not of it stays");
}

pub async fn a_group_goes_whole(store: Store) {
    let (scope, _) = made(&store).await;
    scope.transact(|tx| group().dissolve(tx)).await.unwrap();
    for id in 1..=3 {
        assert!(!scope.exists(&NOTE.key(id)).await.unwrap());
    }
    assert!(!scope.exists(&ROSTER.key()).await.unwrap());
    assert!(scope.exists(&OTHER.key(1)).await.unwrap());
    assert!(!scope.exists(&EVENTS.key()).await.unwrap(), "the log is of the group");
    let extended = scope.transact(|tx| {
        let until = tx.now() + 60_000;
        group().extend(tx, until)
    });
    assert_eq!(extended.await, Ok(0), "an empty roster is answer");
}

pub async fn a_key_leaves_its_group(store: Store) {
    let (scope, until) = made(&store).await;
    scope.transact(|tx| group().remove(tx, &NOTE.key(1))).await.unwrap();
    assert!(!scope.exists(&NOTE.key(1)).await.unwrap());
    assert_eq!(scope.transact(move |tx| group().extend(tx, until + 1)).await, Ok(3));
}

pub async fn strange_names_on_a_roster_are_dropped(store: Store) {
    let ((scope, until), (neighbour, _)) = (made(&store).await, made(&store).await);
    let roster = Bytes::from(ROSTER.key().to_text(store.key_layout(), scope.partition()));
    let other = Bytes::from(OTHER.key(1).to_text(store.key_layout(), scope.partition()));
    let strange = vec![name(&neighbour, 1), other, Bytes::from_static(b"\xff\0")];
    write(&scope, roster, Write::SAdd(strange)).await;
    assert_eq!(scope.transact(move |tx| group().extend(tx, until + 1)).await, Ok(4));
    assert_eq!(scope.scard(&ROSTER.key()).await, Ok(4));
    scope.transact(|tx| group().dissolve(tx)).await.unwrap();
    assert!(scope.exists(&OTHER.key(1)).await.unwrap() && neighbour.exists(&NOTE.key(1)).await.unwrap());
}
