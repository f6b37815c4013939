//! The channels of zones.

use super::*;
use crate::darkages::channel::{ZoneMessage, ZoneSubscription};
use crate::darkages::limits::SUBSCRIBED_ZONES_MAX;
use bytes::Bytes;
use emberkeep_hot::engine::Pending;

impl DarkAges {
    /// Sends a message on the channel of a zone, with the time of the commit. Subscribers that are not connected do not
    /// receive it.
    pub fn publish(&self, zone: ZoneId, message: ZoneMessage) -> Pending<'_, Result<ZoneMessage>> {
        Box::pin(async move {
            if let Some(problem) = message.problem() {
                return Err(Error::invalid("payload", problem));
            }
            let transaction = move |tx: &mut Tx<'_, Shard>| publish(tx, zone, message.clone());
            Ok(self.scope_of(zone).named("darkages.publish").transact(transaction).await?)
        })
    }

    /// Subscribes to the channels of zones, at most 256. What is published after the call arrives, or its loss is reported.
    pub fn subscribe<'a>(&'a self, zones: &'a [ZoneId]) -> Pending<'a, Result<ZoneSubscription>> {
        Box::pin(async move {
            if !(1..=SUBSCRIBED_ZONES_MAX).contains(&zones.len()) {
                let problem = format!("{}, expected 1 to {SUBSCRIBED_ZONES_MAX}", zones.len());
                return Err(Error::invalid("number of zones", problem));
            }
            let layout = self.store.key_layout();
            let name = |zone: &ZoneId| {
                Bytes::from(ZONE_CHANNEL.key(*zone).to_text(layout, self.scope_of(*zone).partition()))
            };
            let messages = self.store.subscribe(zones.iter().map(name).collect(), vec![]).await?;
            Ok(ZoneSubscription { messages, layout: layout.clone() })
        })
    }
}

/// Sends a message with the transaction, and with its time.
pub(super) fn publish(
    tx: &mut Tx<'_, Shard>,
    zone: ZoneId,
    mut message: ZoneMessage,
) -> hot::Result<ZoneMessage> {
    message.timestamp = tx.now();
    tx.publish(&ZONE_CHANNEL.key(zone), &message)?;
    Ok(message)
}
