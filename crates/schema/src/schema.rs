//! The registry of families: what a program knows about the keys of a server.

use crate::{declaration::Declaration, part::Shape};
use thiserror::Error;

/// All families of a program, in the order of their declaration.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    families: Vec<&'static Declaration>,
}

/// Families that cannot stand in one schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// One pattern, two families.
    #[error("the families {first} and {second} both declare \"{pattern}\"; a key must belong to one family")]
    Duplicate {
        /// The family that stands first.
        first: &'static str,
        /// The family that declares the same pattern.
        second: &'static str,
        /// The pattern of both.
        pattern: &'static str,
    },
    /// Two patterns that some key matches.
    #[error(
        "a key could belong to {first} (\"{first_pattern}\") and to {second} (\"{second_pattern}\"); \
         tell them apart by a text of their own, or by part types that share no value"
    )]
    Ambiguous {
        /// The family that stands first.
        first: &'static str,
        /// The pattern of `first`, as declared.
        first_pattern: &'static str,
        /// The family that some key of `first` could also belong to.
        second: &'static str,
        /// The pattern of `second`, as declared.
        second_pattern: &'static str,
    },
}

impl Schema {
    /// The schema of these families, if each key can belong to one of them only.
    pub fn of(families: &[&'static Declaration]) -> Result<Schema, SchemaError> {
        for (index, first) in families.iter().enumerate() {
            for second in &families[index + 1..] {
                check_pair(first, second)?;
            }
        }
        Ok(Schema { families: families.to_vec() })
    }

    /// One schema of several, such as of all games of a server.
    pub fn join(schemas: impl IntoIterator<Item = Schema>) -> Result<Schema, SchemaError> {
        let families: Vec<_> = schemas.into_iter().flat_map(|schema| schema.families).collect();
        Schema::of(&families)
    }

    /// The families, in the order of their declaration.
    pub fn families(&self) -> &[&'static Declaration] {
        &self.families
    }

    /// The family of this name.
    pub fn family(&self, name: &str) -> Option<&'static Declaration> {
        self.families.iter().find(|family| family.name == name).copied()
    }
}

/// Refuses two families that could share a key.
fn check_pair(first: &'static Declaration, second: &'static Declaration) -> Result<(), SchemaError> {
    if first.pattern == second.pattern {
        return Err(SchemaError::Duplicate {
            first: first.name,
            second: second.name,
            pattern: first.pattern,
        });
    }
    if overlap(first, second) {
        return Err(SchemaError::Ambiguous {
            first: first.name,
            first_pattern: first.pattern,
            second: second.name,
            second_pattern: second.pattern,
        });
    }
    Ok(())
}

/// Whether some key matches both patterns: as many places between colons, and a common text in each.
fn overlap(first: &Declaration, second: &Declaration) -> bool {
    let (first, second) = (places(first), places(second));
    first.len() == second.len() && first.iter().zip(&second).all(|(a, b)| a.meets(b))
}

/// What may stand between two colons.
enum Place {
    Literal(&'static str),
    Value { shape: Shape, accepts: fn(&str) -> bool },
}

impl Place {
    fn meets(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Literal(a), Place::Literal(b)) => a == b,
            (Place::Literal(text), Place::Value { accepts, .. })
            | (Place::Value { accepts, .. }, Place::Literal(text)) => accepts(text),
            (Place::Value { shape: a, .. }, Place::Value { shape: b, .. }) => a.overlaps(*b),
        }
    }
}

/// The places of a pattern.
fn places(family: &Declaration) -> Vec<Place> {
    let mut parts = family.parts.iter();
    family
        .pattern
        .split(':')
        .map(|text| match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            None => Place::Literal(text),
            Some(name) if Some(name) == family.partition_part => {
                Place::Value { shape: family.partition_shape, accepts: family.partition_accepts }
            }
            Some(_) => {
                let part = parts.next().expect("a family with more names than parts does not compile");
                Place::Value { shape: part.shape, accepts: part.accepts }
            }
        })
        .collect()
}

/// The [`Schema`] of these families: `schema![MONSTER, MONSTER_MAP]` is a
/// `Result<Schema, SchemaError>`.
#[macro_export]
macro_rules! schema {
    ($($family:ty),* $(,)?) => {
        $crate::Schema::of(&[$(<$family as $crate::Family>::DECLARATION),*])
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Name, Raw, Text, family, partition};
    use uuid::Uuid;

    partition! {
        /// The one galaxy.
        pub(crate) struct Galaxy = "galaxy";
    }

    macro_rules! families {
        ($($name:ident = $pattern:literal ($($part:ident: $type:ty),*);)*) => { $(
            family! {
                pub(crate) $name = $pattern {
                    kind: Text<Raw>, partition: Galaxy, parts: ($($part: $type),*), ttl: persistent, owner: "test"
                }
            }
        )* };
    }

    families! {
        RULES = "automation:{ship}:rules" (ship: Uuid);
        RULE_BY_ID = "automation:{ship}:{rule}" (ship: Uuid, rule: Uuid);
        RULE_BY_NAME = "automation:{ship}:{rule}" (ship: Uuid, rule: Name);
        RULE_BY_NUMBER = "automation:{ship}:{rule}" (ship: Uuid, rule: i32);
        RULE_RENAMED = "automation:{owner}:{rule}" (owner: Uuid, rule: Uuid);
        SHIP_NAMED = "automation:{name}:{rule}" (name: Name, rule: i64);
    }

    #[test]
    fn types_tell_patterns_apart() {
        let schema = schema![RULES, RULE_BY_ID].unwrap();
        assert_eq!(schema.families().len(), 2);
        assert_eq!(schema.family("RULES").unwrap().pattern, "automation:{ship}:rules");
        assert!(schema.family("NONE").is_none());
        schema![RULE_RENAMED, SHIP_NAMED].unwrap();
    }

    #[test]
    fn a_key_of_two_families_is_refused() {
        let error = schema![RULES, RULE_BY_NAME].unwrap_err().to_string();
        assert_eq!(
            error,
            "a key could belong to RULES (\"automation:{ship}:rules\") and to RULE_BY_NAME \
             (\"automation:{ship}:{rule}\"); tell them apart by a text of their own, or by part types \
             that share no value"
        );
        assert!(matches!(schema![RULE_BY_ID, RULE_RENAMED], Err(SchemaError::Ambiguous { .. })));
        assert!(matches!(schema![RULE_BY_NUMBER, SHIP_NAMED], Err(SchemaError::Ambiguous { .. })));
    }

    #[test]
    fn joining_checks_again() {
        let twice = [schema![RULES].unwrap(), schema![RULES].unwrap()];
        let error = Schema::join(twice).unwrap_err().to_string();
        assert_eq!(
            error,
            "the families RULES and RULES both declare \"automation:{ship}:rules\"; \
             a key must belong to one family"
        );
    }
}
