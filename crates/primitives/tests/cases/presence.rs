//! Presence.

use super::Realm;
use emberkeep_hot::command::Write;
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_primitives::Presence;
use emberkeep_schema::{Hash, Id, Set, Utf8, family};

family! {
    /// A connection.
    pub SOCKET = "presence-test:{realm}:socket:{id}" {
        kind: Hash<Utf8, Utf8>, partition: Realm, parts: (id: u32), ttl: refresh(60_000), owner: "test"
    }
}
family! {
    /// The connections of a player.
    pub SOCKETS = "presence-test:{realm}:sockets:{player}" {
        kind: Set<Id<u32>>, partition: Realm, parts: (player: u32), ttl: refresh(60_000), owner: "test"
    }
}

fn of(player: u32) -> Presence<SOCKETS, SOCKET, u32> {
    Presence::new(SOCKETS.key(player), |id| SOCKET.key(*id))
}

async fn open(scope: &Scope<Realm>, player: u32, id: u32) {
    let opened = scope.transact(move |tx: &mut Tx<'_, Realm>| {
        tx.hset(&SOCKET.key(id), &"ip".to_owned(), &"::1".to_owned())?;
        of(player).join(tx, &id)
    });
    opened.await.unwrap();
}

async fn living(scope: &Scope<Realm>, player: u32) -> Vec<u32> {
    scope.transact(move |tx: &mut Tx<'_, Realm>| of(player).living(tx)).await.unwrap()
}

pub async fn a_connection_is_listed_while_its_record_exists(store: Store) {
    let scope = store.scope(Realm::new());
    for id in [1, 2, 3] {
        open(&scope, 7, id).await;
    }
    scope.del(&SOCKET.key(2)).await.unwrap();
    let invalid = move |tx: &mut Tx<'_, Realm>| {
        tx.raw_write(tx.raw_name(&SOCKETS.key(7)), Write::SAdd(vec!["no id".into()]))
    };
    scope.transact::<(), Error, _>(invalid).await.unwrap();
    assert_eq!(living(&scope, 7).await, [1, 3]);
    assert_eq!(scope.scard(&SOCKETS.key(7)).await.unwrap(), 2, "and reading removes the others");
    assert_eq!(living(&scope, 8).await, [0; 0]);
}

pub async fn a_closed_connection_cannot_be_renewed(store: Store) {
    let scope = store.scope(Realm::new());
    open(&scope, 7, 1).await;
    open(&scope, 7, 2).await;
    let renew = |id| scope.transact(move |tx: &mut Tx<'_, Realm>| of(7).renew(tx, &id));
    scope.del(&SOCKETS.key(7)).await.unwrap();
    assert!(renew(1).await.unwrap());
    assert_eq!(living(&scope, 7).await, [1], "a set that another program deleted is written again");
    scope.transact(move |tx: &mut Tx<'_, Realm>| of(7).leave(tx, &1)).await.unwrap();
    assert!(!renew(1).await.unwrap());
    assert_eq!(living(&scope, 7).await, [0; 0]);
}

pub async fn all_connections_of_an_owner_are_closed_at_once(store: Store) {
    let scope = store.scope(Realm::new());
    for id in 0..20 {
        open(&scope, id % 2, id).await;
    }
    let close = |player| {
        scope.transact(move |tx: &mut Tx<'_, Realm>| {
            Presence::read_together(tx, &[of(0), of(1)])?;
            of(player).leave_all(tx)
        })
    };
    assert_eq!(close(0).await.unwrap(), 10);
    assert_eq!(close(0).await.unwrap(), 0);
    assert!(!scope.exists(&SOCKET.key(4)).await.unwrap());
    assert_eq!(living(&scope, 1).await.len(), 10, "and those of no other");
}

/// A connection's id is free again when its record has expired; the set of its first owner may live on.
pub async fn a_record_that_another_owner_took_is_left_alone(store: Store) {
    let scope = store.scope(Realm::new());
    let owned = |player: u32| of(player).owned_by("owner", player.to_string());
    let open = |player: u32, id: u32| {
        scope.transact(move |tx: &mut Tx<'_, Realm>| {
            tx.hset(&SOCKET.key(id), &"owner".to_owned(), &player.to_string())?;
            owned(player).join(tx, &id)
        })
    };
    open(7, 1).await.unwrap();
    open(7, 2).await.unwrap();
    scope.del(&SOCKET.key(1)).await.unwrap();
    open(8, 1).await.unwrap();
    let living = |player| scope.transact(move |tx: &mut Tx<'_, Realm>| owned(player).living(tx));
    assert_eq!(living(8).await.unwrap(), [1]);
    assert_eq!(living(7).await.unwrap(), [2], "the record is the other owner's");
    scope.transact(move |tx: &mut Tx<'_, Realm>| of(7).join(tx, &1)).await.unwrap();
    let close = move |tx: &mut Tx<'_, Realm>| {
        Presence::read_together(tx, &[owned(7), owned(8)])?;
        owned(7).leave_all(tx)
    };
    assert_eq!(scope.transact(close).await.unwrap(), 1);
    assert!(!scope.exists(&SOCKETS.key(7)).await.unwrap());
    assert_eq!(living(8).await.unwrap(), [1], "it is open all the same");
}
