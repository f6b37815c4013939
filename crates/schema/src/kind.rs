//! Kinds: the Redis type of a family's keys, and the type of their elements.
//!
//! Marker types, never built: the typed operations of a transaction are chosen by them, so that a
//! set operation on a hash family does not compile.

use crate::codec::Codec;
use std::{fmt, marker::PhantomData};

/// The type of a key on the server, or a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KindName {
    /// Redis' string: one value, or a number.
    Text,
    /// Redis' hash: fields with a value each.
    Hash,
    /// Redis' set: distinct members without an order.
    Set,
    /// Redis' sorted set: distinct members, each with a score.
    SortedSet,
    /// Redis' list: elements in order, added and removed at both ends.
    List,
    /// An event log: on the server a list of numbered entries.
    Log,
    /// A publish/subscribe channel: named like a key, stores nothing.
    Channel,
}

impl KindName {
    /// What the `TYPE` command answers for such a key, `list` for a log too; `channel` for a channel.
    pub const fn redis_type(self) -> &'static str {
        match self {
            KindName::Text => "string",
            KindName::Hash => "hash",
            KindName::Set => "set",
            KindName::SortedSet => "zset",
            KindName::List | KindName::Log => "list",
            KindName::Channel => "channel",
        }
    }
}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == KindName::Log { "log" } else { self.redis_type() })
    }
}

/// The type of a family's keys.
pub trait Kind: 'static {
    /// The kind as a value, for the declaration.
    const NAME: KindName;
    /// How many entries a log keeps; `None` for every other kind.
    const KEEP: Option<Keep> = None;

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

/// An event log of `V`, with the bound `B`: [`Newest`] or [`RefuseAbove`].
///
/// Its entries are numbered and appended in the same commit as the state that they describe.
pub struct Log<V, B = Unbounded>(PhantomData<fn() -> (V, B)>);

impl<V: Codec, B: LogBound> Kind for Log<V, B> {
    const NAME: KindName = KindName::Log;
    const KEEP: Option<Keep> = Some(B::KEEP);

    fn value_type() -> &'static str {
        V::TYPE
    }
}

/// How many entries a log keeps, and what happens when it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// The newest so many. Older ones are dropped; a reader learns how many it missed.
    Newest(usize),
    /// All, but never more than so many: the transaction that would append one more is refused.
    RefuseAbove(usize),
}

impl Keep {
    /// Most entries of the log.
    pub const fn entries_max(self) -> usize {
        match self {
            Keep::Newest(max) | Keep::RefuseAbove(max) => max,
        }
    }

    /// The bound in words, for the documents.
    pub(crate) fn in_words(self) -> String {
        match self {
            Keep::Newest(max) => format!("newest {max}"),
            Keep::RefuseAbove(max) => format!("at most {max}, then refuses"),
        }
    }
}

/// The bound of a log, as a type: [`Newest`] or [`RefuseAbove`].
#[diagnostic::on_unimplemented(
    message = "a log must say how many entries it keeps",
    label = "a log without a bound",
    note = "write `Log<…, Newest<1_000>>` to drop the oldest entries, or `Log<…, RefuseAbove<10_000>>` to refuse new ones"
)]
pub trait LogBound: 'static {
    /// The bound as data.
    const KEEP: Keep;
}

/// Keeps the newest `MAX` entries, see [`Keep::Newest`]. For events that readers may miss.
pub struct Newest<const MAX: usize>;

/// Keeps up to `MAX` entries and refuses more, see [`Keep::RefuseAbove`]. For an outbox.
pub struct RefuseAbove<const MAX: usize>;

/// The bound of a log that declares none: no [`LogBound`], so the family does not compile.
#[doc(hidden)]
pub struct Unbounded;

impl<const MAX: usize> LogBound for Newest<MAX> {
    const KEEP: Keep = Keep::Newest(checked(MAX));
}

impl<const MAX: usize> LogBound for RefuseAbove<MAX> {
    const KEEP: Keep = Keep::RefuseAbove(checked(MAX));
}

const fn checked(max: usize) -> usize {
    assert!(max > 0, "a log keeps at least 1 entry: its last one carries the sequence");
    max
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
        type Events = Log<Raw, RefuseAbove<10>>;
        assert_eq!((Events::NAME.redis_type(), Events::NAME.to_string()), ("list", "log".to_owned()));
        assert_eq!((Events::KEEP, Set::<Raw>::KEEP), (Some(Keep::RefuseAbove(10)), None));
    }
}
