//! `service!`: the services of a game, and what each may write besides the families that it owns.

use crate::{
    declaration::Declaration, family::Family, kind::Kind, kind::KindName, limits::SERVICE_NAME_BYTES_MAX,
};
use std::fmt;

/// A program, or a part of one, that owns families: the text of their `owner:`. Made by
/// [`service!`](crate::service!).
///
/// It may write what it owns at any time, and what one of its grants names while it runs that operation.
#[derive(Debug)]
#[non_exhaustive]
pub struct Service {
    /// Its name, as in the `owner:` and `readers:` of families.
    pub name: &'static str,
    /// The first paragraph of its comment, for documents.
    pub doc: &'static str,
    /// What it may write besides, by operation.
    pub grants: &'static [&'static Grant],
}

/// The right of a service to write families of other services in one compound operation. Made by
/// [`service!`](crate::service!).
#[derive(Debug)]
#[non_exhaustive]
pub struct Grant {
    /// The operation, as errors and ACLs print it. No two grants of a service share one.
    pub name: &'static str,
    /// The name of the service that has the grant.
    pub service: &'static str,
    /// The first paragraph of its comment, for documents.
    pub doc: &'static str,
    /// What it may write while it runs, besides what its service owns.
    pub families: GrantedFamilies,
}

/// How far a grant reaches.
#[derive(Debug, Clone, Copy)]
pub enum GrantedFamilies {
    /// Every family of the schema.
    All,
    /// These alone.
    Listed(&'static [GrantedFamily]),
}

/// A family of a grant, as a whole or some fields of its hashes.
#[derive(Debug)]
#[non_exhaustive]
pub struct GrantedFamily {
    /// A family of another service, in the same schema.
    pub family: &'static Declaration,
    /// The fields that may be set and removed; none are listed = the whole key, its removal and its deadline
    /// included.
    pub fields: &'static [&'static str],
}

/// How much of a family a grant covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Whole keys: also their removal and their deadline.
    Keys,
    /// These fields of its hashes.
    Fields(&'static [&'static str]),
}

impl Service {
    /// Whether the service is the owner of a family.
    #[inline]
    pub fn owns(&self, family: &Declaration) -> bool {
        self.name == family.owner
    }

    /// Whether a text can name a service: 1 to [`SERVICE_NAME_BYTES_MAX`] ASCII letters, digits, hyphens and
    /// underscores.
    pub const fn is_valid_name(text: &str) -> bool {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if !(bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'-' | b'_')) {
                return false;
            }
            at += 1;
        }
        !bytes.is_empty() && bytes.len() <= SERVICE_NAME_BYTES_MAX
    }

    /// For [`service!`](crate::service!) only.
    #[doc(hidden)]
    pub const fn new(name: &'static str, doc: &'static str, grants: &'static [&'static Grant]) -> Service {
        assert!(
            Service::is_valid_name(name),
            "the name of a service has 1 to 64 letters, digits, hyphens and underscores: it is also the name of a Redis user"
        );
        Service { name, doc, grants }
    }
}

impl Grant {
    /// How much of a family the grant covers; `None` = nothing.
    pub fn coverage(&self, family: &Declaration) -> Option<Coverage> {
        let GrantedFamilies::Listed(listed) = self.families else { return Some(Coverage::Keys) };
        // Two families of one name can stand in two schemas; the declarations differ.
        let found = listed.iter().find(|one| one.is_of(family))?;
        Some(match found.fields {
            [] => Coverage::Keys,
            fields => Coverage::Fields(fields),
        })
    }

    /// For [`service!`](crate::service!) only.
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        service: &'static str,
        doc: &'static str,
        families: GrantedFamilies,
    ) -> Grant {
        Grant { name, service, doc, families }
    }
}

impl GrantedFamily {
    /// Whether this is the family. A constant may have several addresses, so equal addresses are only the short way.
    pub(crate) fn is_of(&self, family: &Declaration) -> bool {
        std::ptr::eq(self.family, family)
            || (self.family.name == family.name && self.family.pattern == family.pattern)
    }

