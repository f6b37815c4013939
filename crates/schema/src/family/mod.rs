//! `family!`: declares a key family once; everything about its keys derives from that.

mod key;

pub use key::Key;

use crate::{declaration::Declaration, kind::Kind, layout::KeyLayout, partition::Partition, ttl::TtlPolicy};

/// A declared key family. Implemented by [`family!`](crate::family!) only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key family",
    note = "key families are declared with `family!`"
)]
pub trait Family: Copy + Send + Sync + 'static {
    /// What its keys are divided by.
    type Partition: Partition;
    /// What its keys hold.
    type Kind: Kind;
    /// What a write does to the deadline.
    type Ttl: TtlPolicy;

    /// Everything declared, as data.
    const DECLARATION: &'static Declaration;

    /// Reads a raw key, if it is of this family. The partition is `None` where the layout and the
    /// pattern do not carry it.
    fn parse(layout: &KeyLayout, raw: &[u8]) -> Option<(Option<Self::Partition>, Key<Self>)> {
        let (tag, name) = layout.strip(raw)?;
        let cut = Self::DECLARATION.cut(name)?;
        // A key whose tag and pattern disagree was not laid out by us: it is not a key of this family.
        if tag.is_some() && cut.partition.is_some() && tag != cut.partition {
            return None;
        }
        let partition = match tag.or(cut.partition).or(Self::Partition::FIXED) {
            Some(text) => Some(Self::Partition::parse(text)?),
            None => None,
        };
        let mut key = Key::empty();
        for (index, text) in cut.parts.iter().enumerate() {
            key.push_text(index, text);
        }
        Some((partition, key))
    }
}

