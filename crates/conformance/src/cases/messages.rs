//! Publish and subscribe: only what committed, in the order of the commits, never at a writer's cost.

use crate::builders::*;
use crate::context::Context;
use crate::families::{NEWS, World};
use bytes::Bytes;
use emberkeep_hot::command::{Read, Reply};
use emberkeep_hot::limits::SUBSCRIBER_MESSAGES_MAX;
use emberkeep_hot::pubsub::{Event, Subscription};
use emberkeep_hot::{Error, Result, Scope, Tx};
use emberkeep_schema::Topology;
use std::time::{Duration, Instant};

/// A message that takes longer is lost.
const ARRIVAL_MAX: Duration = Duration::from_secs(10);

async fn next(listener: &mut Subscription) -> Event {
    let event = tokio::time::timeout(ARRIVAL_MAX, listener.next()).await;
    event.expect("a message comes").expect("the engine is open")
}

async fn payload(listener: &mut Subscription) -> String {
    match next(listener).await {
        Event::Message { payload, .. } => String::from_utf8_lossy(&payload).into_owned(),
        other => panic!("expected a message, got {other:?}"),
    }
}

async fn publish(scope: &Scope<World>, channel: u32, text: &str) {
    let text = text.to_owned();
    scope.transact(move |tx| tx.publish(&NEWS.key(channel), &text)).await.expect("a transaction");
}

fn raw(context: &Context, channel: u32) -> Bytes {
    Bytes::from(NEWS.key(channel).to_text(context.store().key_layout(), context.scope().partition()))
}

/// A message is sent if and only if its transaction commits; those of one transaction keep their order.
pub async fn messages_come_with_their_transaction(context: &Context) {
    let mut listener = context.scope().subscribe(&NEWS.key(1)).await.expect("a subscription");
    let key = context.fresh();
    context.put(&key, set("text")).await;
    let failing: Result<()> = context
        .transaction(|tx| {
            tx.publish(&NEWS.key(1), &"of an error".to_owned())?;
            Err(Error::Closed)
        })
        .await;
    assert_eq!(failing, Err(Error::Closed));
    let refused = context.transaction(move |tx: &mut Tx<'_, World>| {
        tx.publish(&NEWS.key(1), &"of a refusal".to_owned())?;
        tx.raw_write(key.clone(), sadd(&["a"]))
    });
    assert!(refused.await.is_err());
    let two = context.transaction(|tx| {
        tx.publish(&NEWS.key(1), &"first".to_owned())?;
        tx.publish(&NEWS.key(2), &"elsewhere".to_owned())?;
        tx.publish(&NEWS.key(1), &"second".to_owned())
    });
    two.await.expect("a transaction");
    assert_eq!(payload(&mut listener).await, "first");
    assert_eq!(payload(&mut listener).await, "second");
    assert_eq!(listener.try_next(), None);
}

/// The channel of an event is the raw name, by name and by pattern; patterns match as globs do.
pub async fn channels_and_patterns(context: &Context) {
    let (one, two) = (raw(context, 1), raw(context, 22));
    let start = String::from_utf8_lossy(&one);
    let start = start.strip_suffix('1').expect("the channel ends with its number").to_owned();
    let pattern = Bytes::from(format!("{start}?[0-4]"));
    let store = context.store();
    let mut by_name = store.subscribe(vec![one.clone(), two.clone()], vec![]).await.expect("a subscription");
    let mut by_pattern = store.subscribe(vec![], vec![pattern]).await.expect("a subscription");
    for channel in [1, 22, 25, 222] {
        publish(&context.scope(), channel, &format!("on {channel}")).await;
    }
    publish(&context.other_scope(), 24, "last").await;
    let event = |channel: &Bytes, text: &str| Event::Message { channel: channel.clone(), payload: b(text) };
    assert_eq!(next(&mut by_name).await, event(&one, "on 1"));
    assert_eq!(next(&mut by_name).await, event(&two, "on 22"));
    assert_eq!(next(&mut by_pattern).await, event(&two, "on 22"));
    assert_eq!(next(&mut by_pattern).await, event(&raw(context, 24), "last"));
    assert_eq!((by_name.try_next(), by_pattern.try_next()), (None, None));
}

