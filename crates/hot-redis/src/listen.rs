//! Subscriptions: a connection of their own, opened again when it breaks, with the gap told to the subscriber.

use crate::limits::RETRY_PAUSE_MAX;
use crate::shared::Shared;
use bytes::Bytes;
use emberkeep_hot::pubsub::{Publisher, Subscription};
use emberkeep_hot::{Error, Result};
use futures_util::StreamExt;
use redis::aio::PubSub;
use std::sync::Arc;

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
        match open(node.client(), wanted).await {
            Ok(connection) => return Ok(connection),
            Err(error) => last = Some(error.to_string()),
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

/// Hands messages over until the subscription ends.
async fn listen(shared: Arc<Shared>, wanted: Wanted, mut connection: PubSub, publisher: Publisher) {
    loop {
        let mut messages = connection.into_on_message();
        while let Some(message) = messages.next().await {
            let channel = Bytes::copy_from_slice(message.get_channel_name().as_bytes());
            let payload = Bytes::copy_from_slice(message.get_payload_bytes());
            if !publisher.send(&channel, &payload) {
                return;
            }
        }
        connection = loop {
            match connect(&shared, &wanted).await {
                Ok(connection) => break connection,
                Err(_) => {
                    let _ = shared.router.refresh().await;
                    tokio::time::sleep(RETRY_PAUSE_MAX).await;
                }
            }
        };
        publisher.missed();
    }
}
