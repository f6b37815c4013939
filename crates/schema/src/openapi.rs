//! How records appear in OpenAPI documents.
//!
//! A record with `#[openapi]` becomes a component of the document. Its fields refer to other components, if
//! their types are such records, and contain the schema of every other type.

use crate::{Array, Name};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

/// A schema or a reference to a component.
pub type ComponentSchema = RefOr<Schema>;

/// Components of a document with their names.
pub type Components = Vec<(String, ComponentSchema)>;

/// A reference to the component of a type.
pub fn reference<T: ToSchema>() -> ComponentSchema {
    Ref::from_schema_name(T::name()).into()
}

/// Adds the component of a type, and those that it refers to.
pub fn add_component<T: ToSchema>(components: &mut Components) {
    // Also the end of a record that contains itself.
    if components.iter().all(|(name, _)| *name != T::name()) {
        components.push((T::name().into_owned(), T::schema()));
        T::schemas(components);
    }
}

/// A type that may be the type of a field of a record with `#[openapi]`.
///
/// Implemented for numbers, text, ids of [`part!`](crate::part!), lists, maps, `Option` and such records.
pub trait FieldSchema {
    /// The schema of the values, or a reference to a component.
    fn field_schema() -> ComponentSchema;

    /// The schema of a field that is written only when it is there.
    fn present_schema() -> ComponentSchema {
        Self::field_schema()
    }

    /// Adds the components that the schema refers to.
    fn components(_: &mut Components) {}
}

macro_rules! primitives {
    ($($type:ty)*) => { $(
        impl FieldSchema for $type {
            fn field_schema() -> ComponentSchema {
                <$type as PartialSchema>::schema()
            }
        }
    )* };
}

primitives! { bool i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 String }

impl FieldSchema for Name {
    fn field_schema() -> ComponentSchema {
        <String as PartialSchema>::schema()
    }
}

