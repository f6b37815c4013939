//! Subscriptions: each has a connection of its own, which is opened again when it breaks or falls silent. The
//! subscriber learns of the gap.

use crate::limits::*;
use crate::shared::Shared;
use bytes::Bytes;
use emberkeep_hot::pubsub::{Publisher, Subscription};
use emberkeep_hot::{Error, Result};
use futures_util::StreamExt;
use redis::aio::{PubSub, PubSubSink, PubSubStream};
use std::sync::Arc;
use tokio::time::{sleep, timeout};

struct Channels {
    names: Vec<Bytes>,
    patterns: Vec<Bytes>,
}

/// Ends the listening task when the subscription is dropped.
struct ListenerGuard(tokio::task::JoinHandle<()>);

impl Drop for ListenerGuard {
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
    let channels = Channels { names: channels, patterns };
    let connection = connect(shared, &channels).await?;
    let (publisher, subscription) = Subscription::channel(None);
    let task = tokio::spawn(listen(shared.clone(), channels, connection, publisher));
    Ok(subscription.guarded_by(Box::new(ListenerGuard(task))))
}

async fn connect(shared: &Shared, channels: &Channels) -> Result<PubSub> {
    // On a Cluster every server receives every message.
    let mut last = None;
    for server in shared.router.primaries() {
        // The library's own time-outs do not cover a server that accepts and never answers.
        match timeout(CONNECT_WAIT, open(server.client(), channels)).await {
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

async fn open(client: &redis::Client, channels: &Channels) -> redis::RedisResult<PubSub> {
    let mut connection = client.get_async_pubsub().await?;
    for channel in &channels.names {
        connection.subscribe(&channel[..]).await?;
    }
    for pattern in &channels.patterns {
        connection.psubscribe(&pattern[..]).await?;
    }
    Ok(connection)
}

/// Listens until the subscription ends. A new connection has missed the messages before it. The subscriber
/// learns of that once the connection is open, so that what it reads then is followed by every later message.
async fn listen(shared: Arc<Shared>, channels: Channels, mut connection: PubSub, publisher: Publisher) {
    loop {
        let (mut sink, mut messages) = connection.split();
        let has_subscriber = tokio::select! {
            has_subscriber = forward(&mut messages, &publisher) => has_subscriber,
            () = until_silent(&mut sink) => true,
        };
        if !has_subscriber {
            return;
        }
        connection = reconnect(&shared, &channels).await;
        publisher.missed();
    }
}

/// Forwards messages until the connection breaks. `false` = the subscription has ended.
async fn forward(messages: &mut PubSubStream, publisher: &Publisher) -> bool {
    while let Some(message) = messages.next().await {
        let channel = Bytes::copy_from_slice(message.get_channel_name().as_bytes());
        let payload = Bytes::copy_from_slice(message.get_payload_bytes());
        if !publisher.send(&channel, &payload) {
            return false;
        }
    }
    true
}

/// Pings the server at intervals; returns when it does not answer.
async fn until_silent(sink: &mut PubSubSink) {
    loop {
        sleep(SUBSCRIPTION_PING).await;
        if !matches!(timeout(SUBSCRIPTION_PING_WAIT, sink.ping::<redis::Value>()).await, Ok(Ok(_))) {
            return;
        }
    }
}

async fn reconnect(shared: &Shared, channels: &Channels) -> PubSub {
    loop {
        match connect(shared, channels).await {
            Ok(connection) => return connection,
            Err(_) => {
                let _ = shared.router.refresh().await;
                sleep(RETRY_PAUSE_MAX).await;
            }
        }
    }
}
