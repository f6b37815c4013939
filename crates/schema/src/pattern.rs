//! Patterns: `atlas:monster:{tenantId}:{uniqueId}`, checked and cut into pieces while compiling.
//!
//! Invariants, each a compile error when broken:
//! 1. a pattern starts with text of its own, so two games cannot meet by a bad value;
//! 2. a `{name}` fills the whole place between two colons, so a key is cut back in one way only;
//! 3. its names are the declared parts, in order, and at most once the partition's.

use crate::limits::PARTS_MAX;

/// A run of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text that stands in every key.
    Literal(&'static str),
    /// The partition's text.
    Partition,
    /// The text of the part with this index.
    Part(u8),
}

/// Whether a name, without prefix and tag, begins as those of logs do.
#[doc(hidden)]
pub const fn is_log_name(name: &str) -> bool {
    is_log(name.as_bytes())
}

/// The same for bytes.
pub(crate) const fn is_log(name: &[u8]) -> bool {
    matches!(
        name,
        [b'l', b'o', b'g', b':', ..] | [b'e', b'm', b'b', b'e', b'r', b':', b'l', b'o', b'g', b':', ..]
    )
}

/// What is wrong with a pattern, in plain words.
#[doc(hidden)]
pub const fn diagnose(pattern: &str, partition: Option<&str>, parts: &[&str]) -> Option<&'static str> {
    if parts.len() > PARTS_MAX {
        return Some("a family has more than 8 `parts`");
    }
    let bytes = pattern.as_bytes();
    if bytes.is_empty() || bytes[0] == b'{' || bytes[0] == b':' {
        return Some("a pattern must start with text of its own, like \"monster:{id}\"");
    }
    let (mut at, mut next, mut partition_seen) = (0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'{' => {}
            b'}' => return Some("the pattern has a `}` without a `{`"),
            0..=b' ' | 127.. => return Some("the text of a pattern must be visible ASCII"),
            _ => {
                at += 1;
                continue;
            }
        }
        let end = end_of_name(bytes, at);
        if end >= bytes.len() {
            return Some("the pattern has a `{` without a `}`");
        }
        if bytes[at - 1] != b':' || (end + 1 < bytes.len() && bytes[end + 1] != b':') {
            return Some("a {name} in a pattern must fill the whole place between two colons");
        }
        if names(bytes, at, end, partition) {
            if partition_seen {
                return Some("the pattern holds the {name} of its partition twice");
            }
            partition_seen = true;
        } else if next < parts.len() && names(bytes, at, end, Some(parts[next])) {
            next += 1;
        } else {
            return Some(
                "the {names} of the pattern must be those of `parts`, in the same order; only the partition's own {name} may stand between them",
            );
        }
        at = end + 1;
    }
    if next < parts.len() {
        return Some(
            "`parts` declares a name that the pattern does not hold; write it as {name} in the pattern",
        );
    }
    None
}

/// Index of the `}` that closes the `{` at `open`, or past the end.
const fn end_of_name(pattern: &[u8], open: usize) -> usize {
    let mut end = open + 1;
    while end < pattern.len() && pattern[end] != b'}' {
        end += 1;
    }
    end
}

