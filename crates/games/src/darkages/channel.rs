//! Messages between zones, as the storage document has them.
//!
//! A message only wakes: it can be lost, so what it is about is in hot state first. One of another program that this
//! crate does not know arrives as [`ZoneEvent::Unknown`] or with [`MessageType::Unknown`], with all that it contains.

use super::limits::PAYLOAD_BYTES_MAX;
use super::model::{EntityId, Point, ZoneId};
use super::schema::{Shard, ZONE_CHANNEL};
use emberkeep_hot::pubsub::{Event, Subscription};
use emberkeep_schema::{Codec, Family, Json, KeyLayout, record};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::value::RawValue;

/// What a message is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// An entity comes into a zone, or has come.
    EntityEntering,
    /// An entity has left a zone.
    EntityLeaving,
    /// For all servers and clients of a zone.
    Broadcast,
    /// An entity that was handed off is in its new zone: sent there.
    HandoffComplete,
    /// A type that the document does not have, as it was received.
    Unknown(String),
}

impl MessageType {
    /// The types of the document.
    pub const ALL: [MessageType; 4] = [
        MessageType::EntityEntering,
        MessageType::EntityLeaving,
        MessageType::Broadcast,
        MessageType::HandoffComplete,
    ];

    /// The text of the document.
    pub fn text(&self) -> &str {
        match self {
            MessageType::EntityEntering => "entity_entering",
            MessageType::EntityLeaving => "entity_leaving",
            MessageType::Broadcast => "broadcast",
            MessageType::HandoffComplete => "handoff_complete",
            MessageType::Unknown(text) => text,
        }
    }
}

impl Serialize for MessageType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

impl<'de> Deserialize<'de> for MessageType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let known = MessageType::ALL.into_iter().find(|known| known.text() == text);
        Ok(known.unwrap_or(MessageType::Unknown(text)))
    }
}

/// The data of a message: JSON that is passed on byte for byte.
#[derive(Clone, Debug)]
pub struct Payload(Box<RawValue>);

impl Payload {
    /// The JSON of a value; `None` if it has none, such as a map whose keys are not text.
    pub fn of<T: Serialize>(value: &T) -> Option<Payload> {
        serde_json::value::to_raw_value(value).ok().map(Payload)
    }

    /// A JSON text; `None` if it is not JSON.
    pub fn from_json(text: impl Into<String>) -> Option<Payload> {
        RawValue::from_string(text.into()).ok().map(Payload)
    }

    /// The payload as JSON, exactly as it was sent.
    pub fn json(&self) -> &str {
        self.0.get()
    }

    /// The payload as a type; `None` if it is something else.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.json()).ok()
    }
}

impl Default for Payload {
    fn default() -> Payload {
        Payload::from_json("{}").expect("an empty object is JSON")
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Payload) -> bool {
        self.json() == other.json()
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Deserialize::deserialize(deserializer).map(Payload)
    }
}

#[cfg(feature = "openapi")]
mod openapi {
    use emberkeep_schema::openapi::{ComponentSchema, FieldSchema};
    use utoipa::openapi::schema::{ObjectBuilder, SchemaType};

    impl FieldSchema for super::MessageType {
        fn field_schema() -> ComponentSchema {
            String::field_schema()
        }
    }

    impl FieldSchema for super::Payload {
        fn field_schema() -> ComponentSchema {
            ObjectBuilder::new().schema_type(SchemaType::AnyValue).into()
        }
    }
}

record! {
    /// A message on the channel of a zone.
    #[derive(Clone, Debug, PartialEq)]
    #[openapi]
    pub struct ZoneMessage {
        /// What it is about.
        #[openapi(example = "broadcast")]
        pub message_type: MessageType => "message_type",
        /// The zone that it comes from; 0 = none.
        pub source_zone: i32 => "source_zone",
        /// The zone that it is for; 0 = none.
        pub target_zone: i32 => "target_zone",
        /// When it was sent, in milliseconds since 1970.
        pub timestamp: i64 => "timestamp",
        /// What depends on the type.
        pub payload: Payload => "payload" default,
    }
}

record! {
    /// The payload of the messages about an entity, as this crate sends them.
    #[derive(Clone, Debug, PartialEq)]
    #[openapi]
    pub struct EntityNotice {
        /// The entity that it is about.
        pub entity_id: i64 => "entity_id",
        /// Where it is, if it is known.
        pub position: Option<Point> => "position" optional,
        /// The number of the hand-off, if it is one.
        pub handoff: Option<u64> => "handoff" optional,
    }
}

impl ZoneMessage {
    /// A message; `publish` sets its time.
    pub fn of(
        message_type: MessageType,
        source_zone: ZoneId,
        target_zone: ZoneId,
        payload: Payload,
    ) -> ZoneMessage {
        ZoneMessage { payload, ..ZoneMessage::new(message_type, source_zone.0, target_zone.0, 0) }
    }

