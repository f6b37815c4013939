//! Finds the family of a raw key, for tools that read keys they did not build.

use crate::{
    declaration::Declaration,
    layout::{KeyLayout, OWN},
    schema::Schema,
};

/// What a raw key is.
#[derive(Clone, Debug)]
pub enum KeyIdentity {
    /// A key of a declared family.
    Family {
        /// The family whose pattern the key matches. In a valid schema there is only one.
        declaration: &'static Declaration,
        /// The partition's text: from the Cluster tag, the pattern, or because there is only one.
        partition: Option<String>,
        /// Name and text of the key's own parts, in order.
        parts: Vec<(&'static str, String)>,
    },
    /// A key of Emberkeep itself: `ember:…`, without a declared family.
    Own {
        /// The partition's text, on a Cluster.
        partition: Option<String>,
        /// What follows `ember:`, such as `r:…` of a commit receipt.
        name: String,
    },
}

impl KeyIdentity {
    /// The family, if it is a family's key.
    pub fn declaration(&self) -> Option<&'static Declaration> {
        match self {
            KeyIdentity::Family { declaration, .. } => Some(declaration),
            KeyIdentity::Own { .. } => None,
        }
    }

    /// The partition's text, if it is known.
    pub fn partition(&self) -> Option<&str> {
        match self {
            KeyIdentity::Family { partition, .. } | KeyIdentity::Own { partition, .. } => {
                partition.as_deref()
            }
        }
    }
}

impl Schema {
    /// Finds the family of a raw key laid out by `layout`. `None` = no family declares it.
    pub fn identify(&self, layout: &KeyLayout, raw: &[u8]) -> Option<KeyIdentity> {
        let (tag, name) = layout.strip(raw)?;
        if let Some(found) = self.families().iter().find_map(|family| of_family(family, tag, name)) {
            return Some(found);
        }
        let name = name.strip_prefix(OWN)?.to_owned();
        Some(KeyIdentity::Own { partition: tag.map(str::to_owned), name })
    }
}

impl Declaration {
    /// Whether a raw key laid out by `layout` is of this family and, as far as the key says, of this partition. It
    /// allocates nothing.
    pub fn has_key(&self, layout: &KeyLayout, raw: &[u8], partition: &str) -> bool {
        let Some((tag, name)) = layout.strip(raw) else { return false };
        let Some(cut) = self.cut(name) else { return false };
        let is_here = |text: Option<&str>| text.is_none_or(|text| text == partition);
        is_here(tag) && is_here(cut.partition) && is_here(self.partition_fixed)
    }
}

/// Reads `name` as a key of `declaration`, behind `tag` on a Cluster.
fn of_family(declaration: &'static Declaration, tag: Option<&str>, name: &str) -> Option<KeyIdentity> {
    let cut = declaration.cut(name)?;
    let tag_is_wrong = |tag: &str| {
        !(declaration.partition_accepts)(tag) || cut.partition.is_some_and(|partition| partition != tag)
    };
    if tag.is_some_and(tag_is_wrong) {
        return None;
    }
    let partition = tag.or(cut.partition).or(declaration.partition_fixed).map(str::to_owned);
    let names = declaration.parts.iter().map(|part| part.name);
    let parts = names.zip(cut.parts.iter().map(|&text| text.to_owned())).collect();
    Some(KeyIdentity::Family { declaration, partition, parts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Name, Raw, Set, Text, Topology, family, partition, schema};

    partition! {
        /// A room.
        pub(crate) struct Room(Name) as "code";
    }
    partition! {
        /// A shard.
        pub(crate) struct Shard(Name) as "shard";
    }
    family! {
        /// Votes.
        pub(crate) VOTE = "brp:room:{code}:vote:{round}:{item}" {
            kind: Set<Raw>, partition: Room, parts: (round: u32, item: Name), ttl: given, owner: "party"
        }
    }
    family! {
        /// A session.
        pub(crate) SESSION = "session:{id}" {
            kind: Text<Raw>, partition: shared Shard, parts: (id: u64), ttl: given, owner: "darkages"
        }
    }
    family! {
        /// A declared extra key.
        pub(crate) HINT = "ember:hint:{id}" {
            kind: Text<Raw>, partition: shared Shard, parts: (id: u64), ttl: given, owner: "darkages"
        }
    }

    fn shown(layout: &KeyLayout, raw: &str) -> String {
        let schema = schema![VOTE, SESSION, HINT].unwrap();
        match schema.identify(layout, raw.as_bytes()) {
            None => "unknown".to_owned(),
            Some(KeyIdentity::Own { partition, name }) => format!("own {partition:?} {name}"),
            Some(KeyIdentity::Family { declaration, partition, parts }) => {
                format!("{} {partition:?} {parts:?}", declaration.name)
            }
        }
    }

    #[test]
    fn a_family_has_the_keys_of_its_partition() {
        let (vote, session) = (<VOTE as crate::Family>::DECLARATION, <SESSION as crate::Family>::DECLARATION);
        let (single, cluster) = (KeyLayout::single(), KeyLayout::cluster());
        let has = |layout, raw: &str| vote.has_key(layout, raw.as_bytes(), "r1");
        assert!(has(&single, "brp:room:r1:vote:3:x") && has(&cluster, "{r1}brp:room:r1:vote:3:x"));
        assert!(!has(&single, "brp:room:r2:vote:3:x") && !has(&cluster, "{r2}brp:room:r1:vote:3:x"));
        assert!(!has(&single, "brp:room:r1:vote:x:x") && !has(&cluster, "brp:room:r1:vote:3:x"));
        assert!(session.has_key(&single, b"session:7", "any"), "on one server all partitions share it");
        assert!(!session.has_key(&cluster, b"{s1}session:7", "s2"));
    }

    #[test]
    fn a_key_finds_its_family_on_one_server() {
        let single = KeyLayout::new("p:", Topology::Single).unwrap();
        let vote = r#"VOTE Some("AB12") [("round", "3"), ("item", "cat")]"#;
        assert_eq!(shown(&single, "p:brp:room:AB12:vote:3:cat"), vote);
        assert_eq!(shown(&single, "p:session:7"), r#"SESSION None [("id", "7")]"#);
        assert_eq!(shown(&single, "session:7"), "unknown");
        assert_eq!(shown(&single, "p:session:seven"), "unknown");
    }

    #[test]
    fn a_key_finds_its_family_on_a_cluster() {
        let cluster = KeyLayout::cluster();
        let vote = r#"VOTE Some("AB12") [("round", "3"), ("item", "cat")]"#;
        assert_eq!(shown(&cluster, "{AB12}brp:room:AB12:vote:3:cat"), vote);
        assert_eq!(shown(&cluster, "{eu1}session:7"), r#"SESSION Some("eu1") [("id", "7")]"#);
        assert_eq!(shown(&cluster, "{other}brp:room:AB12:vote:3:cat"), "unknown");
        assert_eq!(shown(&cluster, "session:7"), "unknown");
    }

    #[test]
    fn our_own_keys_differ_from_families() {
        assert_eq!(shown(&KeyLayout::single(), "ember:turn:x"), "own None turn:x");
        assert_eq!(shown(&KeyLayout::cluster(), "{eu1}ember:turn"), r#"own Some("eu1") turn"#);
        assert_eq!(shown(&KeyLayout::single(), "ember:hint:7"), r#"HINT None [("id", "7")]"#);
    }
}
