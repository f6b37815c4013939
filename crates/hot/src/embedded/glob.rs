//! Redis' glob patterns: `*`, `?`, `[a-z]`, `[^a]`, `\`.
//!
//! One remembered star is enough: a later `*` makes every earlier choice irrelevant. So the time is bounded
//! by pattern times text, where the recursive form takes exponential time on patterns like `a*a*a*a*b`.

/// Whether `text` matches `pattern` as a whole.
pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at + 1, seen));
            at += 1;
        } else if let Some(used) = one(&pattern[at..], text[seen]) {
            at += used;
            seen += 1;
        } else if let Some((after, from)) = star {
            // The star swallows one byte more, and what follows it is tried again.
            star = Some((after, from + 1));
            (at, seen) = (after, from + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// How many bytes of the pattern match this byte; `None` = it does not match.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', rest @ ..] => class(rest, byte).map(|used| used + 1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [plain, ..] => (*plain == byte).then_some(1),
    }
}

/// The part after `[`. A class without its `]` ends with the pattern, as in Redis.
fn class(pattern: &[u8], byte: u8) -> Option<usize> {
    let negated = pattern.first() == Some(&b'^');
    let mut at = negated as usize;
    let mut found = false;
    loop {
        match &pattern[at.min(pattern.len())..] {
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', escaped, ..] => {
                found |= *escaped == byte;
                at += 2;
            }
            [low, b'-', high, ..] => {
                let (low, high) = (*low.min(high), *low.max(high));
                found |= (low..=high).contains(&byte);
                at += 3;
            }
            [plain, ..] => {
                found |= *plain == byte;
                at += 1;
            }
        }
    }
    (found != negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_redis_matches_them() {
        let cases: &[(&str, &str, bool)] = &[
            ("*", "", true),
            ("*", "anything", true),
            ("", "", true),
            ("", "a", false),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[^e]llo", "hbllo", true),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("h[a-b]llo", "hcllo", false),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("[\\]]", "]", true),
            ("[abc", "b", true),
            ("monster:*:hp", "monster:7:hp", true),
            ("monster:*:hp", "monster:7:mp", false),
            ("a*b*c", "a1b2c3c", true),
            ("\\", "\\", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), *expected, "{pattern:?} on {text:?}");
        }
    }

    #[test]
    fn a_hostile_pattern_ends_soon() {
        let pattern = "a*".repeat(30) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(300).as_bytes()));
    }
}
