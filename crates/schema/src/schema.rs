//! The registry of families: what a program knows about the keys of a server.

use crate::{
    declaration::Declaration,
    part::Shape,
    service::{Coverage, Grant, GrantedFamilies, Service},
};
use std::ops::Range;
use thiserror::Error;

/// All families of a program, in the order of their declaration, and its services.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    families: Vec<&'static Declaration>,
    /// Each with the families of the schema that declares it.
    services: Vec<(&'static Service, Range<usize>)>,
}

/// Why a service may use a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// It owns the family, and may write it at any time.
    Owner,
    /// It may write the family in these operations.
    Granted(Vec<(&'static str, Coverage)>),
    /// The family names it as a reader.
    Reader,
}

/// Families or services that cannot stand in one schema.
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
    /// Two services have one name.
    #[error("the service {name} is declared twice; give each service a name of its own")]
    DuplicateService {
        /// The name that both have.
        name: &'static str,
    },
    /// A family names a service that is not declared.
    #[error(
        "the family {family} names {service} as its {role}, which is not declared; declare it by `service!`"
    )]
    UnknownService {
        /// The family, by the name of its constant.
        family: &'static str,
        /// The name that no service has.
        service: &'static str,
        /// `owner` or `reader`.
        role: &'static str,
    },
    /// A grant names a family that is not in the schema.
    #[error(
        "the grant \"{grant}\" of {service} names {family}, which is not a family of the schema; list it there"
    )]
    UnknownFamily {
        /// The service that has the grant.
        service: &'static str,
        /// The operation of the grant.
        grant: &'static str,
        /// The family, by the name of its constant.
        family: &'static str,
    },
    /// A service has two grants of one name, or a grant lists a family twice.
    #[error("{service} declares {what} twice; leave one of them out")]
    DuplicateGrant {
        /// The service that declares them.
        service: &'static str,
        /// The grant, or the family with its grant.
        what: String,
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
        Ok(Schema { families: families.to_vec(), services: Vec::new() })
    }

    /// The same schema with all services of its families: every owner and reader is one of them, and every
    /// grant names families of the schema.
    pub fn with_services(mut self, services: &[&'static Service]) -> Result<Schema, SchemaError> {
        for family in &self.families {
            check_names(family, services)?;
        }
        for service in services {
            check_grants(service, &self.families)?;
        }
        let all = 0..self.families.len();
        self.services = services.iter().map(|service| (*service, all.clone())).collect();
        self.check_services()
    }

    /// One schema of several, such as of all games of a server.
    pub fn join(schemas: impl IntoIterator<Item = Schema>) -> Result<Schema, SchemaError> {
        let (mut families, mut services) = (Vec::new(), Vec::new());
        for schema in schemas {
            let before = families.len();
            let moved = |range: Range<usize>| range.start + before..range.end + before;
            services.extend(schema.services.into_iter().map(|(service, range)| (service, moved(range))));
            families.extend(schema.families);
        }
        Schema { services, ..Schema::of(&families)? }.check_services()
    }

    /// Refuses two services of one name.
    fn check_services(self) -> Result<Schema, SchemaError> {
        for (index, (service, _)) in self.services.iter().enumerate() {
            if self.services[..index].iter().any(|(other, _)| other.name == service.name) {
                return Err(SchemaError::DuplicateService { name: service.name });
            }
        }
        Ok(self)
    }

    /// The families, in the order of their declaration.
    pub fn families(&self) -> &[&'static Declaration] {
        &self.families
    }

    /// The family of this name.
    pub fn family(&self, name: &str) -> Option<&'static Declaration> {
        self.families.iter().find(|family| family.name == name).copied()
    }

    /// The services, in the order of their declaration. A schema need not have any.
    pub fn services(&self) -> impl Iterator<Item = &'static Service> + '_ {
        self.services.iter().map(|(service, _)| *service)
    }

    /// The service of this name.
    pub fn service(&self, name: &str) -> Option<&'static Service> {
        self.services().find(|service| service.name == name)
    }

    /// The families that a service may use, and why. A family that it may write in some operations is listed
    /// as granted, whether or not it is a reader too.
    pub fn access(&self, service: &Service) -> Vec<(&'static Declaration, Access)> {
        let declared = self.services.iter().find(|(one, _)| one.name == service.name);
        let families = declared.map_or(&[][..], |(_, range)| &self.families[range.clone()]);
        families.iter().filter_map(|family| Some((*family, access_to(family, service)?))).collect()
    }

    /// The services that may write the family `index` of [`families`](Schema::families) without owning it, each
    /// with its operations.
    pub(crate) fn other_writers(
        &self,
        index: usize,
    ) -> impl Iterator<Item = (&'static Service, Vec<(&'static str, Coverage)>)> + '_ {
        let family = self.families[index];
        let services = self.services.iter().filter(move |(_, range)| range.contains(&index));
        services.filter_map(move |(service, _)| match access_to(family, service)? {
            Access::Granted(operations) => Some((*service, operations)),
            Access::Owner | Access::Reader => None,
        })
    }
}

