//! Patterns: `atlas:monster:{tenantId}:{uniqueId}`, checked and cut into pieces while compiling.
//!
//! Invariants, each a compile error when broken:
//! 1. a pattern starts with text of its own, so two games cannot meet by a bad value;
//! 2. a `{name}` fills the whole place between two colons, so a key is cut back in one way only;
//! 3. its names are the declared parts, in order, and once the partition's, unless the family is `shared`.

use crate::limits::PARTS_MAX;

/// A run of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text that stands in every key.
    Literal(&'static str),
    /// The text of the partition, at the place that the pattern gives it.
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

/// Most bytes of a message; what is longer is cut.
const PROBLEM_BYTES_MAX: usize = 480;

/// What is wrong with a pattern. A buffer, because a constant cannot allocate and the text names the mistake.
#[doc(hidden)]
pub struct Problem {
    bytes: [u8; PROBLEM_BYTES_MAX],
    length: usize,
}

impl Problem {
    const fn some(texts: &[&str]) -> Option<Problem> {
        let mut problem = Problem { bytes: [0; PROBLEM_BYTES_MAX], length: 0 };
        let mut next = 0;
        while next < texts.len() {
            let (text, mut at) = (texts[next].as_bytes(), 0);
            while at < text.len() && problem.length < PROBLEM_BYTES_MAX {
                problem.bytes[problem.length] = text[at];
                problem.length += 1;
                at += 1;
            }
            next += 1;
        }
        Some(problem)
    }

    /// The message for the author of the declaration.
    pub const fn text(&self) -> &str {
        match std::str::from_utf8(self.bytes.split_at(self.length).0) {
            Ok(text) => text,
            Err(_) => "the pattern is not understood",
        }
    }
}

/// What is wrong with a pattern, in plain words. `shared` = the family says that it leaves its partition out.
#[doc(hidden)]
pub const fn diagnose(
    pattern: &str,
    partition: Option<&str>,
    shared: bool,
    parts: &[&str],
) -> Option<Problem> {
    if parts.len() > PARTS_MAX {
        return Problem::some(&["a family has more than 8 `parts`"]);
    }
    let bytes = pattern.as_bytes();
    if bytes.is_empty() || bytes[0] == b'{' || bytes[0] == b':' {
        return Problem::some(&["a pattern must start with text of its own, like \"monster:{id}\""]);
    }
    let (mut at, mut next, mut partition_seen) = (0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'{' => {}
            b'}' => return Problem::some(&["the pattern has a `}` without a `{`"]),
            0..=b' ' | 127.. => return Problem::some(&["the text of a pattern must be visible ASCII"]),
            _ => {
                at += 1;
                continue;
            }
        }
        let end = end_of_name(bytes, at);
        if end >= bytes.len() {
            return Problem::some(&["the pattern has a `{` without a `}`"]);
        }
        if bytes[at - 1] != b':' || (end + 1 < bytes.len() && bytes[end + 1] != b':') {
            return Problem::some(&["a {name} in a pattern must fill the whole place between two colons"]);
        }
        if names(bytes, at, end, partition) {
            if partition_seen {
                return Problem::some(&["the pattern holds the {name} of its partition twice"]);
            }
            partition_seen = true;
        } else if next < parts.len() && names(bytes, at, end, Some(parts[next])) {
            next += 1;
        } else {
            let (_, from) = pattern.split_at(at);
            let (name, _) = from.split_at(end + 1 - at);
            return unknown_name(name, partition, if next < parts.len() { Some(parts[next]) } else { None });
        }
        at = end + 1;
    }
    if next < parts.len() {
        let name = parts[next];
        return Problem::some(&["`parts` declares ", name, ", but the pattern does not hold {", name, "}"]);
    }
    match partition {
        Some(name) if !partition_seen && !shared => Problem::some(&[
            "the pattern does not hold {",
            name,
            "}, the name of its partition: on one server all partitions would share these keys; write {",
            name,
            "} into the pattern, or `partition: shared …` if it is meant so",
        ]),
        None if shared => {
            Problem::some(&["a partition of one fixed text has none to share with; leave out `shared`"])
        }
        Some(_) if partition_seen && shared => Problem::some(&[
            "the pattern holds the {name} of its partition, so nothing is shared; leave out `shared`",
        ]),
        _ => None,
    }
}

