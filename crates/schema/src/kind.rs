//! Kinds: the Redis type of a family's keys, and the type of their elements.
//!
//! Marker types, never built: the typed operations of a transaction are chosen by them, so that a
//! set operation on a hash family does not compile.

use crate::codec::Codec;
use std::{fmt, marker::PhantomData};

/// The type of a key on the server, or a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KindName {
    /// A string.
    Text,
    /// A hash.
    Hash,
    /// A set.
    Set,
    /// A sorted set.
    SortedSet,
    /// A list.
    List,
    /// A publish/subscribe channel: named like a key, stores nothing.
    Channel,
}

impl KindName {
    /// What the `TYPE` command answers for such a key; `channel` for a channel.
    pub const fn redis_type(self) -> &'static str {
        match self {
            KindName::Text => "string",
            KindName::Hash => "hash",
            KindName::Set => "set",
            KindName::SortedSet => "zset",
            KindName::List => "list",
            KindName::Channel => "channel",
        }
    }
}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.redis_type())
    }
}

/// The type of a family's keys.
pub trait Kind: 'static {
    /// Which type.
    const NAME: KindName;

    /// The wire form of what it holds, as the codecs name it: for a hash, of the values.
    fn value_type() -> &'static str;
}

macro_rules! kinds {
    ($($(#[$attribute:meta])* $kind:ident<$value:ident>;)*) => { $(
        $(#[$attribute])*
        pub struct $kind<$value>(PhantomData<fn() -> $value>);

        impl<$value: Codec> Kind for $kind<$value> {
            const NAME: KindName = KindName::$kind;

            fn value_type() -> &'static str {
                $value::TYPE
            }
        }
    )* };
}

kinds! {
    /// A string that holds one `V`.
    Text<V>;
    /// A set of `M`.
    Set<M>;
    /// A sorted set of `M`, scored with f64.
    SortedSet<M>;
    /// A list of `M`.
    List<M>;
    /// A channel on which `V` is published.
    Channel<V>;
}

/// A hash from field `N` to value `V`.
pub struct Hash<N, V>(PhantomData<fn() -> (N, V)>);

impl<N: Codec, V: Codec> Kind for Hash<N, V> {
    const NAME: KindName = KindName::Hash;

    fn value_type() -> &'static str {
        V::TYPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Number, Raw, Utf8};

    #[test]
    fn kinds_know_their_redis_type_and_value() {
        assert_eq!(SortedSet::<Raw>::NAME.redis_type(), "zset");
        assert_eq!(Text::<Number<i64>>::value_type(), "integer");
        assert_eq!(Hash::<Utf8, Raw>::value_type(), "bytes");
        assert_eq!(Channel::<Raw>::NAME.to_string(), "channel");
    }
}