/// Why a service may use a family of its schema, if it may.
fn access_to(family: &Declaration, service: &Service) -> Option<Access> {
    if service.owns(family) {
        return Some(Access::Owner);
    }
    let granted = |grant: &&'static Grant| Some((grant.name, grant.coverage(family)?));
    let granted: Vec<_> = service.grants.iter().filter_map(granted).collect();
    if !granted.is_empty() {
        return Some(Access::Granted(granted));
    }
    let reads = family.readers.iter().any(|reader| *reader == "*" || *reader == service.name);
    reads.then_some(Access::Reader)
}

/// Refuses a family whose owner or reader is not one of the services.
fn check_names(family: &'static Declaration, services: &[&'static Service]) -> Result<(), SchemaError> {
    let readers = family.readers.iter().filter(|reader| **reader != "*").map(|reader| (*reader, "reader"));
    for (name, role) in std::iter::once((family.owner, "owner")).chain(readers) {
        if !services.iter().any(|service| service.name == name) {
            return Err(SchemaError::UnknownService { family: family.name, service: name, role });
        }
    }
    Ok(())
}

/// Refuses grants of unknown families, and what is granted twice.
fn check_grants(service: &'static Service, families: &[&'static Declaration]) -> Result<(), SchemaError> {
    let twice = |what| Err(SchemaError::DuplicateGrant { service: service.name, what });
    for (index, grant) in service.grants.iter().enumerate() {
        if service.grants[..index].iter().any(|other| other.name == grant.name) {
            return twice(format!("the grant \"{}\"", grant.name));
        }
        let GrantedFamilies::Listed(listed) = grant.families else { continue };
        for (index, one) in listed.iter().enumerate() {
            let family = one.family.name;
            if !families.iter().any(|known| one.is_of(known)) {
                return Err(SchemaError::UnknownFamily { service: service.name, grant: grant.name, family });
            }
            if listed[..index].iter().any(|other| other.is_of(one.family)) {
                return twice(format!("{family} in the grant \"{}\"", grant.name));
            }
        }
    }
    Ok(())
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
    use crate::{Hash, Name, Raw, Text, Utf8, family, partition, service};
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

    macro_rules! owned {
        ($($name:ident = $pattern:literal of $owner:literal for $readers:tt;)*) => { $(
            family! {
                pub(crate) $name = $pattern {
                    kind: Hash<Utf8, Raw>, partition: Galaxy, parts: (), ttl: persistent, owner: $owner, readers: $readers
                }
            }
        )* };
    }

    owned! {
        SHIPS = "ships" of "physics" for ["*"];
        FLEETS = "fleets" of "players" for ["physics"];
        BODIES = "bodies" of "physics" for [];
        STRAY = "stray" of "physics" for ["viewer"];
    }
    service! {
        pub(crate) PHYSICS = "physics" {
            SPAWN = "spawn": [FLEETS],
            REMOVE = "remove ship": [FLEETS["a"]],
        }
    }
    service! {
        pub(crate) PLAYERS = "players" { RENAME = "rename": [SHIPS["name"]], RESET = "reset": all }
    }
    service! { pub(crate) SAME_NAME = "players" {} }
    service! { pub(crate) OTHER_PHYSICS = "physics" {} }
    service! { pub(crate) TWO_GRANTS = "players" { ONE = "one": [SHIPS], OTHER = "one": all } }
    service! { pub(crate) TWO_FAMILIES = "players" { BOTH = "both": [SHIPS, FLEETS, SHIPS["name"]] } }

    #[test]
    fn access_is_by_ownership_then_grant_then_reading() {
        let galaxy = schema![SHIPS, FLEETS, BODIES].unwrap().with_services(&[&PHYSICS, &PLAYERS]).unwrap();
        // A schema before it moves the families; what its services may use stays the same.
        let joined = Schema::join([schema![RULES].unwrap(), galaxy]).unwrap();
        let names = |service| {
            let access = joined.access(service).into_iter();
            access.map(|(family, access)| (family.name, access)).collect::<Vec<_>>()
        };
        let fields = Coverage::Fields(&["a"]);
        let of_physics = Access::Granted(vec![("spawn", Coverage::Keys), ("remove ship", fields)]);
        let own = Access::Owner;
        assert_eq!(
            names(&PHYSICS),
            [("SHIPS", own.clone()), ("FLEETS", of_physics), ("BODIES", own.clone())]
        );
        let reset = ("reset", Coverage::Keys);
        let ships = Access::Granted(vec![("rename", Coverage::Fields(&["name"])), reset]);
        let bodies = Access::Granted(vec![reset]);
        assert_eq!(names(&PLAYERS), [("SHIPS", ships), ("FLEETS", own), ("BODIES", bodies)]);
        assert_eq!(names(&SAME_NAME), [("SHIPS", Access::Reader), ("FLEETS", Access::Owner)]);
        assert!(joined.service("physics").is_some() && joined.service("viewer").is_none());
        let writers: Vec<_> = joined.other_writers(3).map(|(service, _)| service.name).collect();
        assert_eq!(writers, ["players"], "of BODIES, the fourth family");
        assert_eq!(joined.other_writers(0).count(), 0);
    }

    #[test]
    fn services_that_do_not_fit_are_refused() {
        let refused = |schema: Result<Schema, SchemaError>, services: &[&'static Service]| {
            schema.and_then(|schema| schema.with_services(services)).unwrap_err().to_string()
        };
        let ships = || schema![SHIPS, FLEETS];
        assert_eq!(
            refused(ships(), &[&PHYSICS]),
            "the family FLEETS names players as its owner, which is not declared; declare it by `service!`"
        );
        assert!(refused(schema![STRAY], &[&PHYSICS]).contains("STRAY names viewer as its reader"));
        assert_eq!(
            refused(schema![SHIPS], &[&PHYSICS]),
            "the grant \"spawn\" of physics names FLEETS, which is not a family of the schema; list it there"
        );
        assert_eq!(
            refused(ships(), &[&PHYSICS, &PLAYERS, &SAME_NAME]),
            "the service players is declared twice; give each service a name of its own"
        );
        assert!(refused(ships(), &[&PHYSICS, &TWO_GRANTS]).contains("declares the grant \"one\" twice"));
        let both = refused(ships(), &[&PHYSICS, &TWO_FAMILIES]);
        assert!(both.contains("declares SHIPS in the grant \"both\" twice"), "{both}");
        let other = schema![BODIES].unwrap().with_services(&[&OTHER_PHYSICS]).unwrap();
        let galaxy = ships().unwrap().with_services(&[&PHYSICS, &PLAYERS]).unwrap();
        let same_name = Schema::join([galaxy, other]).unwrap_err();
        assert_eq!(same_name, SchemaError::DuplicateService { name: "physics" });
    }
}
