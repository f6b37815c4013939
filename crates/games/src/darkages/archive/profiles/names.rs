//! Names and addresses: which are allowed, and which are the same.

use super::super::error::{Error, Result};
use super::super::limits::{EMAIL_BYTES_MAX, USERNAME_CHARS_MAX};
use crate::darkages::history::ClaimKind;
use crate::invisible::{is_control, is_invisible, is_joiner};
use unicode_normalization::UnicodeNormalization as _;

/// The text by which names and addresses are compared: compatibility forms and case do not count (NFKC, folded).
/// Upper case comes first, because some letters have several in lower case: `ß` and `ss`, `ς` and `σ`.
pub fn fold(text: &str) -> String {
    let folded = text.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    folded.collect::<String>().nfkc().collect()
}

/// The folded text of an allowed name or address.
pub(super) fn checked(kind: ClaimKind, text: &str) -> Result<String> {
    let problem = match kind {
        ClaimKind::Username => username_problem(text),
        ClaimKind::Email => email_problem(text),
    };
    match problem {
        Some(problem) => Err(Error::invalid(kind.text(), problem)),
        None => Ok(fold(text)),
    }
}

fn username_problem(text: &str) -> Option<String> {
    let is_allowed = |text: &str| {
        (1..=USERNAME_CHARS_MAX).contains(&text.chars().count())
            && !text.chars().any(is_hidden)
            && text.trim() == text
    };
    // Some characters become several, or a space, when they are folded.
    (!is_allowed(text) || fold(text).trim().is_empty())
        .then(|| format!("expected 1 to {USERNAME_CHARS_MAX} visible characters without spaces around them"))
}

/// Also those that join others: the same name with and without one would look the same.
fn is_hidden(one: char) -> bool {
    is_control(one) || is_invisible(one) || is_joiner(one)
}

fn email_problem(text: &str) -> Option<String> {
    let parts = text.rsplit_once('@').filter(|(local, domain)| !local.is_empty() && !domain.is_empty());
    let has_space = text.chars().any(|one| one.is_whitespace() || is_hidden(one));
    (parts.is_none() || has_space || text.len() > EMAIL_BYTES_MAX)
        .then(|| format!("expected an address such as name@example.org, at most {EMAIL_BYTES_MAX} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_look_alike_are_one() {
        for (one, other) in [
            ("Ann", "ANN"),
            ("straße", "STRASSE"),
            ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
            ("ﬁne", "FINE"),
            ("Ａｎｎ", "ann"),
            ("e\u{301}va", "ÉVA"),
        ] {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        assert_ne!(fold("ann"), fold("anna"));
    }

    #[test]
    fn names_and_addresses_that_are_refused() {
        let long = "x".repeat(USERNAME_CHARS_MAX + 1);
        for name in ["", " ", " ann", "ann ", "a\nb", "a\u{200b}b", &long] {
            assert!(checked(ClaimKind::Username, name).is_err(), "{name:?}");
        }
        let long = format!("a@{}", "x".repeat(EMAIL_BYTES_MAX));
        for address in ["", "@", "a@", "@b", "ab", "a b@c", "a@b\n", &long] {
            assert!(checked(ClaimKind::Email, address).is_err(), "{address:?}");
        }
        assert_eq!(checked(ClaimKind::Email, "Ann@Example.ORG").unwrap(), "ann@example.org");
    }

    /// Each alone, and between letters.
    #[test]
    fn invisible_characters_are_refused() {
        for one in [
            '\0',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{1160}',
            '\u{17b4}',
            '\u{180b}',
            '\u{180e}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{200e}',
            '\u{2028}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{2800}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0100}',
            '\u{e0fff}',
        ] {
            for name in [format!("{one}"), format!("a{one}b")] {
                assert!(checked(ClaimKind::Username, &name).is_err(), "{name:?}");
                assert!(checked(ClaimKind::Email, &format!("{name}@example.org")).is_err(), "{name:?}");
            }
        }
        for name in ["한글", "ᄀ", "a b", "Ⅷ", "ไทย", "עברית"] {
            assert!(checked(ClaimKind::Username, name).is_ok(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn folding_again_changes_nothing(text in ".{0,12}") {
            let folded = fold(&text);
            prop_assert_eq!(fold(&folded), folded);
        }
    }
}
