//! The declaration of a family as plain data: everything else derives from it.

use crate::{
    kind::{Keep, KindName},
    part::Shape,
    pattern::Piece,
    ttl::Ttl,
};

/// A family as data. Made by [`family!`](crate::family!), never by hand.
#[derive(Debug)]
#[non_exhaustive]
pub struct Declaration {
    /// Name of the family, as in code.
    pub name: &'static str,
    /// The documentation comment of the declaration, as the generated documents print it.
    pub doc: &'static str,
    /// The pattern as in the document, `{name}` for each part.
    pub pattern: &'static str,
    /// The pattern in pieces.
    pub pieces: &'static [Piece],
    /// The type on the server.
    pub kind: KindName,
    /// How many entries a log keeps; `None` for every other kind.
    pub keep: Option<Keep>,
    /// The codecs as written in the declaration: `Json<Monster>`, `Utf8, Number<i64>`.
    pub value: &'static str,
    /// What a write does to the deadline.
    pub ttl: Ttl,
    /// The service that writes it.
    pub owner: &'static str,
    /// The services that read it; `*` = all.
    pub readers: &'static [&'static str],
    /// Name of the partition's type.
    pub partition: &'static str,
    /// The `{name}` that stands for the partition in patterns, whether or not this one holds it.
    pub partition_part: Option<&'static str>,
    /// The partition's text, where it has only one.
    pub partition_fixed: Option<&'static str>,
    /// Which texts the partition takes.
    pub partition_shape: Shape,
    /// Whether a text is one of the partition's.
    pub partition_accepts: fn(&str) -> bool,
    /// The key's own parts, in order.
    pub parts: &'static [PartDecl],
    /// The family of the records that this index points at.
    pub index_of: Option<&'static str>,
    /// Whether snapshots have its keys. `snapshot: never` = it belongs to running processes.
    pub in_snapshots: bool,
}

/// A key part as data.
#[derive(Debug)]
#[non_exhaustive]
pub struct PartDecl {
    /// Name in the pattern.
    pub name: &'static str,
    /// Name of the type.
    pub type_name: &'static str,
    /// Which texts it takes.
    pub shape: Shape,
    /// Whether a text is one of its type.
    pub accepts: fn(&str) -> bool,
}

impl Declaration {
    /// Whether the pattern itself holds the partition, so that it is known without a Cluster tag.
    pub fn carries_partition(&self) -> bool {
        self.pieces.contains(&Piece::Partition)
    }

    /// The parts of `key`, which is without prefix and tag, if it is of this family:
    /// the partition's text, where the pattern holds it, and the key's own.
    pub(crate) fn cut<'k>(&self, key: &'k str) -> Option<KeyTexts<'k>> {
        let (mut rest, mut cut) = (key, KeyTexts::default());
        for piece in self.pieces {
            match piece {
                Piece::Literal(text) => rest = rest.strip_prefix(text)?,
                Piece::Partition => cut.partition = Some(take(&mut rest, self.partition_accepts)?),
                Piece::Part(index) => {
                    let text = take(&mut rest, self.parts[usize::from(*index)].accepts)?;
                    cut.parts.push(text);
                }
            }
        }
        rest.is_empty().then_some(cut)
    }
}

/// The variable texts of a key.
#[derive(Default)]
pub(crate) struct KeyTexts<'k> {
    pub(crate) partition: Option<&'k str>,
    pub(crate) parts: smallvec::SmallVec<[&'k str; crate::limits::PARTS_MAX]>,
}

/// Takes the text before the next colon off `rest`, if it is acceptable. A part holds no colon and
/// is never empty, so there is no other way to split.
fn take<'k>(rest: &mut &'k str, accepts: fn(&str) -> bool) -> Option<&'k str> {
    let end = rest.find(':').unwrap_or(rest.len());
    let (text, after) = rest.split_at(end);
    *rest = after;
    accepts(text).then_some(text)
}

impl Declaration {
    /// For [`family!`](crate::family!) only: `Declaration` may grow without breaking its users.
    #[doc(hidden)]
    #[expect(clippy::too_many_arguments, reason = "called by one macro, which names each argument")]
    pub const fn new<P: crate::Partition>(
        name: &'static str,
        doc: &'static str,
        pattern: &'static str,
        pieces: &'static [Piece],
        (kind, keep): (KindName, Option<Keep>),
        value: &'static str,
        ttl: Ttl,
        owner: &'static str,
        readers: &'static [&'static str],
        parts: &'static [PartDecl],
        index_of: Option<&'static str>,
        in_snapshots: bool,
    ) -> Declaration {
        Declaration {
            name,
            doc,
            pattern,
            pieces,
            kind,
            keep,
            value,
            ttl,
            owner,
            readers,
            partition: P::NAME,
            partition_part: P::PART,
            partition_fixed: P::FIXED,
            partition_shape: P::SHAPE,
            partition_accepts: |text| P::parse(text).is_some(),
            parts,
            index_of,
            in_snapshots,
        }
    }
}

impl PartDecl {
    /// A part as [`family!`](crate::family!) declares it.
    #[doc(hidden)]
    pub const fn new<P: crate::Part>(name: &'static str) -> PartDecl {
        PartDecl { name, type_name: P::TYPE, shape: P::SHAPE, accepts: |text| P::parse(text).is_some() }
    }
}

/// What stands between the outermost `<` and `>` of a kind's text: `Json<Monster>` of
/// `Text<Json<Monster>>`. Const, because types have no printable name in a constant.
#[doc(hidden)]
pub const fn value_of(kind: &'static str) -> &'static str {
    let bytes = kind.as_bytes();
    let (mut start, mut end) = (0, bytes.len());
    while start < bytes.len() && bytes[start] != b'<' {
        start += 1;
    }
    while end > start && bytes[end - 1] != b'>' {
        end -= 1;
    }
    if start + 1 >= end {
        return kind;
    }
    kind.split_at(end - 1).0.split_at(start + 1).1.trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_what_the_kind_holds() {
        assert_eq!(value_of("Text<Json<Monster>>"), "Json<Monster>");
        assert_eq!(value_of("Hash<Utf8, Number<i64>>"), "Utf8, Number<i64>");
        assert_eq!(value_of("Alias"), "Alias");
    }
}
