//! Records.

use super::Realm;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, Read, Reply, Write};
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_primitives::record::{self, Change};
use emberkeep_schema::{Array, Json, Text, family, record};

record! {
    /// A chest.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Chest {
        /// Coins in it.
        pub coins: u64 => "coins" or 0,
        /// Who opened it.
        pub openers: Array<u32> => "openers" default,
    }
}
family! {
    /// A chest.
    pub CHEST = "record-test:{realm}:{id}" {
        kind: Text<Json<Chest>>, partition: Realm, parts: (id: u32), ttl: refresh(3_600_000), owner: "test"
    }
}

fn chest(coins: u64) -> Chest {
    Chest { coins, ..Chest::new() }
}

fn raw(scope: &Scope<Realm>, id: u32) -> Bytes {
    Bytes::from(CHEST.key(id).to_text(scope.store().key_layout(), scope.partition()))
}

async fn external(scope: &Scope<Realm>, id: u32, text: &'static str) {
    let key = raw(scope, id);
    let transaction = move |tx: &mut Tx<'_, Realm>| {
        tx.raw_write(key.clone(), Write::Set(Bytes::from_static(text.as_bytes()), Expiry::Never))
    };
    scope.transact(transaction).await.unwrap();
}

async fn stored(scope: &Scope<Realm>, id: u32) -> String {
    let replies = scope.store().engine().read_many(vec![(raw(scope, id), Read::Get)]).await.unwrap();
    match &replies[0] {
        Reply::Blob(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => format!("{other:?}"),
    }
}

async fn add(scope: &Scope<Realm>, id: u32, coins: u64) -> Result<Option<u64>, Error> {
    let rule = move |chest: &mut Chest| {
        chest.coins += coins;
        Ok(Change::Put(chest.coins))
    };
    scope.transact(move |tx| record::update(tx, &CHEST.key(id), rule)).await
}

pub async fn a_record_is_created_once(store: Store) {
    let scope = store.scope(Realm::new());
    let creators: Vec<_> = (0..16)
        .map(|coins| {
            let scope = scope.clone();
            let create = move |tx: &mut Tx<'_, Realm>| record::create(tx, &CHEST.key(1), &chest(coins));
            tokio::spawn(async move { scope.transact(create).await })
        })
        .collect();
    let mut winners = 0;
    for creator in creators {
        winners += u32::from(creator.await.unwrap().unwrap());
    }
    assert_eq!(winners, 1);
}

pub async fn changes_at_the_same_time_are_all_made(store: Store) {
    let scope = store.scope(Realm::new());
    assert_eq!(add(&scope, 1, 5).await, Ok(None));
    scope.put(&CHEST.key(1), chest(0)).await.unwrap();
    let adders: Vec<_> = (0..8)
        .map(|_| {
            let scope = scope.clone();
            tokio::spawn(async move {
                for _ in 0..25 {
                    add(&scope, 1, 1).await.unwrap();
                }
            })
        })
        .collect();
    for adder in adders {
        adder.await.unwrap();
    }
    assert_eq!(scope.get(&CHEST.key(1)).await.unwrap(), Some(chest(200)));
}

pub async fn what_others_wrote_stays_in_its_bytes(store: Store) {
    let scope = store.scope(Realm::new());
    external(&scope, 1, r#"{"coins":1,"openers":{},"lock":{"pins":[1.50,2e3]},"note":"\u00fc"}"#).await;
    assert_eq!(add(&scope, 1, 4).await, Ok(Some(5)));
    assert_eq!(
        stored(&scope, 1).await,
        r#"{"coins":5,"openers":[],"lock":{"pins":[1.50,2e3]},"note":"\u00fc"}"#
    );
    let end = scope.transact(|tx| tx.deadline(&CHEST.key(1))).await.unwrap();
    assert!(end.is_some(), "the family's life came with our write");
}

pub async fn a_rule_may_leave_it_as_it_is(store: Store) {
    let scope = store.scope(Realm::new());
    external(&scope, 1, r#"{ "coins" : 1 }"#).await;
    let look = |chest: &mut Chest| Ok::<_, Error>(Change::Leave(chest.coins));
    assert_eq!(scope.transact(move |tx| record::update(tx, &CHEST.key(1), look)).await, Ok(Some(1)));
    assert_eq!(stored(&scope, 1).await, r#"{ "coins" : 1 }"#);
}

pub async fn a_broken_record_is_named_and_stays(store: Store) {
    let scope = store.scope(Realm::new());
    external(&scope, 1, r#"{"coins":"#).await;
    let error = add(&scope, 1, 4).await.unwrap_err();
    assert!(matches!(&error, Error::Corrupt { key, .. } if key.contains("record-test:")), "{error}");
    let created = scope.transact(|tx| record::create(tx, &CHEST.key(1), &chest(9))).await;
    assert_eq!(created, Ok(false));
    assert_eq!(stored(&scope, 1).await, r#"{"coins":"#);
}
