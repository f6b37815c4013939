//! Partitions: the scope of a transaction. On a Cluster a partition is one hash tag, and so one slot.

use crate::part::Shape;
use std::{fmt::Debug, hash::Hash};

/// The unit of atomicity and placement of a family: a tenant, a room, a shard, a whole galaxy.
///
/// The partition is not part of a [`Key`](crate::Key): it is given once, when the key is rendered. So a
/// transaction has one partition and cannot reach a second one.
///
/// [`partition!`](crate::partition!) declares one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a partition",
    label = "not a partition",
    note = "declare what all keys of a transaction share: `partition! {{ pub struct Realm(Name) as \"realm\"; }}`"
)]
pub trait Partition: Clone + Debug + Eq + Hash + Send + Sync + 'static {
    /// Name of the type in the documents.
    const NAME: &'static str;
    /// The `{name}` of the partition in patterns. Only a `shared` family may leave it out.
    const PART: Option<&'static str>;
    /// The one text of a partition that has no value of its own, such as `galaxy`.
    const FIXED: Option<&'static str> = None;
    /// Which texts it takes.
    const SHAPE: Shape = Shape::Text;
    /// Longest text that `write` gives.
    const BYTES_MAX: usize = crate::limits::PART_BYTES_MAX;

    /// Appends the canonical text: what a [`Part`](crate::Part) may write.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads the canonical text, and nothing else.
    fn parse(text: &str) -> Option<Self>;
}

/// Declares a [`Partition`] over a [`Part`](crate::Part), or one with a fixed text.
///
/// ```
/// use emberkeep_schema::{Partition, partition};
/// use uuid::Uuid;
///
/// partition! {
///     /// One customer's worlds.
///     #[derive(Copy)]
///     pub struct Tenant(Uuid) as "tenantId";
/// }
/// partition! {
///     /// The one galaxy.
///     pub struct Galaxy = "galaxy";
/// }
/// assert_eq!(Tenant(Uuid::nil()).to_string(), "00000000-0000-0000-0000-000000000000");
/// assert_eq!(Galaxy::parse("galaxy"), Some(Galaxy));
/// ```
#[macro_export]
macro_rules! partition {
    ($(#[$attribute:meta])* $vis:vis struct $name:ident($inner:ty) as $part:literal;) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(
            /// The value that names the partition.
            pub $inner,
        );

        impl $crate::Partition for $name {
            const NAME: &'static str = stringify!($name);
            const PART: ::core::option::Option<&'static str> = ::core::option::Option::Some($part);
            const SHAPE: $crate::Shape = <$inner as $crate::Part>::SHAPE;
            const BYTES_MAX: usize = <$inner as $crate::Part>::BYTES_MAX;

            #[inline]
            fn write(&self, out: &mut ::std::vec::Vec<u8>) {
                $crate::Part::write(&self.0, out);
            }

            fn parse(text: &str) -> ::core::option::Option<Self> {
                <$inner as $crate::Part>::parse(text).map($name)
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(&self.0, f)
            }
        }

        impl ::core::convert::From<$inner> for $name {
            fn from(value: $inner) -> Self {
                $name(value)
            }
        }
    };

    ($(#[$attribute:meta])* $vis:vis struct $name:ident = $text:literal;) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name;

        const _: () = ::core::assert!(
            $crate::macro_support::is_constant_part($text),
            "the text of a partition must be 1 to 256 visible ASCII characters without ':', '{{' and '}}'"
        );

        impl $crate::Partition for $name {
            const NAME: &'static str = stringify!($name);
            const PART: ::core::option::Option<&'static str> = ::core::option::Option::None;
            const FIXED: ::core::option::Option<&'static str> = ::core::option::Option::Some($text);
            const BYTES_MAX: usize = $text.len();

            #[inline]
            fn write(&self, out: &mut ::std::vec::Vec<u8>) {
                out.extend_from_slice($text.as_bytes());
            }

            fn parse(text: &str) -> ::core::option::Option<Self> {
                (text == $text).then_some($name)
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str($text)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    partition! {
        /// A room.
        pub(crate) struct Room(Name) as "code";
    }
    partition! {
        /// The one galaxy.
        pub(crate) struct Galaxy = "galaxy";
    }

    #[test]
    fn a_partition_over_a_part_writes_and_reads_it() {
        let room = Room(Name::new("AB12CD").unwrap());
        let mut out = Vec::new();
        room.write(&mut out);
        assert_eq!(out, b"AB12CD");
        assert_eq!(Room::parse("AB12CD"), Some(room));
        assert_eq!(Room::parse("a:b"), None);
        assert_eq!(Room::PART, Some("code"));
    }

    #[test]
    fn a_fixed_partition_has_one_text() {
        let mut out = Vec::new();
        Galaxy.write(&mut out);
        assert_eq!(out, b"galaxy");
        assert_eq!((Galaxy::parse("galaxy"), Galaxy::parse("other")), (Some(Galaxy), None));
        assert_eq!((Galaxy::PART, Galaxy::FIXED), (None, Some("galaxy")));
    }
}
