//! Mail between partitions.

use super::Realm;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, Score, Write};
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_primitives::limits::{DEAD_LETTERS_MAX, LETTERS_PER_TURN};
use emberkeep_primitives::mail::{
    self, DeadLetter, Delivery, DeliveryError, Envelope, Letter, Mail, MailError, OutboxState,
};
use emberkeep_schema::{Family, Json, Key, List, Number, SortedSet, Text, family};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use uuid::Uuid;

family! {
    /// Letters on their way.
    pub OUTBOX = "mail-test:{realm}:out" {
        kind: SortedSet<Envelope<Realm>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The last sequence, and how many wait.
    pub STATE = "mail-test:{realm}:state" {
        kind: Text<Json<OutboxState>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The highest sequence from a realm.
    pub RECEIVED = "mail-test:{realm}:from:{sender}" {
        kind: Text<Number<i64>>, partition: Realm, parts: (sender: Uuid), ttl: persistent, owner: "test"
    }
}
family! {
    /// Letters that were refused.
    pub DEAD = "mail-test:{realm}:dead" {
        kind: List<Json<DeadLetter>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The bodies that arrived, in order.
    pub ARRIVED = "mail-test:{realm}:arrived" {
        kind: List<Json<(Uuid, i64)>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}

/// Numbers between realms.
struct Numbers;

impl Mail for Numbers {
    type From = Realm;
    type To = Realm;
    type Codec = Number<i64>;
    type Outbox = OUTBOX;
    type State = STATE;
    type Received = RECEIVED;
    type Dead = DEAD;
    const LETTERS_MAX: usize = 600;

    fn outbox() -> Key<OUTBOX> {
        OUTBOX.key()
    }
    fn state() -> Key<STATE> {
        STATE.key()
    }
    fn received(from: &Realm) -> Key<RECEIVED> {
        RECEIVED.key(from.0)
    }
    fn dead() -> Key<DEAD> {
        DEAD.key()
    }
}

/// Negative numbers are refused after a write, to see that it is undone.
fn receive(tx: &mut Tx<'_, Realm>, letter: &Letter<Realm, i64>) -> Result<(), DeliveryError> {
    tx.rpush(&ARRIVED.key(), &(letter.from.0, letter.body))?;
    if letter.body < 0 {
        return Err(DeliveryError::Refused(format!("{} is negative", letter.body)));
    }
    Ok(())
}

async fn send(
    from: &Scope<Realm>,
    to: Realm,
    numbers: impl IntoIterator<Item = i64>,
) -> Result<(), MailError> {
    let numbers: Vec<i64> = numbers.into_iter().collect();
    from.transact(move |tx| numbers.iter().try_for_each(|number| mail::send::<Numbers>(tx, &to, number)))
        .await
}

async fn deliver(from: &Scope<Realm>) -> Delivery<Realm> {
    mail::deliver_from::<Numbers, _>(from, receive).await.unwrap()
}

fn counts(delivery: &Delivery<Realm>) -> (usize, usize, usize, usize) {
    (delivery.delivered, delivery.repeated, delivery.refused, delivery.waiting.len())
}

async fn arrived(to: &Scope<Realm>) -> Vec<i64> {
    to.lrange(&ARRIVED.key(), 0, -1).await.unwrap().into_iter().map(|(_, number)| number).collect()
}

async fn raw<F: Family<Partition = Realm>>(scope: &Scope<Realm>, key: Key<F>, write: Write) {
    let key = Bytes::from(key.to_text(scope.store().key_layout(), scope.partition()));
    scope.transact(move |tx: &mut Tx<'_, Realm>| tx.raw_write(key.clone(), write.clone())).await.unwrap();
}

fn scopes(store: &Store) -> [Scope<Realm>; 3] {
    [(); 3].map(|()| store.scope(Realm::new()))
}

pub async fn letters_arrive_once_and_in_order(store: Store) {
    let [from, to, other] = scopes(&store);
    send(&from, *to.partition(), [1, 2, 3]).await.unwrap();
    send(&from, *other.partition(), [10]).await.unwrap();
    send(&from, *to.partition(), [4]).await.unwrap();
    send(&from, *from.partition(), [7]).await.unwrap();
    assert_eq!(from.read(mail::waiting::<Numbers>).await, Ok(6));
    assert_eq!(counts(&deliver(&from).await), (6, 0, 0, 0));
    assert_eq!((arrived(&to).await, arrived(&other).await), (vec![1, 2, 3, 4], vec![10]));
    assert_eq!(arrived(&from).await, [7]);
    assert_eq!(counts(&deliver(&from).await), (0, 0, 0, 0));
    assert_eq!(from.exists(&OUTBOX.key()).await, Ok(false));
}

pub async fn a_letter_leaves_only_with_its_transaction(store: Store) {
    let [from, to, _] = scopes(&store);
    let to_realm = *to.partition();
    let undone = from.transact(move |tx| {
        mail::send::<Numbers>(tx, &to_realm, &1)?;
        Err::<(), MailError>(Error::Closed.into())
    });
    assert_eq!(undone.await, Err(MailError::Store(Error::Closed)));
    assert_eq!((counts(&deliver(&from).await), arrived(&to).await), ((0, 0, 0, 0), vec![]));
}

pub async fn a_letter_that_was_not_removed_has_no_second_effect(store: Store) {
    let [from, to, _] = scopes(&store);
    send(&from, *to.partition(), [1, 2]).await.unwrap();
    // A courier dies between its two transactions: the letters are in the outbox again.
    let letters =
        from.zrange(&OUTBOX.key(), emberkeep_hot::command::ZSlice::Rank(0, 9), false).await.unwrap();
    assert_eq!(counts(&deliver(&from).await), (2, 0, 0, 0));
    let put_back = from.transact(move |tx| {
        letters.iter().try_for_each(|(letter, score)| tx.zadd(&OUTBOX.key(), letter, *score))
    });
    put_back.await.unwrap();
    send(&from, *to.partition(), [3]).await.unwrap();
    assert_eq!(counts(&deliver(&from).await), (1, 2, 0, 0));
    assert_eq!(arrived(&to).await, [1, 2, 3]);
}

pub async fn a_lost_counter_loses_no_letter(store: Store) {
    let [from, to, _] = scopes(&store);
    send(&from, *to.partition(), [1]).await.unwrap();
    assert_eq!(counts(&deliver(&from).await), (1, 0, 0, 0));
    let before = store.now().await.unwrap();
    assert_eq!(from.del(&STATE.key()).await, Ok(true));
    // A sequence has the microseconds of the engine, which must have moved on.
    while store.now().await.unwrap() <= before + 1 {
        tokio::task::yield_now().await;
    }
    send(&from, *to.partition(), [2]).await.unwrap();
    assert_eq!((counts(&deliver(&from).await), arrived(&to).await), ((1, 0, 0, 0), vec![1, 2]));
    let last = OutboxState { sequence: i64::MAX, ..Default::default() };
    from.put(&STATE.key(), last).await.unwrap();
    let refused = send(&from, *to.partition(), [3]).await;
    assert!(matches!(refused, Err(MailError::Store(Error::Invalid { .. }))), "{refused:?}");
}

pub async fn a_refused_letter_is_dead_and_blocks_nothing(store: Store) {
    let [from, to, other] = scopes(&store);
    send(&from, *to.partition(), [1, -2, 3]).await.unwrap();
    send(&from, *other.partition(), [10]).await.unwrap();
    assert_eq!(counts(&deliver(&from).await), (3, 0, 1, 0));
    assert_eq!((arrived(&to).await, arrived(&other).await), (vec![1, 3], vec![10]));
    let take = || to.transact(mail::take_dead::<Numbers>);
    let dead = take().await.unwrap().expect("a dead letter");
    assert_eq!((dead.from.clone(), dead.reason.as_str()), (from.partition().to_string(), "-2 is negative"));
    assert!(dead.at_ms > 0 && dead.body::<Number<i64>>() == Ok(-2), "{dead:?}");
    assert_eq!(take().await, Ok(None));
}

pub async fn full_dead_letters_keep_the_next_one_waiting(store: Store) {
    let [from, to, other] = scopes(&store);
    let fill = |tx: &mut Tx<'_, Realm>| {
        let dead = DeadLetter {
            from: "x".into(),
            sequence: 1,
            at_ms: 1,
            reason: "old".into(),
            text: None,
            hex: None,
            extra: Default::default(),
        };
        (0..DEAD_LETTERS_MAX).try_for_each(|_| tx.rpush(&DEAD.key(), &dead))
    };
    to.transact(fill).await.unwrap();
    send(&from, *to.partition(), [-1, 2]).await.unwrap();
    send(&from, *other.partition(), [10]).await.unwrap();
    let delivery = deliver(&from).await;
    assert_eq!(counts(&delivery), (1, 0, 0, 1), "{delivery:?}");
    assert!(delivery.waiting[0].error.to_string().contains("mail::take_dead"), "{delivery:?}");
    assert_eq!((arrived(&to).await, arrived(&other).await), (vec![], vec![10]));
    to.transact(mail::take_dead::<Numbers>).await.unwrap();
    assert_eq!((counts(&deliver(&from).await), arrived(&to).await), ((1, 0, 1, 0), vec![2]));
}

pub async fn a_full_outbox_refuses(store: Store) {
    let [from, to, _] = scopes(&store);
    send(&from, *to.partition(), 0..600).await.unwrap();
    let refused = send(&from, *to.partition(), [600]).await.unwrap_err();
    assert!(matches!(&refused, MailError::Full { max: 600, .. }), "{refused}");
    let turns = 600usize.div_ceil(LETTERS_PER_TURN);
    for _ in 0..turns {
        deliver(&from).await;
    }
    assert_eq!(arrived(&to).await, (0..600).collect::<Vec<i64>>());
    send(&from, *to.partition(), [600]).await.unwrap();
    let state = from.get(&STATE.key()).await.unwrap().expect("a state");
    assert_eq!((state.waiting, from.read(mail::waiting::<Numbers>).await), (1, Ok(1)));
}

pub async fn a_receiver_that_fails_keeps_only_its_own_mail(store: Store) {
    let [from, to, other] = scopes(&store);
    // More than a turn hands over, before the letter of the other one.
    send(&from, *to.partition(), 0..300).await.unwrap();
    send(&from, *other.partition(), [10]).await.unwrap();
    raw(&from, OUTBOX.key(), Write::ZAdd(vec![(Bytes::from_static(b"no letter"), Score::new(5.0).unwrap())]))
        .await;
    raw(&to, ARRIVED.key(), Write::Set(Bytes::from_static(b"no list"), Expiry::Never)).await;
    let delivery = deliver(&from).await;
    assert_eq!((counts(&delivery), delivery.corrupt.len()), ((1, 0, 0, 1), 1), "{delivery:?}");
    assert!(matches!(delivery.waiting[0].error, Error::WrongType { .. }), "{delivery:?}");
    assert_eq!(arrived(&other).await, [10]);
    raw(&to, ARRIVED.key(), Write::Del).await;
    while deliver(&from).await.delivered > 0 {}
    assert_eq!(arrived(&to).await, (0..300).collect::<Vec<i64>>());
}

pub async fn couriers_find_all_senders(store: Store) {
    let to = store.scope(Realm::new());
    for number in 0..20 {
        send(&store.scope(Realm::new()), *to.partition(), [number]).await.unwrap();
    }
    let mut next = None;
    loop {
        let round = mail::deliver_all::<Numbers, _>(&store, next, receive).await.unwrap();
        next = round.next;
        if next.is_none() {
            break;
        }
    }
    let mut numbers = arrived(&to).await;
    numbers.sort_unstable();
    assert_eq!(numbers, (0..20).collect::<Vec<i64>>());
}

pub async fn many_couriers_deliver_each_letter_once(store: Store) {
    deliver_at_once(vec![store; 8]).await;
}

pub async fn couriers_of_two_processes_deliver_each_letter_once(one: Store, other: Store) {
    deliver_at_once([one, other].into_iter().cycle().take(6).collect()).await;
}

/// Lets many couriers deliver while senders send, and some of them be dropped in the middle of their work.
async fn deliver_at_once(couriers: Vec<Store>) {
    let (stores, sent_all) = (couriers.clone(), Arc::new(AtomicBool::new(false)));
    let senders = [(); 3].map(|()| Realm::new());
    let receivers = [(); 2].map(|()| Realm::new());
    let couriers: Vec<_> = couriers
        .into_iter()
        .enumerate()
        .map(|(number, store)| {
            let sent_all = sent_all.clone();
            tokio::spawn(async move {
                for turn in 0.. {
                    let finished = sent_all.load(Ordering::Acquire);
                    let mut work = 0;
                    for sender in senders {
                        let scope = store.scope(sender);
                        let delivery = mail::deliver_from::<Numbers, _>(&scope, receive);
                        // Dropped wherever it is, as by a kill -9.
                        let is_killed = (number + turn) % 3 == 0;
                        let life = if is_killed { Duration::from_micros(300) } else { Duration::MAX };
                        let Ok(delivery) = tokio::time::timeout(life, delivery).await else {
                            work += 1;
                            continue;
                        };
                        work += delivery.unwrap().delivered;
                    }
                    if finished && work == 0 {
                        return;
                    }
                }
            })
        })
        .collect();
    for round in 0..20 {
        for sender in senders {
            let from = stores[round % stores.len()].scope(sender);
            for to in receivers {
                send(&from, to, [2 * round as i64, 2 * round as i64 + 1]).await.unwrap();
            }
        }
    }
    sent_all.store(true, Ordering::Release);
    for courier in couriers {
        courier.await.unwrap();
    }
    for to in receivers {
        let mut by_sender = HashMap::<Uuid, Vec<i64>>::new();
        for (from, number) in stores[0].scope(to).lrange(&ARRIVED.key(), 0, -1).await.unwrap() {
            by_sender.entry(from).or_default().push(number);
        }
        for sender in senders {
            assert_eq!(by_sender.remove(&sender.0), Some((0..40).collect()), "each once, in order");
        }
    }
}
