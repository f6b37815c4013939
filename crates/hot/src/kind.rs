//! The data types of Redis.

use std::fmt;

/// The five types of Redis that engines support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `string`: bytes or a number
    Text,
    /// `hash`: fields with values
    Hash,
    /// `set`: distinct members without an order
    Set,
    /// `zset`: distinct members, sorted by score
    SortedSet,
    /// `list`: elements in order
    List,
}

impl Kind {
    /// Redis' word for the type, as `TYPE` answers it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "string",
            Kind::Hash => "hash",
            Kind::Set => "set",
            Kind::SortedSet => "zset",
            Kind::List => "list",
        }
    }

    /// The type of that name; `None` for a stream or a module's type.
    pub fn from_name(name: &str) -> Option<Kind> {
        [Kind::Text, Kind::Hash, Kind::Set, Kind::SortedSet, Kind::List]
            .into_iter()
            .find(|k| k.name() == name)
    }
}

/// What was found at a key of the wrong type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KindFound {
    /// One of the five.
    Kind(Kind),
    /// A string that is not an integer, where one was expected.
    NotAnInteger,
    /// A stream or a module's type.
    External,
}

impl fmt::Display for KindFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KindFound::Kind(kind) => kind.name(),
            KindFound::NotAnInteger => "string that is not a 64-bit integer",
            KindFound::External => "type that Emberkeep does not support",
        })
    }
}