    /// A message about an entity that goes from one zone to another.
    pub fn about(message_type: MessageType, source: ZoneId, target: ZoneId, notice: &EntityNotice) -> Self {
        ZoneMessage::of(message_type, source, target, Payload::of(notice).unwrap_or_default())
    }

    /// The entity that it is about; `None` if the payload names none.
    pub fn entity(&self) -> Option<EntityId> {
        self.payload.read::<EntityNotice>().map(|notice| EntityId(notice.entity_id))
    }

    /// What keeps it from being sent.
    pub(super) fn problem(&self) -> Option<String> {
        let bytes = self.payload.json().len();
        (bytes > PAYLOAD_BYTES_MAX).then(|| format!("{bytes} bytes, expected at most {PAYLOAD_BYTES_MAX}"))
    }
}

/// What a subscriber receives.
#[derive(Clone, Debug, PartialEq)]
pub enum ZoneEvent {
    /// A message that this crate or a program like it sent.
    Message {
        /// The zone on whose channel it was sent.
        zone: ZoneId,
        /// What was sent, with its type, zones and time.
        message: ZoneMessage,
    },
    /// What another program sent that is not such a message.
    Unknown {
        /// The zone on whose channel it was sent.
        zone: ZoneId,
        /// The bytes that were published.
        payload: Vec<u8>,
    },
    /// Messages were lost: read the state.
    Missed {
        /// How many; `None` = not known, after a broken connection.
        count: Option<u64>,
    },
}

/// A subscription to the channels of zones. Dropping it unsubscribes.
pub struct ZoneSubscription {
    pub(super) messages: Subscription,
    pub(super) layout: KeyLayout,
}

impl ZoneSubscription {
    /// The next event; `None` after the store was closed.
    pub async fn next(&mut self) -> Option<ZoneEvent> {
        self.messages.next().await.map(|event| self.read(event))
    }

    /// The next event if one is there.
    pub fn try_next(&mut self) -> Option<ZoneEvent> {
        self.messages.try_next().map(|event| self.read(event))
    }

    fn read(&self, event: Event) -> ZoneEvent {
        let (channel, payload) = match event {
            Event::Missed { count } => return ZoneEvent::Missed { count },
            Event::Message { channel, payload } => (channel, payload),
        };
        let parsed: Option<(Option<Shard>, _)> = ZONE_CHANNEL::parse(&self.layout, &channel);
        let zone = parsed.map_or(ZoneId::NONE, |(_, key)| ZONE_CHANNEL.parts(&key).0);
        match Json::<ZoneMessage>::decode(&payload) {
            Ok(message) => ZoneEvent::Message { zone, message },
            Err(_) => ZoneEvent::Unknown { zone, payload: payload.to_vec() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(message: &ZoneMessage) -> String {
        let mut out = Vec::new();
        Json::<ZoneMessage>::encode(message, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn messages_are_written_as_in_the_document() {
        for (message_type, text) in MessageType::ALL.into_iter().zip([
            "entity_entering",
            "entity_leaving",
            "broadcast",
            "handoff_complete",
        ]) {
            let message = ZoneMessage {
                timestamp: 1_704_067_260_000,
                ..ZoneMessage::of(message_type, ZoneId(42), ZoneId(43), Payload::default())
            };
            let expected = format!(
                r#"{{"message_type":"{text}","source_zone":42,"target_zone":43,"timestamp":1704067260000,"payload":{{}}}}"#
            );
            assert_eq!(json(&message), expected);
            assert_eq!(Json::<ZoneMessage>::decode(expected.as_bytes()).unwrap(), message);
        }
    }

    #[test]
    fn what_other_programs_wrote_is_kept_byte_for_byte() {
        let text = r#"{"message_type":"weather","source_zone":1,"target_zone":2,"timestamp":3,"payload":{"rain": [1e0,{}],"n":0.10},"by":"gm"}"#;
        let message = Json::<ZoneMessage>::decode(text.as_bytes()).unwrap();
        assert_eq!(message.message_type, MessageType::Unknown("weather".into()));
        assert_eq!((message.payload.json(), message.entity()), (r#"{"rain": [1e0,{}],"n":0.10}"#, None));
        assert_eq!(message.extra.get("by"), Some(r#""gm""#));
        assert_eq!(json(&message), text);
    }

    #[test]
    fn a_message_about_an_entity_names_it() {
        let notice = EntityNotice { handoff: Some(3), ..EntityNotice::new(7) };
        let message = ZoneMessage::about(MessageType::HandoffComplete, ZoneId(1), ZoneId(2), &notice);
        assert_eq!(message.payload.json(), r#"{"entity_id":7,"handoff":3}"#);
        assert_eq!(message.entity(), Some(EntityId(7)));
        assert_eq!(message.payload.read::<EntityNotice>(), Some(notice));
    }
}