    /// For [`service!`](crate::service!) only.
    #[doc(hidden)]
    pub const fn new<F: Family>(fields: &'static [&'static str]) -> GrantedFamily {
        assert!(
            fields.is_empty() || matches!(<F::Kind as Kind>::NAME, KindName::Hash),
            "only hashes have fields: a grant names a family of another kind as a whole"
        );
        GrantedFamily { family: F::DECLARATION, fields }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Declares a service of a game and its grants: static values of the types [`Service`](crate::Service) and
/// [`Grant`](crate::Grant).
///
/// ```
/// use emberkeep_schema::{Hash, Number, Set, Id, Text, Utf8, family, partition, schema, service};
///
/// partition! {
///     /// The one galaxy.
///     pub struct Galaxy = "galaxy";
/// }
/// family! {
///     /// A ship.
///     pub SHIP = "ship:{id}" {
///         kind: Hash<Utf8, Utf8>, partition: Galaxy, parts: (id: u32), ttl: persistent, owner: "physics"
///     }
/// }
/// family! {
///     /// The ships of a player.
///     pub FLEET = "player:{player}:ships" {
///         kind: Set<Id<u32>>, partition: Galaxy, parts: (player: u32), ttl: persistent, owner: "players"
///     }
/// }
/// service! {
///     /// Moves the ships.
///     pub PHYSICS = "physics" {
///         /// Adds a ship, also to the fleet of its player.
///         SPAWN = "spawn": [FLEET],
///     }
/// }
/// service! {
///     /// Keeps the fleets.
///     pub PLAYERS = "players" {
///         /// Gives a ship another name: only this field.
///         RENAME = "rename": [SHIP["name"]],
///         /// Begins anew.
///         RESET = "reset": all,
///     }
/// }
/// let schema = schema![SHIP, FLEET].and_then(|schema| schema.with_services(&[&PHYSICS, &PLAYERS]));
/// assert_eq!(schema?.services().count(), 2);
/// # Ok::<_, emberkeep_schema::SchemaError>(())
/// ```
///
/// A grant lists families, with the fields of a hash in brackets, or says `all`. A service without grants has empty
/// braces.
#[macro_export]
macro_rules! service {
    ($(#[doc = $doc:expr])* $vis:vis $name:ident = $text:literal {
        $($(#[doc = $grant_doc:expr])* $grant:ident = $operation:literal: $families:tt),* $(,)?
    }) => {
        $(
            $(#[doc = $grant_doc])*
            $vis static $grant: $crate::Grant = $crate::Grant::new(
                $operation,
                $text,
                concat!($($grant_doc, "\n"),*).trim_ascii(),
                $crate::service!(@families $families),
            );
        )*
        $(#[doc = $doc])*
        $vis static $name: $crate::Service =
            $crate::Service::new($text, concat!($($doc, "\n"),*).trim_ascii(), &[$(&$grant),*]);
    };
    (@families all) => { $crate::GrantedFamilies::All };
    (@families [$($family:ty $([$($field:literal),+ $(,)?])?),+ $(,)?]) => {
        $crate::GrantedFamilies::Listed(&[
            $($crate::GrantedFamily::new::<$family>(&[$($($field),+)?])),+
        ])
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hash, Id, Set, Utf8, family, partition};

    partition! {
        /// The one galaxy.
        pub(crate) struct Galaxy = "galaxy";
    }
    family! {
        /// A ship.
        pub(crate) SHIP = "ship:{id}" {
            kind: Hash<Utf8, Utf8>, partition: Galaxy, parts: (id: u32), ttl: persistent, owner: "physics"
        }
    }
    family! {
        /// The ships of a player.
        pub(crate) FLEET = "player:{player}:ships" {
            kind: Set<Id<u32>>, partition: Galaxy, parts: (player: u32), ttl: persistent, owner: "players"
        }
    }
    service! {
        /// Moves the ships.
        ///
        /// In steps.
        pub(crate) PHYSICS = "physics" {
            /// Adds a ship.
            SPAWN = "spawn ship": [FLEET],
        }
    }
    service! {
        /// Keeps the fleets.
        pub(crate) PLAYERS = "players" {
            /// Gives a ship another name.
            RENAME = "rename": [FLEET, SHIP["name", "label"]],
            /// Begins anew.
            RESET = "reset": all
        }
    }
    service! {
        /// Looks on.
        pub(crate) VIEWER = "viewer-2" {}
    }

    #[test]
    fn what_was_declared_is_data() {
        assert_eq!((PHYSICS.name, PHYSICS.doc), ("physics", "Moves the ships.\n\n In steps."));
        assert!(PHYSICS.owns(SHIP::DECLARATION) && !PHYSICS.owns(FLEET::DECLARATION));
        let [spawn] = PHYSICS.grants else { panic!("one grant was declared") };
        assert_eq!((spawn.name, spawn.service, spawn.doc), ("spawn ship", "physics", "Adds a ship."));
        assert_eq!((PLAYERS.grants.len(), VIEWER.grants.len()), (2, 0));
    }

    #[test]
    fn a_grant_covers_what_it_lists() {
        let (ship, fleet) = (SHIP::DECLARATION, FLEET::DECLARATION);
        assert_eq!((SPAWN.coverage(fleet), SPAWN.coverage(ship)), (Some(Coverage::Keys), None));
        assert_eq!(RENAME.coverage(ship), Some(Coverage::Fields(&["name", "label"])));
        assert_eq!(
            (RESET.coverage(fleet), RESET.coverage(ship)),
            (Some(Coverage::Keys), Some(Coverage::Keys))
        );
    }

    #[test]
    fn a_name_is_that_of_a_redis_user() {
        assert!(Service::is_valid_name("tick-engine") && Service::is_valid_name("A_1"));
        for text in ["", "a b", "a:b", "é", &"x".repeat(SERVICE_NAME_BYTES_MAX + 1)] {
            assert!(!Service::is_valid_name(text), "{text:?}");
        }
    }
}
