//! OpenAPI schemas of types whose JSON form a derive cannot see: ids, maps with ids for keys, and flattened events.

use super::event::Recorded;
use super::model::{ItemId, PlayerId, Points, RoomCode, RoundId, SenderId, VoteResults};
use super::view::Revealed;
use std::borrow::Cow;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

macro_rules! text_schemas {
    ($($name:ident, $example:literal;)*) => { $(
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().schema_type(Type::String).examples([$example]).into()
            }
        }

        impl ToSchema for $name {}
    )* };
}

text_schemas! {
    RoomCode, "AB23CD";
    PlayerId, "ann";
    SenderId, "kim";
    RoundId, "r1";
    ItemId, "i1";
}

impl PartialSchema for Points {
    fn schema() -> RefOr<Schema> {
        let player = ObjectBuilder::new().schema_type(Type::String);
        let points =
            ObjectBuilder::new().property_names(Some(player)).additional_properties(Some(i64::schema()));
        points.examples([serde_json::json!({"ann": 1})]).into()
    }
}

impl ToSchema for Points {}

/// Both have the same fields; only the stored form may hold fields of external clients.
impl PartialSchema for VoteResults {
    fn schema() -> RefOr<Schema> {
        Revealed::schema()
    }
}

impl ToSchema for VoteResults {
    fn name() -> Cow<'static, str> {
        Revealed::name()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Revealed::schemas(schemas);
    }
}

/// The fields that every event has. Each type of event adds its own.
impl PartialSchema for Recorded {
    fn schema() -> RefOr<Schema> {
        let kind = ObjectBuilder::new().schema_type(Type::String).examples(["player_taken"]);
        ObjectBuilder::new()
            .description(Some("An event with its sequence. Each type has further fields."))
            .property("sequence", u64::schema())
            .property("at", i64::schema())
            .property("type", kind.description(Some("The type of the event.")))
            .required("sequence")
            .required("at")
            .required("type")
            .into()
    }
}

impl ToSchema for Recorded {
    fn name() -> Cow<'static, str> {
        "Recorded".into()
    }
}