/// A `{name}` that is neither the partition's nor the next part.
const fn unknown_name(name: &str, partition: Option<&str>, part: Option<&str>) -> Option<Problem> {
    let expected: &[&str] = match (partition, part) {
        (Some(partition), Some(part)) => {
            &["{", part, "}, the next of `parts`, or {", partition, "} for the partition"]
        }
        (Some(partition), None) => {
            &["{", partition, "} for the partition, because `parts` has no further name"]
        }
        (None, Some(part)) => &["{", part, "}, the next of `parts`"],
        (None, None) => &["no further name, because `parts` has none"],
    };
    let (mut texts, mut at) = ([""; 8], 0);
    while at < expected.len() {
        texts[3 + at] = expected[at];
        at += 1;
    }
    (texts[0], texts[1], texts[2]) = ("the pattern holds ", name, ", expected ");
    Problem::some(&texts)
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
        assert!(diagnose(PATTERN, Some("tenantId"), false, &["x", "y"]).is_none());
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
    fn every_mistake_is_explained() {
        let diagnosis = |pattern: &str, parts: &[&str]| {
            let problem = diagnose(pattern, Some("tenantId"), pattern.starts_with("shared"), parts);
            problem.map_or("fine".to_owned(), |problem| problem.text().to_owned())
        };
        assert!(diagnosis("", &[]).contains("start with text"));
        assert!(diagnosis("{id}:x", &["id"]).contains("start with text"));
        assert!(diagnosis("a:{id", &["id"]).contains("`{` without a `}`"));
        assert!(diagnosis("a:id}", &["id"]).contains("`}` without a `{`"));
        assert!(diagnosis("a:x{id}", &["id"]).contains("whole place"));
        assert!(diagnosis("a:{id}x", &["id"]).contains("whole place"));
        assert!(diagnosis("a:{tenantId}:{tenantId}", &[]).contains("twice"));
        assert!(diagnosis("a b", &[]).contains("visible ASCII"));
        assert!(diagnosis("a", &["1", "2", "3", "4", "5", "6", "7", "8", "9"]).contains("more than 8"));
        assert_eq!(diagnosis("a:{x}:{tenantId}:{y}", &["x", "y"]), "fine");
        assert_eq!(diagnosis("shared:{x}", &["x"]), "fine");
        assert!(diagnosis("shared:{tenantId}", &[]).contains("leave out `shared`"));
        assert!(
            diagnose("tick", None, true, &[]).is_some_and(|problem| problem.text().contains("leave out"))
        );
    }

    #[test]
    fn a_wrong_name_is_named() {
        let diagnosis = |pattern: &str, partition: Option<&str>, parts: &[&str]| {
            diagnose(pattern, partition, false, parts).expect("a mistake").text().to_owned()
        };
        let tenant = Some("tenantId");
        assert_eq!(
            diagnosis("a:{tenatId}:{x}", tenant, &["x"]),
            "the pattern holds {tenatId}, expected {x}, the next of `parts`, or {tenantId} for the partition"
        );
        assert!(diagnosis("a:{tenantId}:{y}:{x}", tenant, &["x", "y"]).contains("holds {y}, expected {x}"));
        assert!(diagnosis("a:{tenantId}:{x}", tenant, &[]).contains("`parts` has no further name"));
        assert!(
            diagnosis("a:{}", None, &[])
                .ends_with("holds {}, expected no further name, because `parts` has none")
        );
        assert_eq!(
            diagnosis("a:{y}", None, &["x"]),
            "the pattern holds {y}, expected {x}, the next of `parts`"
        );
        assert_eq!(
            diagnosis("a:{x}", None, &["x", "y"]),
            "`parts` declares y, but the pattern does not hold {y}"
        );
        assert!(
            diagnosis("a:{x}", tenant, &["x"])
                .contains("does not hold {tenantId}, the name of its partition")
        );
        let long = format!("a:{{{}}}", "x".repeat(1_000));
        assert_eq!(diagnosis(&long, None, &[]).len(), PROBLEM_BYTES_MAX);
    }
}
