//! The key layout: how a family's keys are rendered on a server.

use crate::limits::PREFIX_BYTES_MAX;
use thiserror::Error;

/// The first text of every key of Emberkeep itself.
pub(crate) const OWN: &str = "ember:";

/// One server or a Cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Topology {
    /// The documents' exact keys.
    #[default]
    Single,
    /// Each key behind `{partition}`, so that all keys of a transaction live in one slot.
    Cluster,
}

/// How keys are rendered: an optional prefix, and the topology.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyLayout {
    prefix: String,
    topology: Topology,
}

/// A prefix that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidPrefix {
    /// A brace would move the Cluster tag; a control character would break logs.
    #[error("the key prefix holds {character:?}; expected text without '{{', '}}' and control characters")]
    Character {
        /// The first character that is not allowed.
        character: char,
    },
    /// More than [`PREFIX_BYTES_MAX`] bytes.
    #[error("the key prefix has {bytes} bytes; expected at most {PREFIX_BYTES_MAX}")]
    TooLong {
        /// How many were given.
        bytes: usize,
    },
    /// Our own keys would be taken for a family's, or the reverse.
    #[error("the key prefix starts with \"{OWN}\", which marks keys of Emberkeep itself; choose another")]
    Reserved,
}

impl KeyLayout {
    /// Every key gets `prefix`, which may be empty.
    pub fn new(prefix: impl Into<String>, topology: Topology) -> Result<KeyLayout, InvalidPrefix> {
        let prefix = prefix.into();
        if prefix.len() > PREFIX_BYTES_MAX {
            return Err(InvalidPrefix::TooLong { bytes: prefix.len() });
        }
        if let Some(character) = prefix.chars().find(|c| matches!(c, '{' | '}') || c.is_control()) {
            return Err(InvalidPrefix::Character { character });
        }
        if prefix.starts_with(OWN) {
            return Err(InvalidPrefix::Reserved);
        }
        Ok(KeyLayout { prefix, topology })
    }

    /// The documents' exact keys without a prefix.
    pub const fn single() -> KeyLayout {
        KeyLayout { prefix: String::new(), topology: Topology::Single }
    }

    /// The Cluster layout without a prefix.
    pub const fn cluster() -> KeyLayout {
        KeyLayout { prefix: String::new(), topology: Topology::Cluster }
    }

    /// The prefix of every key.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// One server or a Cluster.
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// Writes a key of Emberkeep itself: prefix, on a Cluster `{partition}`, then `ember:` and `name`.
    /// On one server the partition is not written: `name` must contain it if keys are per partition.
    pub fn write_own(&self, partition: &[u8], name: &[u8], out: &mut Vec<u8>) {
        self.write_start(out, |out| out.extend_from_slice(partition));
        out.extend_from_slice(OWN.as_bytes());
        out.extend_from_slice(name);
    }

    /// Whether a raw key is named like a log: `log:…` or `ember:log:…` behind prefix and tag.
    #[inline]
    pub fn is_log(&self, raw: &[u8]) -> bool {
        let Some(name) = raw.get(self.prefix.len()..) else { return false };
        let name = match self.topology {
            Topology::Single => name,
            Topology::Cluster => match name.iter().position(|byte| *byte == b'}') {
                Some(end) => &name[end + 1..],
                None => name,
            },
        };
        crate::pattern::is_log(name)
    }

    /// Writes prefix and tag of a key.
    #[inline]
    pub(crate) fn write_start(&self, out: &mut Vec<u8>, partition: impl FnOnce(&mut Vec<u8>)) {
        out.extend_from_slice(self.prefix.as_bytes());
        if self.topology == Topology::Cluster {
            out.push(b'{');
            partition(out);
            out.push(b'}');
        }
    }

    /// Splits a raw key: the partition's text, if there is a tag, and the name without prefix and tag.
    pub(crate) fn strip<'k>(&self, raw: &'k [u8]) -> Option<(Option<&'k str>, &'k str)> {
        let text = std::str::from_utf8(raw).ok()?.strip_prefix(self.prefix.as_str())?;
        match self.topology {
            Topology::Single => Some((None, text)),
            Topology::Cluster => {
                let (partition, name) = text.strip_prefix('{')?.split_once('}')?;
                Some((Some(partition), name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_that_would_break_the_layout_is_refused() {
        let error = |prefix: &str| KeyLayout::new(prefix, Topology::Cluster).unwrap_err().to_string();
        assert!(error("a{b").starts_with("the key prefix holds '{'"));
        assert!(error("a}").starts_with("the key prefix holds '}'"));
        assert!(error("a\n").starts_with("the key prefix holds '\\n'"));
        assert!(error(&"p".repeat(65)).contains("65 bytes; expected at most 64"));
        assert!(error("ember:").contains("choose another"));
        assert_eq!(KeyLayout::new("test:", Topology::Single).unwrap().prefix(), "test:");
    }

    #[test]
    fn our_own_keys_carry_the_tag_on_a_cluster_only() {
        let mut out = Vec::new();
        KeyLayout::new("p:", Topology::Single).unwrap().write_own(b"room1", b"turn:room1", &mut out);
        assert_eq!(out, b"p:ember:turn:room1");
        out.clear();
        KeyLayout::new("p:", Topology::Cluster).unwrap().write_own(b"room1", b"turn", &mut out);
        assert_eq!(out, b"p:{room1}ember:turn");
    }

    #[test]
    fn logs_are_known_by_their_names() {
        let layout = KeyLayout::new("p:", Topology::Cluster).unwrap();
        assert!(layout.is_log(b"p:{room1}log:a") && layout.is_log(b"p:{room1}ember:log:a"));
        assert!(!layout.is_log(b"p:{log:}a") && !layout.is_log(b"p") && !layout.is_log(b"p:{room1}ember:a"));
        assert!(KeyLayout::single().is_log(b"log:a") && !KeyLayout::single().is_log(b"logs:a"));
    }

    #[test]
    fn what_is_laid_out_is_taken_off_again() {
        let layout = KeyLayout::new("p:", Topology::Cluster).unwrap();
        assert_eq!(layout.strip(b"p:{room1}a:b"), Some((Some("room1"), "a:b")));
        assert_eq!(layout.strip(b"p:a:b"), None);
        assert_eq!(layout.strip(b"{room1}a:b"), None);
        assert_eq!(layout.strip(b"p:{room1\xff}a:b"), None);
        assert_eq!(KeyLayout::single().strip(b"a:b"), Some((None, "a:b")));
    }
}
