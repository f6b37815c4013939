//! Keys: the typed name of one entity of a family, without its partition.

use crate::{
    family::Family,
    layout::KeyLayout,
    limits::{KEY_BYTES_INLINE, PARTS_MAX},
    part::{Part, Sink},
    partition::Partition,
    pattern::Piece,
};
use smallvec::SmallVec;
use std::{fmt, hash, marker::PhantomData};

/// A key of the family `F`: its own parts, written once when it is built.
///
/// It does not contain the partition. [`render`](Key::render) gets it, once for a whole transaction, so a
/// transaction cannot span two partitions.
pub struct Key<F: Family> {
    /// The texts of the parts, one after the other.
    text: SmallVec<[u8; KEY_BYTES_INLINE]>,
    /// Where each part ends in `text`; unused ones are 0.
    ends: [u16; PARTS_MAX],
    family: PhantomData<fn() -> F>,
}

impl Sink for SmallVec<[u8; KEY_BYTES_INLINE]> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl<F: Family> Key<F> {
    /// A key without parts, for [`family!`](crate::family!) to fill.
    #[doc(hidden)]
    #[inline]
    pub fn empty() -> Key<F> {
        Key { text: SmallVec::new(), ends: [0; PARTS_MAX], family: PhantomData }
    }

    /// Sets the part `index`; called once for each part in order.
    #[doc(hidden)]
    #[inline]
    pub fn push<P: Part>(&mut self, index: usize, part: &P) {
        part.write(&mut self.text);
        // In range: a family that could write more than KEY_BYTES_MAX does not compile.
        self.ends[index] = self.text.len() as u16;
        debug_assert!(
            std::str::from_utf8(self.part_bytes(index)).is_ok_and(|text| P::parse(text).is_some()),
            "{} writes a text that it does not read back",
            P::TYPE
        );
    }

    /// Sets the part `index` to a text that its type accepts.
    pub(crate) fn push_text(&mut self, index: usize, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
        self.ends[index] = self.text.len() as u16;
    }

    /// The typed part `index`.
    #[doc(hidden)]
    pub fn part<P: Part>(&self, index: usize) -> P {
        let text = std::str::from_utf8(self.part_bytes(index)).ok();
        text.and_then(P::parse).expect("a key holds only what its part types wrote or accepted")
    }

    #[inline]
    fn part_bytes(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[usize::from(start)..usize::from(self.ends[index])]
    }

    /// Appends the raw key in `partition`, laid out by `layout`.
    #[inline]
    pub fn render(&self, layout: &KeyLayout, partition: &F::Partition, out: &mut Vec<u8>) {
        layout.write_start(out, |out| partition.write(out));
        for piece in F::DECLARATION.pieces {
            match piece {
                Piece::Literal(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Partition => partition.write(out),
                Piece::Part(index) => out.extend_from_slice(self.part_bytes(usize::from(*index))),
            }
        }
    }

    /// The raw key as text, for messages and tests.
    pub fn to_text(&self, layout: &KeyLayout, partition: &F::Partition) -> String {
        let mut out = Vec::new();
        self.render(layout, partition, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

impl<F: Family> Clone for Key<F> {
    #[inline]
    fn clone(&self) -> Self {
        Key { text: SmallVec::from_slice(&self.text), ends: self.ends, family: PhantomData }
    }
}

impl<F: Family> PartialEq for Key<F> {
    fn eq(&self, other: &Self) -> bool {
        self.ends == other.ends && self.text == other.text
    }
}

impl<F: Family> Eq for Key<F> {}

impl<F: Family> hash::Hash for Key<F> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
        self.ends.hash(state);
    }
}

impl<F: Family> fmt::Debug for Key<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct(F::DECLARATION.name);
        for (index, part) in F::DECLARATION.parts.iter().enumerate() {
            let text = String::from_utf8_lossy(self.part_bytes(index));
            shown.field(part.name, &format_args!("{text}"));
        }
        shown.finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Family, KeyLayout, Name, Raw, Text, Topology, family, partition};
    use proptest::prelude::*;
    use std::collections::HashSet;
    use uuid::Uuid;