/// Eight writers in two processes count up and tell the count: a subscriber hears it in order.
pub async fn order_is_the_order_of_commits(context: &Context) {
    const WRITERS: usize = 8;
    const EACH: usize = 40;
    let mut listener = context.scope().subscribe(&NEWS.key(1)).await.expect("a subscription");
    let counter = context.fresh();
    let tasks: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let scope = if writer % 2 == 0 { context.scope() } else { context.other_scope() };
            let counter = counter.clone();
            tokio::spawn(async move {
                for _ in 0..EACH {
                    count_aloud(&scope, counter.clone()).await;
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for expected in 1..=WRITERS * EACH {
        assert_eq!(payload(&mut listener).await, expected.to_string());
    }
    for task in tasks {
        task.await.expect("no writer panics");
    }
    assert_eq!(listener.try_next(), None);
}

async fn count_aloud(scope: &Scope<World>, counter: Bytes) {
    let body = move |tx: &mut Tx<'_, World>| {
        let before = match tx.raw_read(&counter, Read::Get)? {
            Reply::Blob(text) => String::from_utf8_lossy(&text).parse().expect("a number"),
            _ => 0,
        };
        let after: i64 = before + 1;
        tx.raw_write(counter.clone(), set(&after.to_string()))?;
        tx.publish(&NEWS.key(1), &after.to_string())
    };
    scope.transact(body).await.expect("writers settle");
}

/// A subscriber that does not listen loses the oldest messages, learns how many, and costs the writer
/// nothing.
pub async fn a_slow_subscriber(context: &Context) {
    let scope = context.scope();
    let mut slow = scope.subscribe(&NEWS.key(1)).await.expect("a subscription");
    let mut fast = scope.subscribe(&NEWS.key(1)).await.expect("a subscription");
    let sent = SUBSCRIBER_MESSAGES_MAX * 3;
    let started = Instant::now();
    for batch in 0..sent / 64 {
        let body = move |tx: &mut Tx<'_, World>| {
            (0..64).try_for_each(|n| tx.publish(&NEWS.key(1), &(batch * 64 + n).to_string()))
        };
        scope.transact(body).await.expect("the writer is not held up");
        for _ in 0..64 {
            payload(&mut fast).await;
        }
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let (mut missed, mut received) = (0, 0);
    loop {
        match next(&mut slow).await {
            Event::Missed { count } => missed += count.expect("an own queue knows how many"),
            Event::Message { payload, .. } => {
                assert_eq!(payload, (missed + received).to_string(), "in order, after what was missed");
                received += 1;
                if payload == (sent - 1).to_string() {
                    break;
                }
            }
        }
    }
    assert_eq!((missed + received) as usize, sent);
    assert!(missed > 0, "nothing was dropped, so nothing was proved");
}

/// Dropping a subscription ends it: the server forgets it, and a new one hears only what comes then.
pub async fn dropping_unsubscribes(context: &Context) {
    let channel = raw(context, 1);
    let external = &mut context.external();
    let first = context.scope().subscribe(&NEWS.key(1)).await.expect("a subscription");
    if let Some(listening) = external.listeners(&channel).await {
        assert_eq!(listening, 1, "one listens");
    }
    drop(first);
    let started = Instant::now();
    while external.listeners(&channel).await.is_some_and(|listening| listening > 0) {
        assert!(started.elapsed() < ARRIVAL_MAX, "the server still counts a listener");
        tokio::task::yield_now().await;
    }
    publish(&context.scope(), 1, "unheard").await;
    let mut second = context.scope().subscribe(&NEWS.key(1)).await.expect("a subscription");
    publish(&context.scope(), 1, "heard").await;
    let mut heard = payload(&mut second).await;
    if context.store().key_layout().topology() == Topology::Cluster && heard == "unheard" {
        // Its nodes hand messages on to each other in their own time: one that was published before may come
        // after.
        heard = payload(&mut second).await;
    }
    assert_eq!(heard, "heard");
}

/// What was published after `subscribe` returned is heard: there is no gap at the start.
pub async fn a_subscription_begins_at_once(context: &Context) {
    for round in 0..20 {
        let mut listener = context.scope().subscribe(&NEWS.key(round)).await.expect("a subscription");
        publish(&context.other_scope(), round, "at once").await;
        assert_eq!(payload(&mut listener).await, "at once");
    }
}
