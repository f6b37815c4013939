//! OpenAPI schemas of types inside the records of monsters.

use super::model::{DamageEntries, DamageEntry, SourceType, Statuses};
use emberkeep_schema::openapi::{ComponentSchema, Components, FieldSchema};
use std::collections::BTreeMap;

impl FieldSchema for DamageEntries {
    fn field_schema() -> ComponentSchema {
        <Vec<DamageEntry>>::field_schema()
    }

    fn components(components: &mut Components) {
        DamageEntry::components(components);
    }
}

impl FieldSchema for SourceType {
    fn field_schema() -> ComponentSchema {
        String::field_schema()
    }
}

impl FieldSchema for Statuses {
    fn field_schema() -> ComponentSchema {
        <BTreeMap<String, i32>>::field_schema()
    }
}
