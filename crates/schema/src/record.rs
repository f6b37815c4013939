//! `record!`: JSON objects that others write too.
//!
//! Rules, each with a test:
//! 1. Known fields are written in the declared order, unknown ones after them, byte for byte.
//! 2. A missing known field takes its declared default, or is an error.
//! 3. Of a known field that stands twice the last one counts, as in cjson and Go.
//! 4. Reading makes no intermediate tree and allocates nothing for a known field but its value.
//!    (serde's `flatten` buffers the whole object.)
//!
//! JSON has no NaN and no infinity: serde_json writes them as `null`, which an `f64` field does not
//! read. Rules of a game must not make them.

/// Declares a struct that is stored as a JSON object and keeps the fields it does not know.
///
/// Each field is `name: Type => "jsonName"`, and may say what holds when the field is absent:
/// `or EXPR` for a value, `default` for the type's default, `optional` for an `Option` that is
/// written only when it is there. Without, an absent field is an error.
///
/// A field `pub extra: Extra` is added: what other programs wrote. Use
/// [`Array`](crate::Array) for lists that a Lua script may touch. A record may hold records.
///
/// A function `new` is added. It takes the fields that must not be absent, in their order; the others get
/// the value that holds when they are absent.
///
/// After the braces may stand `then PATH`, a `fn(&mut Record)` that every reading ends with: it turns a
/// former form of the record, whose fields are in `extra`, into the present one.
///
/// Known fields may be anything that serde reads; [`Extra`](crate::Extra) works with serde_json only.
///
/// ```
/// use emberkeep_schema::{Array, Codec, Json, record};
///
/// record! {
///     /// A monster.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct Monster {
///         /// Health left.
///         pub hp: u32 => "hp",
///         /// Who controls it.
///         pub controller: u32 => "controlCharacterId" or 0,
///         /// Its name, if it has one.
///         pub name: Option<String> => "name" optional,
///         /// Who hit it.
///         pub damage: Array<u32> => "damageEntries" default,
///     }
/// }
/// let mut monster = Json::<Monster>::decode(br#"{"aggro":1e0,"hp":9,"damageEntries":{}}"#).unwrap();
/// monster.hp -= 2;
/// let mut out = Vec::new();
/// Json::<Monster>::encode(&monster, &mut out).unwrap();
/// assert_eq!(out, br#"{"hp":7,"controlCharacterId":0,"damageEntries":[],"aggro":1e0}"#);
///
/// let other = Monster { controller: 5, ..Monster::new(9) };
/// assert_eq!((other.hp, other.controller, other.name), (9, 5, None));
/// ```
///
/// # In OpenAPI documents
///
/// With the feature `openapi`, a record with `#[openapi]` after its derives implements `utoipa::ToSchema`;
/// without the feature the attribute does nothing. The documentation comments become the descriptions, and
/// a field may have an example: `#[openapi(example = 35)]` after its comment. Other attributes are not
/// possible on such a record. The types of its fields implement `openapi::FieldSchema`.
#[macro_export]
macro_rules! record {
    // Described in OpenAPI documents.
    ($(#[doc = $doc:literal])* $(#[derive($($derive:tt)*)])* #[openapi] $vis:vis struct $name:ident {
        $($(#[doc = $field_doc:literal])* $(#[openapi(example = $example:expr)])?
            $field_vis:vis $field:ident: $type:ty => $json:literal $($absent:ident $($default:expr)?)?),* $(,)?
    } $(then $then:path)?) => {
        $crate::record! {
            $(#[doc = $doc])* $(#[derive($($derive)*)])* $vis struct $name {
                $($(#[doc = $field_doc])* $field_vis $field: $type => $json $($absent $($default)?)?),*
            } $(then $then)?
        }
        $crate::record_openapi! {
            $name [$($doc)*] $({ [$($field_doc)*] [$($example)?] $type, $json, $($absent)? })*
        }
    };

    ($(#[$attribute:meta])* $vis:vis struct $name:ident {
        $($(#[$field_attribute:meta])* $field_vis:vis $field:ident: $type:ty => $json:literal
            $($absent:ident $($default:expr)?)?),* $(,)?
    } $(then $then:path)?) => {
        $(#[$attribute])*
        $vis struct $name {
            $($(#[$field_attribute])* $field_vis $field: $type,)*
            /// Fields that other programs wrote, kept as they are.
            pub extra: $crate::Extra,
        }

        $crate::record! { @new $vis $name [] [] $({ $field: $type, $json, $($absent $($default)?)? })* }

        impl $crate::macro_support::serde::Serialize for $name {
            fn serialize<S: $crate::macro_support::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                use $crate::macro_support::serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(::core::option::Option::None)?;
                $($crate::record!(@write map, $json, self.$field, $($absent)?);)*
                self.extra.write(&mut map)?;
                map.end()
            }
        }

        impl<'de> $crate::macro_support::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::macro_support::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                use $crate::macro_support::serde::de;

                // With underscores, because the types of the record's fields are in scope, too.
                #[allow(non_camel_case_types)]
                enum __Field { $($field,)* }

                const NAMES: &[&str] = &[$($json),*];

                enum __Name { Known(usize), Unknown(::std::string::String) }

                /// The field that probably comes next: we write them in order.
                struct __NameSeed(usize);

                impl __NameSeed {
                    fn named(name: &str) -> __Name {
                        match NAMES.iter().position(|known| *known == name) {
                            ::core::option::Option::Some(place) => __Name::Known(place),
                            ::core::option::Option::None => __Name::Unknown(::std::borrow::ToOwned::to_owned(name)),
                        }
                    }
                }

                impl<'de> de::Visitor<'de> for __NameSeed {
                    type Value = __Name;

                    fn expecting(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                        f.write_str("the name of a field")
                    }

                    /// Our own reader: it is the one that was expected.
                    #[inline]
                    fn visit_unit<E: de::Error>(self) -> ::core::result::Result<__Name, E> {
                        ::core::result::Result::Ok(__Name::Known(self.0))
                    }

                    fn visit_str<E: de::Error>(self, name: &str) -> ::core::result::Result<__Name, E> {
                        ::core::result::Result::Ok(Self::named(name))
                    }

                    /// `serde_json`: it passes the name as the variant of an enum.
                    fn visit_enum<A: de::EnumAccess<'de>>(
                        self,
                        name: A,
                    ) -> ::core::result::Result<__Name, A::Error> {
                        let (name, rest) = name.variant_seed(__AnyName)?;
                        de::VariantAccess::unit_variant(rest)?;
                        ::core::result::Result::Ok(name)
                    }
                }

                /// Reads the name from such a variant.
                struct __AnyName;

                impl<'de> de::DeserializeSeed<'de> for __AnyName {
                    type Value = __Name;

                    fn deserialize<D: de::Deserializer<'de>>(
                        self,
                        deserializer: D,
                    ) -> ::core::result::Result<__Name, D::Error> {
                        deserializer.deserialize_identifier(__NameSeed(0))
                    }
                }

                impl<'de> de::DeserializeSeed<'de> for __NameSeed {
                    type Value = __Name;

                    #[inline]
                    fn deserialize<D: de::Deserializer<'de>>(
                        self,
                        deserializer: D,
                    ) -> ::core::result::Result<__Name, D::Error> {
                        // A name is one of a list; our own reader tries the first of it before it looks
                        // closer.
                        deserializer.deserialize_enum($crate::macro_support::NAMES, &NAMES[self.0..], self)
                    }
                }

                struct __RecordVisitor;

                impl<'de> de::Visitor<'de> for __RecordVisitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                        f.write_str(concat!("an object (", stringify!($name), ")"))
                    }

                    fn visit_map<A: de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> ::core::result::Result<$name, A::Error> {
                        $(let mut $field: ::core::option::Option<$type> = ::core::option::Option::None;)*
                        let mut extra = $crate::Extra::default();
                        let mut next = 0;
                        while let ::core::option::Option::Some(name) = map.next_key_seed(__NameSeed(next))? {
                            match name {
                                $(__Name::Known(place) if place == __Field::$field as usize => {
                                    next = place + 1;
                                    $field = ::core::option::Option::Some(map.next_value()?);
                                })*
                                __Name::Known(_) => {}
                                __Name::Unknown(name) => extra.read(name, &mut map)?,
                            }
                        }
                        #[allow(unused_mut)]
                        let mut record = $name {
                            $($field: match $field {
                                ::core::option::Option::Some(value) => value,
                                ::core::option::Option::None => {
                                    $crate::record!(@absent $json, $($absent $($default)?)?)
                                }
                            },)*
                            extra,
                        };
                        $($then(&mut record);)?
                        ::core::result::Result::Ok(record)
                    }
                }

                deserializer.deserialize_map(__RecordVisitor)
            }
        }
    };

    // Moves each field into the parameters or into the values of the constructor.
    (@new $vis:vis $name:ident [$($param:tt)*] [$($value:tt)*]) => {
        impl $name {
            /// A record with these fields. The others are as if they were absent, and `extra` is empty.
            #[allow(dead_code, private_interfaces, clippy::too_many_arguments, clippy::new_without_default)]
            $vis fn new($($param)*) -> $name {
                $name { $($value)* extra: $crate::Extra::default() }
            }
        }
    };
    (@new $vis:vis $name:ident [$($param:tt)*] [$($value:tt)*]
        { $field:ident: $type:ty, $json:literal, } $($rest:tt)*) => {
        $crate::record! { @new $vis $name [$($param)* $field: $type,] [$($value)* $field,] $($rest)* }
    };
    (@new $vis:vis $name:ident [$($param:tt)*] [$($value:tt)*]
        { $field:ident: $type:ty, $json:literal, $($absent:tt)+ } $($rest:tt)*) => {
        $crate::record! {
            @new $vis $name [$($param)*] [$($value)* $field: $crate::record!(@absent $json, $($absent)+),]
            $($rest)*
        }
    };

    (@write $map:ident, $json:literal, $self:ident.$field:ident, optional) => {
        if let ::core::option::Option::Some(value) = &$self.$field {
            $map.serialize_entry(const { &$crate::macro_support::PlainName::new($json) }, value)?;
        }
    };
    (@write $map:ident, $json:literal, $self:ident.$field:ident, $($absent:ident)?) => {
        $map.serialize_entry(const { &$crate::macro_support::PlainName::new($json) }, &$self.$field)?;
    };

    (@absent $json:literal,) => {
        return ::core::result::Result::Err(<A::Error as de::Error>::missing_field($json))
    };
    (@absent $json:literal, or $default:expr) => { $default };
    (@absent $json:literal, default) => { ::core::default::Default::default() };
    (@absent $json:literal, optional) => { ::core::option::Option::None };
    (@absent $json:literal, $($other:tt)*) => {
        ::core::compile_error!(concat!("after ", stringify!($json),
            " may stand `or VALUE`, `default` or `optional`: what holds when the field is absent"))
    };

    // Not of the form above: find the first field that is wrong.
    (@explain $name:ident $(#[$attribute:meta])* $field_vis:vis $field:ident: $type:ty => $json:literal
        $($absent:ident $($default:expr)?)? $(, $($rest:tt)*)?) => {
        $crate::record! { @explain $name $($($rest)*)? }
    };
    (@explain $name:ident $(#[$attribute:meta])* $field_vis:vis $field:ident: $type:ty $(, $($rest:tt)*)?) => {
        ::core::compile_error!(concat!("record ", stringify!($name), ": the field `", stringify!($field),
            "` has no name in JSON; write `", stringify!($field), ": ", stringify!($type), " => \"",
            stringify!($field), "\"`"));
    };
    (@explain $name:ident $($other:tt)*) => {
        ::core::compile_error!(concat!("record ", stringify!($name),
            ": a field is `name: Type => \"jsonName\"`, with `or VALUE`, `default` or `optional` after it for one that may be absent"));
    };
    ($(#[$attribute:meta])* $vis:vis struct $name:ident { $($fields:tt)* } $(then $then:path)?) => {
        $crate::record! { @explain $name $($fields)* }
    };
}

#[cfg(test)]
mod tests {
    use crate::{Array, Codec, Json, Name, ValueError};
    use proptest::prelude::*;

    record! {
        /// Who hit a monster, and how hard.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct Damage {
            /// Who.
            pub who: u32 => "characterId",
            /// How hard.
            pub damage: i64 => "damage",
        }
    }
    record! {
        /// A monster.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct Monster {
            pub id: u64 => "uniqueId",
            pub hp: i64 => "hp" or 100,
            pub speed: f64 => "speed" default,
            pub map: Option<String> => "map" optional,
            pub damage: Array<Damage> => "damageEntries",
        }
    }

    record! {
        /// A chest, whose place was two fields once.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct Chest {
            pub at: Option<i32> => "at" optional,
        } then Chest::upgrade
    }

    impl Chest {
        fn upgrade(&mut self) {
            self.at = self.at.or_else(|| self.extra.take("x")?.parse().ok());
        }
    }

    record! {
        /// A record whose types have the names of types inside the macro.
        #[derive(Debug, PartialEq)]
        struct Names {
            field: Field => "field",
            name: Name => "name" or Name::new("none").unwrap(),
        }
    }

    type Field = u8;

    #[test]
    fn types_of_fields_may_have_any_name() {
        let names = Json::<Names>::decode(br#"{"field":7}"#).unwrap();
        assert_eq!(names, Names::new(7));
        assert_eq!(names.name, Name::new("none").unwrap());
    }

    #[test]
    fn a_constructor_takes_what_must_not_be_absent() {
        let monster = Monster::new(7, Array(vec![Damage::new(1, 2)]));
        assert_eq!(
            monster,
            read(r#"{"uniqueId":7,"damageEntries":[{"characterId":1,"damage":2}]}"#).unwrap()
        );
        assert_eq!(Chest::new().at, None);
    }

    #[test]
    fn a_former_form_is_read_and_written_as_the_present_one() {
        for former in [r#"{"x":5,"lid":[]}"#, r#"{ "lid":[], "x":5 }"#] {
            let mut out = Vec::new();
            Json::<Chest>::encode(&Json::<Chest>::decode(former.as_bytes()).unwrap(), &mut out).unwrap();
            assert_eq!(out, br#"{"at":5,"lid":[]}"#);
        }
    }

    fn read(json: &str) -> Result<Monster, ValueError> {
        Json::<Monster>::decode(json.as_bytes())
    }

    fn written(monster: &Monster) -> String {
        let mut out = Vec::new();
        Json::<Monster>::encode(monster, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn unknown_fields_are_written_back_byte_for_byte_after_the_known_ones() {
        let json = r#"{"a":1.00,"damageEntries":[{"z":1e+2,"damage":3,"characterId":4}],"uniqueId":1,"b":{"x": [ ]},"é":12345678901234567890123}"#;
        let monster = read(json).unwrap();
        assert_eq!(monster.extra.get("a"), Some("1.00"));
        assert_eq!(
            written(&monster),
            r#"{"uniqueId":1,"hp":100,"speed":0.0,"damageEntries":[{"characterId":4,"damage":3,"z":1e+2}],"a":1.00,"b":{"x": [ ]},"é":12345678901234567890123}"#
        );
    }

    #[test]
    fn an_absent_field_takes_its_default_or_is_an_error() {
        let monster = read(r#"{"uniqueId":1,"damageEntries":null}"#).unwrap();
        assert_eq!((monster.hp, monster.speed, &monster.map), (100, 0.0, &None));
        let error = read(r#"{"uniqueId":1}"#).unwrap_err().to_string();
        assert!(error.contains("missing field `damageEntries`, at line 1 column 14"), "{error}");
    }

    #[test]
    fn the_last_of_a_field_that_stands_twice_counts() {
        let monster = read(r#"{"uniqueId":1,"hp":5,"damageEntries":{},"hp":6}"#).unwrap();
        assert_eq!((monster.hp, monster.extra.len()), (6, 0));
    }

    #[test]
    fn a_list_that_lua_emptied_is_written_as_a_list() {
        let monster = read(r#"{"uniqueId":1,"damageEntries":{}}"#).unwrap();
        assert!(written(&monster).contains(r#""damageEntries":[]"#));
    }

    #[test]
    fn a_name_with_escapes_is_the_same_name() {
        let monster = read(r#"{"\u0075niqueId":7,"damageEntries":[],"\"":1}"#).unwrap();
        assert_eq!((monster.id, monster.extra.get("\"")), (7, Some("1")));
        assert_eq!(read(&written(&monster)).unwrap(), monster);
    }

    #[test]
    fn what_is_no_such_object_is_refused_with_its_place() {
        let error = |json: &str| read(json).unwrap_err().to_string();
        assert!(error("[]").contains("expected an object (Monster)"));
        assert!(error(r#"{"uniqueId":"secret"}"#).contains("invalid type: string, expected u64"));
        assert!(error(r#"{"uniqueId":1.5}"#).contains("floating point"));
        assert!(error(r#"{"uniqueId":1,"damageEntries":[{}]}"#).contains("missing field `characterId`"));
        assert!(error(r#"{"uniqueId":1,"#).contains("EOF"));
    }

    proptest! {
        #[test]
        fn numbers_keep_their_meaning_exactly(id: u64, hp: i64, speed: f64, map: Option<String>, damage: i64) {
            let damage = Damage::new(1, damage);
            let monster = Monster { hp, speed, map, ..Monster::new(id, Array(vec![damage])) };
            prop_assert_eq!(read(&written(&monster)).unwrap(), monster);
        }
    }
}
