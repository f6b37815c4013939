//! How a hit type stands in JSON: its text, as in the table.

use crate::darkages::history::HitType;
use emberkeep_schema::{Column as _, Value};
use serde::{Deserialize, Deserializer, Serializer, de};

pub(super) fn serialize<S: Serializer>(hit_type: &HitType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(hit_type.text())
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HitType, D::Error> {
    let text = String::deserialize(deserializer)?;
    HitType::from_value(Some(Value::Text(text))).map_err(de::Error::custom)
}