impl FieldSchema for Uuid {
    fn field_schema() -> ComponentSchema {
        let format = SchemaFormat::KnownFormat(KnownFormat::Uuid);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

impl<T: FieldSchema> FieldSchema for Option<T> {
    fn field_schema() -> ComponentSchema {
        OneOfBuilder::new().item(ObjectBuilder::new().schema_type(Type::Null)).item(T::field_schema()).into()
    }

    fn present_schema() -> ComponentSchema {
        T::field_schema()
    }

    fn components(components: &mut Components) {
        T::components(components);
    }
}

impl<T: FieldSchema> FieldSchema for Vec<T> {
    fn field_schema() -> ComponentSchema {
        ArrayBuilder::new().items(T::field_schema()).into()
    }

    fn components(components: &mut Components) {
        T::components(components);
    }
}

impl<T: FieldSchema> FieldSchema for Array<T> {
    fn field_schema() -> ComponentSchema {
        <Vec<T>>::field_schema()
    }

    fn components(components: &mut Components) {
        T::components(components);
    }
}

impl<T: FieldSchema> FieldSchema for BTreeMap<String, T> {
    fn field_schema() -> ComponentSchema {
        ObjectBuilder::new()
            .property_names(Some(ObjectBuilder::new().schema_type(Type::String)))
            .additional_properties(Some(AdditionalProperties::RefOr(T::field_schema())))
            .into()
    }

    fn components(components: &mut Components) {
        T::components(components);
    }
}

impl<T: FieldSchema> FieldSchema for Box<T> {
    fn field_schema() -> ComponentSchema {
        T::field_schema()
    }

    fn components(components: &mut Components) {
        T::components(components);
    }
}

/// Builds the schema of a record.
#[doc(hidden)]
pub struct RecordSchema(ObjectBuilder);

impl RecordSchema {
    pub fn new(docs: &[&str]) -> RecordSchema {
        RecordSchema(ObjectBuilder::new().description(description(docs)))
    }

    /// Adds a field. `absent` is the word of `record!` that says what holds when the field is absent.
    pub fn field<T: FieldSchema>(
        self,
        name: &str,
        docs: &[&str],
        absent: &str,
        example: Option<Value>,
    ) -> RecordSchema {
        // The other words are for reading. Such a field is always written.
        match absent {
            "optional" => RecordSchema(self.0.property(name, described(T::present_schema(), docs, example))),
            _ => RecordSchema(
                self.0.property(name, described(T::field_schema(), docs, example)).required(name),
            ),
        }
    }

    pub fn build(self) -> ComponentSchema {
        self.0.into()
    }
}

fn described(mut field: ComponentSchema, docs: &[&str], example: Option<Value>) -> ComponentSchema {
    let docs = description(docs);
    match &mut field {
        RefOr::Ref(reference) => reference.description = docs.unwrap_or_default(),
        RefOr::T(Schema::Object(object)) => (object.description, object.example) = (docs, example),
        RefOr::T(Schema::Array(array)) => (array.description, array.example) = (docs, example),
        RefOr::T(Schema::OneOf(one_of)) => (one_of.description, one_of.example) = (docs, example),
        RefOr::T(_) => {}
    }
    field
}

/// The text of documentation comments, whose lines start with a space.
fn description(docs: &[&str]) -> Option<String> {
    let lines: Vec<&str> =
        docs.iter().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Implements `utoipa::ToSchema` for what [`record!`](crate::record!) declares with `#[openapi]`.
#[doc(hidden)]
#[macro_export]
macro_rules! record_openapi {
    ($name:ident [$($doc:literal)*]
        $({ [$($field_doc:literal)*] [$($example:expr)?] $type:ty, $json:literal, $($absent:ident)? })*) => {
        impl $crate::macro_support::utoipa::PartialSchema for $name {
            fn schema() -> $crate::openapi::ComponentSchema {
                #[allow(unused_imports)]
                use $crate::macro_support::serde_json::json;
                $crate::openapi::RecordSchema::new(&[$($doc),*])
                    $(.field::<$type>(
                        $json,
                        &[$($field_doc),*],
                        stringify!($($absent)?),
                        [$(json!($example))?].into_iter().next(),
                    ))*
                    .build()
            }
        }

        impl $crate::macro_support::utoipa::ToSchema for $name {
            fn name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(stringify!($name))
            }

            fn schemas(components: &mut $crate::openapi::Components) {
                $(<$type as $crate::openapi::FieldSchema>::components(components);)*
            }
        }

        impl $crate::openapi::FieldSchema for $name {
            fn field_schema() -> $crate::openapi::ComponentSchema {
                $crate::openapi::reference::<$name>()
            }

            fn components(components: &mut $crate::openapi::Components) {
                $crate::openapi::add_component::<$name>(components);
            }
        }
    };
}

/// Describes an id as its inner type, if that has a schema.
#[doc(hidden)]
#[macro_export]
macro_rules! part_openapi {
    ($name:ident, $inner:ty) => {
        // The bound of a lifetime keeps the compiler from refusing an inner type without a schema.
        impl $crate::openapi::FieldSchema for $name
        where
            for<'any> $inner: $crate::openapi::FieldSchema,
        {
            fn field_schema() -> $crate::openapi::ComponentSchema {
                <$inner as $crate::openapi::FieldSchema>::field_schema()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{part, record};
    use serde_json::json;

    part! {
        /// The id of a ship.
        pub(crate) struct ShipId(u32);
    }

    record! {
        /// A ship.
        #[derive(Clone, Debug)]
        #[openapi]
        pub(crate) struct Ship {
            /// The id.
            #[openapi(example = 7)]
            pub id: ShipId => "shipId",
            /// Where it is.
            pub at: Point => "at",
            /// Where it
            /// goes.
            #[openapi(example = json!([{"x": 1}]))]
            pub way: Array<Point> => "way" default,
            /// Who steers.
            pub captain: Option<Name> => "captain" optional,
            /// What follows it.
            pub tail: Option<Box<Ship>> => "tail" default,
        }
    }

    record! {
        /// A point.
        #[derive(Clone, Debug)]
        #[openapi]
        pub(crate) struct Point {
            pub x: i16 => "x" or 0,
        }
    }

    #[test]
    fn a_record_is_described_without_its_extra_field() {
        let point =
            |description: &str| json!({"$ref": "#/components/schemas/Point", "description": description});
        let expected = json!({
            "type": "object",
            "description": "A ship.",
            "required": ["shipId", "at", "way", "tail"],
            "properties": {
                "shipId": {"type": "integer", "format": "u-int32", "minimum": 0, "description": "The id.",
                    "example": 7},
                "at": point("Where it is."),
                "way": {"type": "array", "items": {"$ref": "#/components/schemas/Point"},
                    "description": "Where it\ngoes.", "example": [{"x": 1}]},
                "captain": {"type": "string", "description": "Who steers."},
                "tail": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Ship"}],
                    "description": "What follows it."},
            },
        });
        assert_eq!(serde_json::to_value(<Ship as PartialSchema>::schema()).unwrap(), expected);
        let mut components = Vec::new();
        add_component::<Ship>(&mut components);
        let names: Vec<&str> = components.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["Ship", "Point"]);
    }

    #[test]
    fn a_map_is_described_by_its_values() {
        let map = serde_json::to_value(<BTreeMap<String, bool>>::field_schema()).unwrap();
        let expected = json!({"type": "object", "propertyNames": {"type": "string"},
            "additionalProperties": {"type": "boolean"}});
        assert_eq!(map, expected);
    }
}
