//! The channels of zones: messages wake, and nothing depends on them.

use super::City;
use emberkeep_games::darkages::limits::{PAYLOAD_BYTES_MAX, SUBSCRIBED_ZONES_MAX};
use emberkeep_games::darkages::{
    EntityNotice, Error, MessageType, Payload, Shard, ZONE_CHANNEL, ZoneEvent, ZoneId, ZoneMessage,
    ZoneSubscription,
};
use emberkeep_hot::limits::SUBSCRIBER_MESSAGES_MAX;
use emberkeep_hot::{self as hot, Store, Tx};
use emberkeep_schema::{Channel, Utf8, family};
use std::time::Duration;

/// A message that takes longer is lost.
const ARRIVAL_MAX: Duration = Duration::from_secs(10);

async fn next(subscription: &mut ZoneSubscription) -> ZoneEvent {
    let event = tokio::time::timeout(ARRIVAL_MAX, subscription.next()).await;
    event.expect("a message comes").expect("the store is open")
}

family! {
    /// The channels of zones, as programs see them that publish any text.
    EXTERNAL_CHANNEL = "channel:zone:{zone_id}" {
        kind: Channel<Utf8>, partition: shared Shard, parts: (zone_id: ZoneId), ttl: persistent, owner: "test"
    }
}

/// Publishes a text as another program does.
async fn external(city: &City, zone: ZoneId, text: &str) {
    let text = text.to_owned();
    let transaction = move |tx: &mut Tx<'_, Shard>| tx.publish(&EXTERNAL_CHANNEL.key(zone), &text);
    city.scope.transact::<(), hot::Error, _>(transaction).await.unwrap();
}

pub async fn messages_of_all_types_reach_the_subscribers_of_a_zone(store: Store) {
    let city = City::of(&store);
    let (here, there, elsewhere) = (city.zone(1), city.zone(2), city.zone(3));
    let mut both = city.game.subscribe(&[here, there]).await.unwrap();
    let mut other = city.game.subscribe(&[elsewhere]).await.unwrap();
    let notice = EntityNotice { handoff: Some(3), ..EntityNotice::new(city.player(1).0) };
    for (zone, message_type) in [here, there, here, there].into_iter().zip(MessageType::ALL) {
        let before = store.now().await.unwrap();
        let sent = ZoneMessage::about(message_type.clone(), here, there, &notice);
        let sent = city.game.publish(zone, sent).await.unwrap();
        assert!((before..=store.now().await.unwrap()).contains(&sent.timestamp), "the time of the commit");
        assert_eq!(next(&mut both).await, ZoneEvent::Message { zone, message: sent.clone() });
        assert_eq!((sent.message_type.clone(), sent.entity()), (message_type, Some(city.player(1))));
    }
    let weather = ZoneMessage::of(MessageType::Unknown("weather".into()), here, here, Payload::default());
    let weather = city.game.publish(elsewhere, weather).await.unwrap();
    let received = ZoneEvent::Message { zone: elsewhere, message: weather };
    assert_eq!(next(&mut other).await, received, "and of the other zones nothing");
    drop(both);
    let sent = ZoneMessage::of(MessageType::Broadcast, here, here, Payload::default());
    city.game.publish(here, sent).await.unwrap();
}

pub async fn messages_of_other_programs_arrive_as_they_are(store: Store) {
    let city = City::of(&store);
    let zone = city.zone(1);
    let mut subscription = city.game.subscribe(&[zone]).await.unwrap();
    let full = r#"{"message_type":"broadcast","source_zone":42,"target_zone":43,"timestamp":1704067260000,"payload":{"text":"hi","n":1.50},"shard":7}"#;
    external(&city, zone, full).await;
    let ZoneEvent::Message { message, .. } = next(&mut subscription).await else { panic!("a message") };
    assert_eq!(serde_json::to_string(&message).unwrap(), full);
    for text in ["", "not json", "[]", r#"{"message_type":"broadcast"}"#, r#"{"message_type":7}"#] {
        external(&city, zone, text).await;
        let unknown = ZoneEvent::Unknown { zone, payload: text.as_bytes().to_vec() };
        assert_eq!(next(&mut subscription).await, unknown);
    }
    let without = r#"{"message_type":"entity_entering","source_zone":1,"target_zone":2,"timestamp":3}"#;
    external(&city, zone, without).await;
    let ZoneEvent::Message { message, .. } = next(&mut subscription).await else { panic!("a message") };
    assert_eq!((message.entity(), message.payload), (None, Payload::default()));
}

pub async fn a_gap_in_the_messages_is_reported(store: Store) {
    let city = City::of(&store);
    let zone = city.zone(1);
    let mut subscription = city.game.subscribe(&[zone]).await.unwrap();
    let numbers: u64 = SUBSCRIBER_MESSAGES_MAX as u64 + 50;
    for first in (0..numbers).step_by(100) {
        let transaction = move |tx: &mut Tx<'_, Shard>| {
            for number in first..(first + 100).min(numbers) {
                let payload = Payload::of(&number).expect("a number is JSON");
                let message = ZoneMessage::of(MessageType::Broadcast, zone, zone, payload);
                tx.publish(&ZONE_CHANNEL.key(zone), &message)?;
            }
            Ok(())
        };
        city.scope.transact::<(), hot::Error, _>(transaction).await.unwrap();
    }
    // The last message is here when all are: the queue keeps the newest.
    let (mut received, mut missed) = (0, 0);
    loop {
        match next(&mut subscription).await {
            ZoneEvent::Message { message, .. } => {
                received += 1;
                if message.payload.read() == Some(numbers - 1) {
                    break;
                }
            }
            ZoneEvent::Missed { count } => missed += count.expect("the connection did not break"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(received + missed, numbers, "what is missed is counted");
}

pub async fn messages_that_are_too_long_are_refused(store: Store) {
    let city = City::of(&store);
    let zone = city.zone(1);
    let payload = Payload::of(&"x".repeat(PAYLOAD_BYTES_MAX)).unwrap();
    let message = ZoneMessage::of(MessageType::Broadcast, zone, zone, payload);
    let refused = city.game.publish(zone, message).await;
    assert!(matches!(refused, Err(Error::Invalid { what: "payload", .. })), "{refused:?}");
    let zones = vec![zone; SUBSCRIBED_ZONES_MAX + 1];
    for zones in [&zones[..], &[]] {
        let refused = city.game.subscribe(zones).await.map(|_| ());
        assert!(matches!(refused, Err(Error::Invalid { what: "number of zones", .. })), "{refused:?}");
    }
}