    partition! {
        /// One customer's worlds.
        #[derive(Copy)]
        pub(crate) struct Tenant(Uuid) as "tenantId";
    }

    family! {
        /// A cooldown.
        pub(crate) COOLDOWN = "reactor:cd:{tenantId}:{instance}:{name}:{x}:{y}" {
            kind: Text<Raw>,
            partition: Tenant,
            parts: (instance: Uuid, name: Name, x: i16, y: i16),
            ttl: given,
            owner: "reactors",
        }
    }

    const TENANT: Tenant = Tenant(Uuid::from_u128(0xaaaa));
    const TENANT_TEXT: &str = "00000000-0000-0000-0000-00000000aaaa";

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    #[test]
    fn one_server_has_the_exact_key_and_a_cluster_the_same_behind_the_tag() {
        let key = COOLDOWN.key(Uuid::nil(), name("door"), -1, 2);
        let exact = format!("reactor:cd:{TENANT_TEXT}:{}:door:-1:2", Uuid::nil());
        assert_eq!(key.to_text(&KeyLayout::single(), &TENANT), exact);
        let layout = KeyLayout::new("p:", Topology::Cluster).unwrap();
        assert_eq!(key.to_text(&layout, &TENANT), format!("p:{{{TENANT_TEXT}}}{exact}"));
    }

    #[test]
    fn keys_are_equal_by_their_parts() {
        let (a, b) = (name("a"), name("b"));
        let first = COOLDOWN.key(Uuid::nil(), &a, 1, 23);
        assert_eq!(first, COOLDOWN.key(Uuid::nil(), &a, 1, 23).clone());
        // The same digits, cut elsewhere.
        let other = COOLDOWN.key(Uuid::nil(), &a, 12, 3);
        assert_ne!(first, other);
        let all = HashSet::from([first.clone(), other, COOLDOWN.key(Uuid::nil(), b, 1, 23), first]);
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn a_usual_key_does_not_touch_the_heap() {
        assert!(!COOLDOWN.key(Uuid::max(), name("a door, say"), i16::MIN, i16::MIN).text.spilled());
    }

    #[test]
    fn a_key_shows_its_family_and_parts() {
        let key = COOLDOWN.key(Uuid::nil(), name("a"), 1, -2);
        let shown = format!("COOLDOWN {{ instance: {}, name: a, x: 1, y: -2 }}", Uuid::nil());
        assert_eq!(format!("{key:?}"), shown);
    }

    proptest! {
        #[test]
        fn a_key_survives_being_rendered(instance: u128, text in "[^:{}\\p{Cc}]{1,60}", x: i16, y: i16, cluster: bool) {
            let layout = if cluster { Topology::Cluster } else { Topology::Single };
            let layout = KeyLayout::new("test/", layout).unwrap();
            let parts = (Uuid::from_u128(instance), name(&text), x, y);
            let key = COOLDOWN.key(parts.0, &parts.1, x, y);
            let raw = key.to_text(&layout, &TENANT);
            let (tenant, read) = COOLDOWN::parse(&layout, raw.as_bytes()).unwrap();
            prop_assert_eq!(tenant, Some(TENANT));
            prop_assert_eq!(&read, &key);
            prop_assert_eq!(COOLDOWN.parts(&read), parts);
        }

        #[test]
        fn what_is_read_is_rendered_the_same(tail in "[-0-9a-f:{}]{0,50}") {
            let raw = format!("reactor:cd:{TENANT_TEXT}:{}:{tail}", Uuid::nil());
            if let Some((_, key)) = COOLDOWN::parse(&KeyLayout::single(), raw.as_bytes()) {
                prop_assert_eq!(key.to_text(&KeyLayout::single(), &TENANT), raw);
            }
        }
    }
}