/// Declares a key family: a unit type that is also the value with which keys are built.
///
/// ```
/// use emberkeep_schema::{Id, Json, KeyLayout, Set, Text, family, partition};
/// use uuid::Uuid;
///
/// partition! {
///     /// One customer's worlds.
///     pub struct Tenant(Uuid) as "tenantId";
/// }
/// family! {
///     /// Monster instance data.
///     pub MONSTER = "atlas:monster:{tenantId}:{uniqueId}" {
///         kind: Text<Json<String>>,
///         partition: Tenant,
///         parts: (uniqueId: u32),
///         ttl: persistent,            // or fixed(…), refresh(…), given; ms or a Duration
///         owner: "monsters",
///         readers: ["*"],             // may be left out
///     }
/// }
/// family! {
///     /// The monsters of a map.
///     pub MONSTER_MAP = "atlas:monster-map:{tenantId}:{mapId}" {
///         kind: Set<Id<u32>>,
///         partition: Tenant,
///         parts: (mapId: u32),
///         ttl: persistent,
///         owner: "monsters",
///         index_of: MONSTER,          // may be left out
///     }
/// }
/// let key = MONSTER.key(7);
/// let tenant = Tenant(Uuid::nil());
/// assert_eq!(
///     key.to_text(&KeyLayout::single(), &tenant),
///     "atlas:monster:00000000-0000-0000-0000-000000000000:7",
/// );
/// ```
///
/// A log declares its bound with its kind, and its pattern begins with `log:` or `ember:log:`:
///
/// ```
/// # use emberkeep_schema::{Json, Log, RefuseAbove, family, partition};
/// # partition! {
/// #     /// One auction house.
/// #     pub struct House(u32) as "house";
/// # }
/// family! {
///     /// What was sold, for the books.
///     pub SALES = "log:sales:{house}" {
///         kind: Log<Json<String>, RefuseAbove<10_000>>,   // or Newest<…>: drops the oldest
///         partition: House,
///         parts: (),
///         ttl: persistent,
///         owner: "auctions",
///     }
/// }
/// ```
///
/// The lines may stand in any order. The partition's `{name}` in the pattern is filled from the
/// partition; the other names are `parts`, in order. A mistake in any of it is a compile error.
///
/// A pattern without its partition's `{name}` gives keys that all partitions share on one server, and that each
/// partition has for itself on a Cluster. If an existing document asks for that, say so: `partition: shared Tenant`.
///
/// A family that belongs to running processes and not to what they keep, such as a lease or who is connected, says
/// `snapshot: never`: snapshots leave it out, and a restore does not touch it.
///
/// Besides the [`Family`](crate::Family) implementation, the type has `key(parts…)`, which takes
/// each part by value or by reference, and `parts(&key)`, which gives them back as a tuple.
#[macro_export]
macro_rules! family {
    ($(#[doc = $doc:expr])* $vis:vis $name:ident = $pattern:literal { $($lines:tt)* }) => {
        $crate::family! { @read [[$($doc)*] [$vis] $name $pattern]
            kind[] partition[] parts[] ttl[] owner[] readers[] index_of[] snapshot[]
            $($lines)* }
    };

    // One rule for each line that may stand in the braces. Each fills its own empty slot, so a
    // line given twice meets none of them.
    (@read $head:tt kind[] partition $b:tt parts $c:tt ttl $d:tt owner $e:tt readers $f:tt index_of $g:tt snapshot $h:tt
        kind: $kind:ty $(, $($rest:tt)*)?) => {
        $crate::family! { @read $head kind[$kind] partition $b parts $c ttl $d owner $e readers $f index_of $g snapshot $h $($($rest)*)? }
    };
    (@read $head:tt kind $a:tt partition[] parts $c:tt ttl $d:tt owner $e:tt readers $f:tt index_of $g:tt snapshot $h:tt
        partition: shared $partition:ty $(, $($rest:tt)*)?) => {
        $crate::family! { @read $head kind $a partition[true $partition] parts $c ttl $d owner $e readers $f index_of $g snapshot $h $($($rest)*)? }
    };
    (@read $head:tt kind $a:tt partition[] parts $c:tt ttl $d:tt owner $e:tt readers $f:tt index_of $g:tt snapshot $h:tt
        partition: $partition:ty $(, $($rest:tt)*)?) => {
        $crate::family! { @read $head kind $a partition[false $partition] parts $c ttl $d owner $e readers $f index_of $g snapshot $h $($($rest)*)? }
    };
    (@read $head:tt kind $a:tt partition $b:tt parts[] ttl $d:tt owner $e:tt readers $f:tt index_of $g:tt snapshot $h:tt
        parts: ($($part:ident: $type:ty),* $(,)?) $(, $($rest:tt)*)?) => {
        $crate::family! { @read $head kind $a partition $b parts[($($part: $type,)*)] ttl $d owner $e readers $f index_of $g snapshot $h $($($rest)*)? }
    };
    (@read $head:tt kind $a:tt partition $b:tt parts $c:tt ttl[] owner $e:tt readers $f:tt index_of $g:tt snapshot $h:tt
        ttl: persistent $(, $($rest:tt)*)?) => {
        $crate::family! { @read $head kind $a partition $b parts $c ttl[Persistent {}] owner $e readers $f index_of $g snapshot $h $($($rest)*)? }
    };
    (@read $head:tt kind $a:tt partition $b:tt parts $c:tt ttl[] owner $e:tt readers $f:tt index_of $g:tt snapshot $h:tt
        ttl: given $(, $($rest:tt)*)?) => {
        $crate::family! { @read $head kind $a partition $b parts $c ttl[Given {}] owner $e readers $f index_of $g snapshot $h $($($rest)*)? }
    };
    (@read $head:tt kind $a:tt partition $b:tt parts $c:tt ttl[] owner $e:tt readers $f:tt index_of $g:tt snapshot $h:tt
        ttl: fixed($ms:expr) $(, $($rest:tt)*)?) => {
        $crate::family! { @read $head kind $a partition $b parts $c
            ttl[Fixed { ms: $crate::macro_support::Milliseconds($ms).from_i64_u64_u32_or_duration() }] owner $e readers $f index_of $g snapshot $h $($($rest)*)? }
    };
    (@read $head:tt kind $a:tt partition $b:tt parts $c:tt ttl[] owner $e:tt readers $f:tt index_of $g:tt snapshot $h:tt
        ttl: refresh($ms:expr) $(, $($rest:tt)*)?) => {
        $crate::family! { @read $head kind $a partition $b parts $c
            ttl[Refresh { ms: $crate::macro_support::Milliseconds($ms).from_i64_u64_u32_or_duration() }] owner $e readers $f index_of $g snapshot $h $($($rest)*)? }
    };
    (@read $head:tt kind $a:tt partition $b:tt parts $c:tt ttl $d:tt owner[] readers $f:tt index_of $g:tt snapshot $h:tt
        owner: $owner:literal $(, $($rest:tt)*)?) => {
        $crate::family! { @read $head kind $a partition $b parts $c ttl $d owner[$owner] readers $f index_of $g snapshot $h $($($rest)*)? }
    };
    (@read $head:tt kind $a:tt partition $b:tt parts $c:tt ttl $d:tt owner $e:tt readers[] index_of $g:tt snapshot $h:tt
        readers: [$($reader:literal),* $(,)?] $(, $($rest:tt)*)?) => {
        $crate::family! { @read $head kind $a partition $b parts $c ttl $d owner $e readers[$($reader,)*] index_of $g snapshot $h $($($rest)*)? }
    };
    (@read $head:tt kind $a:tt partition $b:tt parts $c:tt ttl $d:tt owner $e:tt readers $f:tt index_of[] snapshot $h:tt
        index_of: $record:ty $(, $($rest:tt)*)?) => {
        $crate::family! { @read $head kind $a partition $b parts $c ttl $d owner $e readers $f index_of[$record] snapshot $h $($($rest)*)? }
    };
    (@read $head:tt kind $a:tt partition $b:tt parts $c:tt ttl $d:tt owner $e:tt readers $f:tt index_of $g:tt snapshot[]
        snapshot: never $(, $($rest:tt)*)?) => {
        $crate::family! { @read $head kind $a partition $b parts $c ttl $d owner $e readers $f index_of $g snapshot[never] $($($rest)*)? }
    };

    // All lines are read: say what is missing, or build.
    (@read [$doc:tt $vis:tt $name:ident $pattern:literal] kind[] $($rest:tt)*) => {
        $crate::family! { @unread $name [kind] $($rest)* }
    };
    (@read [$doc:tt $vis:tt $name:ident $pattern:literal] kind $a:tt partition[] $($rest:tt)*) => {
        $crate::family! { @unread $name [partition] $($rest)* }
    };
    (@read [$doc:tt $vis:tt $name:ident $pattern:literal] kind $a:tt partition $b:tt parts[] $($rest:tt)*) => {
        $crate::family! { @unread $name [parts] $($rest)* }
    };
    (@read [$doc:tt $vis:tt $name:ident $pattern:literal] kind $a:tt partition $b:tt parts $c:tt ttl[] $($rest:tt)*) => {
        $crate::family! { @unread $name [ttl] $($rest)* }
    };
    (@read [$doc:tt $vis:tt $name:ident $pattern:literal] kind $a:tt partition $b:tt parts $c:tt ttl $d:tt owner[] $($rest:tt)*) => {
        $crate::family! { @unread $name [owner] $($rest)* }
    };
    (@read $head:tt kind[$kind:ty] partition[$shared:literal $partition:ty] parts[$parts:tt] ttl[$($ttl:tt)*] owner[$owner:literal]
        readers[$($reader:literal,)*] index_of[$($record:ty)?] snapshot[$($never:ident)?]) => {
        $crate::family! { @build $head [$kind] [$shared $partition] $parts [$($ttl)*] [$owner] [$($reader,)*] [$($record)?] [$($never)?] }
    };
    (@read [$doc:tt $vis:tt $name:ident $pattern:literal] kind $a:tt partition $b:tt parts $c:tt ttl $d:tt owner $e:tt
        readers $f:tt index_of $g:tt snapshot $h:tt $line:ident $($rest:tt)*) => {
        $crate::family! { @unknown $name $line }
    };

    // A slot is empty because its line is missing, or because reading stopped at a bad line before
    // it. A line after `snapshot[…]` is the bad one.
    (@unread $name:ident [$missing:ident] $($slot:ident [$($filled:tt)*])* ) => {
        $crate::family! { @missing $name $missing }
    };
    (@unread $name:ident [$missing:ident] partition $b:tt $($rest:tt)*) => {
        $crate::family! { @unread $name [$missing] $($rest)* }
    };
    (@unread $name:ident [$missing:ident] parts $c:tt $($rest:tt)*) => {
        $crate::family! { @unread $name [$missing] $($rest)* }
    };
    (@unread $name:ident [$missing:ident] ttl $d:tt $($rest:tt)*) => {
        $crate::family! { @unread $name [$missing] $($rest)* }
    };
    (@unread $name:ident [$missing:ident] owner $e:tt $($rest:tt)*) => {
        $crate::family! { @unread $name [$missing] $($rest)* }
    };
    (@unread $name:ident [$missing:ident] readers $f:tt $($rest:tt)*) => {
        $crate::family! { @unread $name [$missing] $($rest)* }
    };
    (@unread $name:ident [$missing:ident] index_of $g:tt snapshot $h:tt $line:ident $($rest:tt)*) => {
        $crate::family! { @unknown $name $line }
    };

    (@missing $name:ident kind) => {
        ::core::compile_error!(concat!("family ", stringify!($name),
            " does not say what it holds; add `kind:` with Text<…>, Hash<…, …>, Set<…>, SortedSet<…>, List<…>, Log<…, …> or Channel<…>"));
    };
    (@missing $name:ident partition) => {
        ::core::compile_error!(concat!("family ", stringify!($name),
            " has no partition; add `partition:` with a type made by `partition!`, such as a tenant or a room: all keys of one transaction share it"));
    };
    (@missing $name:ident parts) => {
        ::core::compile_error!(concat!("family ", stringify!($name),
            " does not type the names in its pattern; add `parts: (name: Type, …)`, without the partition's, or `parts: ()`"));
    };
    (@missing $name:ident ttl) => {
        ::core::compile_error!(concat!("family ", stringify!($name),
            " has no TTL policy; add `ttl: persistent`, `ttl: fixed(ms)`, `ttl: refresh(ms)` or `ttl: given`"));
    };
    (@missing $name:ident owner) => {
        ::core::compile_error!(concat!("family ", stringify!($name),
            " has no owner; add `owner: \"service\"`, the one service that writes it"));
    };
    (@unknown $name:ident ttl) => {
        ::core::compile_error!(concat!("family ", stringify!($name),
            " has a `ttl:` that is given twice or is none of `persistent`, `fixed(ms)`, `refresh(ms)`, `given`"));
    };
    (@unknown $name:ident $line:ident) => {
        ::core::compile_error!(concat!("family ", stringify!($name), ": the line `", stringify!($line),
            ":` is given twice, is not of the expected form, or is none of kind, partition, parts, ttl, owner, readers, index_of, snapshot"));
    };

    (@build [[$($doc:expr)*] [$vis:vis] $name:ident $pattern:literal] [$kind:ty] [$shared:literal $partition:ty]
        ($($part:ident: $type:ty,)*) [$ttl:ident $ttl_fields:tt] [$owner:literal] [$($reader:literal,)*] [$($record:ty)?] [$($never:ident)?]) => {
        $(#[doc = $doc])*
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy, Debug)]
        $vis struct $name;

        const _: () = {
            const PARTITION: ::core::option::Option<&'static str> = <$partition as $crate::Partition>::PART;
            const PROBLEM: ::core::option::Option<$crate::macro_support::Problem> =
                $crate::macro_support::diagnose($pattern, PARTITION, $shared, &[$(stringify!($part)),*]);
            // None of a bad pattern: one readable message is better than one and an index out of bounds.
            const COUNT: usize = if PROBLEM.is_some() { 0 } else { $crate::macro_support::piece_count($pattern) };
            const PIECES: [$crate::Piece; COUNT] = $crate::macro_support::pieces($pattern, PARTITION);
            const _: () = {
                if let ::core::option::Option::Some(problem) = &PROBLEM {
                    ::core::panic!("{}", problem.text());
                }
                let bytes = $crate::macro_support::key_bytes_max(
                    &PIECES,
                    <$partition as $crate::Partition>::BYTES_MAX,
                    &[$(<$type as $crate::Part>::BYTES_MAX),*],
                );
                ::core::assert!(bytes <= $crate::limits::KEY_BYTES_MAX,
                    "the keys of this family could be longer than 1024 bytes; give its parts types with a smaller Part::BYTES_MAX");
                ::core::assert!(
                    !::core::matches!(<$kind as $crate::Kind>::NAME, $crate::KindName::Channel)
                        || ::core::matches!($crate::Ttl::$ttl $ttl_fields, $crate::Ttl::Persistent),
                    "a channel stores nothing that could expire; write `ttl: persistent`");
                ::core::assert!(
                    <$kind as $crate::Kind>::KEEP.is_none() || $crate::macro_support::is_log_name($pattern),
                    "the pattern of a log must begin with `log:` or `ember:log:`: the embedded engine keeps such keys apart, so that appending does not slow down other transactions");
            };

            impl $crate::Family for $name {
                type Partition = $partition;
                type Kind = $kind;
                type Ttl = $crate::$ttl;

                const DECLARATION: &'static $crate::Declaration = &$crate::Declaration::new::<$partition>(
                    stringify!($name),
                    concat!($($doc, "\n"),*).trim_ascii(),
                    $pattern,
                    &PIECES,
                    (<$kind as $crate::Kind>::NAME, <$kind as $crate::Kind>::KEEP),
                    $crate::macro_support::value_of(stringify!($kind)),
                    $crate::Ttl::$ttl $ttl_fields,
                    $owner,
                    &[$($reader),*],
                    &[$($crate::PartDecl::new::<$type>(stringify!($part))),*],
                    // Through the type, so that a name of no family does not compile.
                    $crate::family!(@index_of $($record)?),
                    $crate::family!(@in_snapshots $($never)?),
                );
            }
        };

        #[allow(dead_code, non_snake_case, unused_variables, unused_mut, unused_assignments, clippy::too_many_arguments, clippy::unused_unit)]
        impl $name {
            /// The key with these parts.
            #[inline]
            $vis fn key(self, $($part: impl $crate::PartValue<$type>),*) -> $crate::Key<$name> {
                let mut key = $crate::Key::empty();
                let mut index = 0;
                $(
                    key.push::<$type>(index, $crate::PartValue::<$type>::part(&$part));
                    index += 1;
                )*
                key
            }

            /// The parts of a key.
            $vis fn parts(self, key: &$crate::Key<$name>) -> ($($type,)*) {
                let mut index = 0;
                $(
                    let $part = key.part::<$type>(index);
                    index += 1;
                )*
                ($($part,)*)
            }
        }
    };

    (@in_snapshots) => { true };
    (@in_snapshots $never:ident) => { false };
    (@index_of) => { ::core::option::Option::None };
    (@index_of $record:ty) => {
        ::core::option::Option::Some(<$record as $crate::Family>::DECLARATION.name)
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Channel, Hash, Id, KindName, Name, Number, Raw, Set, Text, Topology, Ttl, Utf8, partition};
    use std::time::Duration;

    partition! {
        /// A shard.
        pub(crate) struct Shard(Name) as "shard";
    }
    partition! {
        /// The one galaxy.
        pub(crate) struct Galaxy = "galaxy";
    }
    family! {
        /// Player session.
        ///
        /// Kept while it is used.
        pub(crate) SESSION = "session:{id}" {
            owner: "gateway",
            ttl: refresh(Duration::from_secs(3600)),
            kind: Hash<Utf8, Number<i64>>,
            parts: (id: u64),
            partition: shared Shard,
            readers: ["zones", "*"]
        }
    }
    family! {
        /// Sessions of a zone.
        pub(crate) ZONE = "zone:{shard}:{id}:players" {
            kind: Set<Id<u64>>,
            partition: Shard,
            parts: (id: i32),
            ttl: fixed(1_800_000),
            owner: "zones",
            index_of: SESSION,
        }
    }
    family! {
        /// The tick.
        pub(crate) TICK = "game:tick" { kind: Text<Number<u64>>, partition: Galaxy, parts: (), ttl: persistent, owner: "tick", snapshot: never }
    }
    family! {
        /// News.
        pub(crate) NEWS = "news:{topic}" { kind: Channel<Raw>, partition: Galaxy, parts: (topic: Name), ttl: persistent, owner: "tick" }
    }

    fn shard() -> Shard {
        Shard(Name::new("eu1").unwrap())
    }

    #[test]
    fn what_was_declared_is_data() {
        let session = SESSION::DECLARATION;
        assert_eq!((session.name, session.pattern), ("SESSION", "session:{id}"));
        assert_eq!(session.doc, "Player session.\n\n Kept while it is used.");
        assert_eq!((session.kind, session.value), (KindName::Hash, "Utf8, Number<i64>"));
        assert_eq!(session.ttl, Ttl::Refresh { ms: 3_600_000 });
        assert_eq!((session.owner, session.readers), ("gateway", &["zones", "*"][..]));
        assert_eq!((session.partition, session.partition_part), ("Shard", Some("shard")));
        assert!(!session.carries_partition());
        assert_eq!((session.parts[0].name, session.parts[0].type_name), ("id", "u64"));
        let zone = ZONE::DECLARATION;
        assert_eq!((zone.ttl, zone.index_of), (Ttl::Fixed { ms: 1_800_000 }, Some("SESSION")));
        assert!(zone.carries_partition() && zone.in_snapshots && !TICK::DECLARATION.in_snapshots);
        assert_eq!(TICK::DECLARATION.partition_fixed, Some("galaxy"));
        assert_eq!(NEWS::DECLARATION.kind, KindName::Channel);
    }

    #[test]
    fn a_partition_is_known_from_the_tag_the_pattern_or_itself() {
        let single = KeyLayout::single();
        assert_eq!(SESSION::parse(&single, b"session:7"), Some((None, SESSION.key(7))));
        assert_eq!(
            SESSION::parse(&KeyLayout::cluster(), b"{eu1}session:7"),
            Some((Some(shard()), SESSION.key(7)))
        );
        assert_eq!(ZONE::parse(&single, b"zone:eu1:-4:players"), Some((Some(shard()), ZONE.key(-4))));
        assert_eq!(TICK::parse(&single, b"game:tick"), Some((Some(Galaxy), TICK.key())));
    }

    #[test]
    fn a_key_of_another_form_is_not_read() {
        let single = KeyLayout::single();
        for raw in
            ["session:07", "session:", "session:7:x", "sessions:7", "x:session:7", "session", "{a}session:7"]
        {
            assert_eq!(SESSION::parse(&single, raw.as_bytes()), None, "{raw}");
        }
        let cluster = KeyLayout::new("", Topology::Cluster).unwrap();
        for raw in
            ["{eu1}zone:eu2:4:players", "zone:eu1:4:players", "{}zone:eu1:4:players", "{eu1}zone:eu1:4"]
        {
            assert_eq!(ZONE::parse(&cluster, raw.as_bytes()), None, "{raw}");
        }
        assert_eq!(TICK::parse(&cluster, b"{other}game:tick"), None);
    }

    #[test]
    fn parts_come_back_typed() {
        assert_eq!(SESSION.parts(&SESSION.key(7)), (7,));
        let () = TICK.parts(&TICK.key());
    }
}
