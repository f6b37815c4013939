//! OpenAPI schemas of types inside the records of reactors.

use super::per_state::PerState;
use super::timestamp::Timestamp;
use emberkeep_schema::openapi::{ComponentSchema, Components, FieldSchema};
use std::collections::BTreeMap;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};

impl<T: FieldSchema> FieldSchema for PerState<T> {
    fn field_schema() -> ComponentSchema {
        <BTreeMap<String, T>>::field_schema()
    }

    fn components(components: &mut Components) {
        T::components(components);
    }
}

/// External services also write numbers and `null`.
impl FieldSchema for Timestamp {
    fn field_schema() -> ComponentSchema {
        let types = SchemaType::from_iter([Type::String, Type::Integer, Type::Null]);
        ObjectBuilder::new().schema_type(types).into()
    }
}