/// Whether the `{…}` from `open` to `close` is `name`.
const fn names(pattern: &[u8], open: usize, close: usize, name: Option<&str>) -> bool {
    let Some(name) = name else { return false };
    let name = name.as_bytes();
    if name.len() != close - open - 1 {
        return false;
    }
    let mut i = 0;
    while i < name.len() {
        if pattern[open + 1 + i] != name[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// How many pieces a sound pattern has.
#[doc(hidden)]
pub const fn piece_count(pattern: &str) -> usize {
    let bytes = pattern.as_bytes();
    let (mut at, mut count) = (0, 0);
    while at < bytes.len() {
        count += 1;
        at = end_of_piece(bytes, at);
    }
    count
}

/// Where the piece that starts at `start` ends.
const fn end_of_piece(pattern: &[u8], start: usize) -> usize {
    if pattern[start] == b'{' {
        let close = end_of_name(pattern, start);
        // An unclosed brace is diagnosed elsewhere; here it must only end.
        return if close < pattern.len() { close + 1 } else { close };
    }
    let mut end = start;
    while end < pattern.len() && pattern[end] != b'{' {
        end += 1;
    }
    end
}

/// Cuts a sound pattern into its `N` pieces.
#[doc(hidden)]
pub const fn pieces<const N: usize>(pattern: &'static str, partition: Option<&str>) -> [Piece; N] {
    let bytes = pattern.as_bytes();
    let mut pieces = [Piece::Partition; N];
    let (mut at, mut count, mut part) = (0, 0, 0);
    while count < N {
        let end = end_of_piece(bytes, at);
        if bytes[at] != b'{' {
            pieces[count] = Piece::Literal(pattern.split_at(end).0.split_at(at).1);
        } else if !names(bytes, at, end - 1, partition) {
            pieces[count] = Piece::Part(part);
            part += 1;
        }
        at = end;
        count += 1;
    }
    pieces
}

/// Longest key of a pattern, given the longest texts of its partition and parts.
#[doc(hidden)]
pub const fn key_bytes_max(pieces: &[Piece], partition: usize, parts: &[usize]) -> usize {
    let (mut sum, mut at) = (0, 0);
    while at < pieces.len() {
        sum += match pieces[at] {
            Piece::Literal(text) => text.len(),
            Piece::Partition => partition,
            Piece::Part(index) => parts[index as usize],
        };
        at += 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_cut_where_its_names_stand() {
        const PATTERN: &str = "reactor:cd:{tenantId}:{x}:{y}:end";
        const PIECES: [Piece; piece_count(PATTERN)] = pieces(PATTERN, Some("tenantId"));
        use Piece::*;
        let expected = [
            Literal("reactor:cd:"),
            Partition,
            Literal(":"),
            Part(0),
            Literal(":"),
            Part(1),
            Literal(":end"),
        ];
        assert_eq!(PIECES, expected);
        assert_eq!(diagnose(PATTERN, Some("tenantId"), &["x", "y"]), None);
    }

    #[test]
    fn the_longest_key_is_the_sum_of_its_pieces() {
        let pieces = [Piece::Literal("a:"), Piece::Partition, Piece::Literal(":"), Piece::Part(1)];
        assert_eq!(key_bytes_max(&pieces, 36, &[1000, 20]), 2 + 36 + 1 + 20);
    }

    #[test]
    fn a_pattern_without_names_is_one_piece() {
        const PIECES: [Piece; piece_count("game:tick")] = pieces("game:tick", None);
        assert_eq!(PIECES, [Piece::Literal("game:tick")]);
    }

    #[test]
    fn every_mistake_is_told_in_words() {
        let told =
            |pattern: &str, parts: &[&str]| diagnose(pattern, Some("tenantId"), parts).unwrap_or("fine");
        assert!(told("", &[]).contains("start with text"));
        assert!(told("{id}:x", &["id"]).contains("start with text"));
        assert!(told("a:{id", &["id"]).contains("`{` without a `}`"));
        assert!(told("a:id}", &["id"]).contains("`}` without a `{`"));
        assert!(told("a:x{id}", &["id"]).contains("whole place"));
        assert!(told("a:{id}x", &["id"]).contains("whole place"));
        assert!(told("a:{tenantId}:{tenantId}", &[]).contains("twice"));
        assert!(told("a:{y}:{x}", &["x", "y"]).contains("same order"));
        assert!(told("a:{x}", &[]).contains("same order"));
        assert!(told("a:{}", &[]).contains("same order"));
        assert!(told("a:{x}", &["x", "y"]).contains("does not hold"));
        assert!(told("a b", &[]).contains("visible ASCII"));
        assert!(told("a", &["1", "2", "3", "4", "5", "6", "7", "8", "9"]).contains("more than 8"));
        assert_eq!(told("a:{x}:{tenantId}:{y}", &["x", "y"]), "fine");
    }
}
