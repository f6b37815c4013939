//! Subscriptions: a connection of their own, opened again when it breaks or falls silent, with the gap told to the
//! subscriber.

use crate::limits::*;
use crate::shared::Shared;
use bytes::Bytes;
use emberkeep_hot::pubsub::{Publisher, Subscription};
use emberkeep_hot::{Error, Result};
use futures_util::StreamExt;
use redis::aio::{PubSub, PubSubSink, PubSubStream};
use std::sync::Arc;
use tokio::time::{sleep, timeout};

/// What a subscriber asked for.
struct Wanted {
    channels: Vec<Bytes>,
    patterns: Vec<Bytes>,
}

/// Ends the listening task when the subscription is dropped.
struct Listening(tokio::task::JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Subscribes; returns when the server has confirmed it.
pub(crate) async fn subscribe(
    shared: &Arc<Shared>,
    channels: Vec<Bytes>,
    patterns: Vec<Bytes>,
) -> Result<Subscription> {
    let wanted = Wanted { channels, patterns };
    let connection = connect(shared, &wanted).await?;
    let (publisher, subscription) = Subscription::channel(None);
    let task = tokio::spawn(listen(shared.clone(), wanted, connection, publisher));
    Ok(subscription.guarded_by(Box::new(Listening(task))))
}

async fn connect(shared: &Shared, wanted: &Wanted) -> Result<PubSub> {
    // On a Cluster every node hears every message.
    let mut last = None;
    for node in shared.router.primaries() {
        // The library's own time-outs do not cover a server that accepts and says nothing.
        match timeout(CONNECT_WAIT, open(node.client(), wanted)).await {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => last = Some(error.to_string()),
            Err(_) => last = Some(format!("no greeting within {CONNECT_WAIT:?}")),
        }
    }
    Err(Error::Unavailable {
        backend: shared.name.clone(),
        reason: last.unwrap_or_else(|| "no server is known".into()),
        advice: "subscribe again when it is back",
    })
}

async fn open(client: &redis::Client, wanted: &Wanted) -> redis::RedisResult<PubSub> {
    let mut connection = client.get_async_pubsub().await?;
    for channel in &wanted.channels {
        connection.subscribe(&channel[..]).await?;
    }
    for pattern in &wanted.patterns {
        connection.psubscribe(&pattern[..]).await?;
    }
    Ok(connection)
}

/// Listens until the subscription ends. A new connection has missed what was said before it: the subscriber is told
/// as soon as it is there, so that whatever it reads then is followed by every later message.
async fn listen(shared: Arc<Shared>, wanted: Wanted, mut connection: PubSub, publisher: Publisher) {
    loop {
        let (mut sink, mut messages) = connection.split();
        let wanted_on = tokio::select! {
            wanted_on = hand_over(&mut messages, &publisher) => wanted_on,
            () = until_silent(&mut sink) => true,
        };
        if !wanted_on {
            return;
        }
        connection = reconnect(&shared, &wanted).await;
        publisher.missed();
    }
}

/// Hands messages over until the connection breaks. `false` = nobody listens any more.
async fn hand_over(messages: &mut PubSubStream, publisher: &Publisher) -> bool {
    while let Some(message) = messages.next().await {
        let channel = Bytes::copy_from_slice(message.get_channel_name().as_bytes());
        let payload = Bytes::copy_from_slice(message.get_payload_bytes());
        if !publisher.send(&channel, &payload) {
            return false;
        }
    }
    true
}

/// Asks for a sign of life again and again; returns when there is none.
async fn until_silent(sink: &mut PubSubSink) {
    loop {
        sleep(SUBSCRIPTION_PING).await;
        if !matches!(timeout(SUBSCRIPTION_PING_WAIT, sink.ping::<redis::Value>()).await, Ok(Ok(_))) {
            return;
        }
    }
}

async fn reconnect(shared: &Shared, wanted: &Wanted) -> PubSub {
    loop {
        match connect(shared, wanted).await {
            Ok(connection) => return connection,
            Err(_) => {
                let _ = shared.router.refresh().await;
                sleep(RETRY_PAUSE_MAX).await;
            }
        }
    }
}
