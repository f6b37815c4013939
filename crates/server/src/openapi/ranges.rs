//! Writes the range of every integer format as `minimum` and `maximum`.

use serde_json::{Map, Value, json};

/// Narrower bounds that are already there stay.
pub(super) fn fill(document: &mut Value) {
    match document {
        Value::Object(fields) => {
            bound(fields);
            fields.values_mut().for_each(fill);
        }
        Value::Array(items) => items.iter_mut().for_each(fill),
        _ => {}
    }
}

fn bound(schema: &mut Map<String, Value>) {
    // utoipa writes `u-int32` where the registry of formats has `uint32`.
    let (format, min, max) = match schema.get("format").and_then(Value::as_str) {
        Some("u-int8" | "uint8") => ("uint8", json!(0), json!(u8::MAX)),
        Some("int8") => ("int8", json!(i8::MIN), json!(i8::MAX)),
        Some("u-int16" | "uint16") => ("uint16", json!(0), json!(u16::MAX)),
        Some("int16") => ("int16", json!(i16::MIN), json!(i16::MAX)),
        Some("u-int32" | "uint32") => ("uint32", json!(0), json!(u32::MAX)),
        Some("int32") => ("int32", json!(i32::MIN), json!(i32::MAX)),
        Some("u-int64" | "uint64") => ("uint64", json!(0), json!(u64::MAX)),
        Some("int64") => ("int64", json!(i64::MIN), json!(i64::MAX)),
        _ => return,
    };
    schema.insert("format".into(), format.into());
    schema.entry("minimum").or_insert(min);
    schema.entry("maximum").or_insert(max);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_gives_its_bounds_and_narrower_ones_stay() {
        let mut document = json!({
            "a": [{"type": "integer", "format": "int16"}],
            "b": {"type": "integer", "format": "u-int32", "minimum": 1},
            "c": {"type": "string", "format": "uuid"},
        });
        fill(&mut document);
        assert_eq!(
            (&document["a"][0]["minimum"], &document["a"][0]["maximum"]),
            (&json!(-32768), &json!(32767))
        );
        assert_eq!((&document["b"]["minimum"], &document["b"]["maximum"]), (&json!(1), &json!(u32::MAX)));
        assert_eq!(document["b"]["format"], "uint32");
        assert_eq!(document["c"], json!({"type": "string", "format": "uuid"}));
    }
}
