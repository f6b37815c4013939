//! Named constants of a script, replaced by their numbers before the server gets it.
//!
//! Lua has no constants: every call of a script would assign them again, and every function would look them up.

use std::collections::BTreeMap;

/// The script without comments and blank lines, with each constant replaced by its number.
pub(super) fn inline_constants(script: &str) -> String {
    let constants = constants(script);
    let code = script.lines().filter(|line| !line.trim_start().starts_with("--") && !line.trim().is_empty());
    let mut out = String::with_capacity(script.len());
    for line in code.filter(|line| declared(line).is_none()) {
        replace_words(line, &constants, &mut out);
        out.push('\n');
    }
    out
}

/// The constants of a script: lines such as `local NAME, OTHER = 1, 2`.
pub(super) fn constants(script: &str) -> BTreeMap<&str, i64> {
    script.lines().filter_map(declared).flatten().collect()
}

/// The constants that a line declares, or `None` if it is any other line.
fn declared(line: &str) -> Option<Vec<(&str, i64)>> {
    let (names, values) = line.strip_prefix("local ")?.split_once(" = ")?;
    let is_constant = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let values: Vec<i64> = values.split(", ").map(|value| value.parse().ok()).collect::<Option<_>>()?;
    let names: Vec<&str> = names.split(", ").collect();
    (names.len() == values.len() && names.iter().all(|name| is_constant(name)))
        .then(|| names.into_iter().zip(values).collect())
}

fn replace_words(line: &str, constants: &BTreeMap<&str, i64>, out: &mut String) {
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let same = |c: char| is_word(c) == is_word(first);
        let (piece, after) = rest.split_at(rest.find(|c| !same(c)).unwrap_or(rest.len()));
        match constants.get(piece) {
            Some(value) => out.push_str(&value.to_string()),
            None => out.push_str(piece),
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_become_numbers() {
        let script = "-- A comment.\nlocal ARG_A, ARG_B = 1, 2\nlocal n = 5\n\nreturn ARGV[ARG_A] .. MY_ARG_B .. ARG_B\n";
        assert_eq!(inline_constants(script), "local n = 5\nreturn ARGV[1] .. MY_ARG_B .. 2\n");
    }

    #[test]
    fn no_name_of_a_constant_is_left_in_a_script() {
        for script in [include_str!("commit.lua"), include_str!("compare_and_set.lua")] {
            let (names, inlined) = (constants(script), inline_constants(script));
            assert!(names.len() > 20, "the constants were found");
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            assert!(inlined.split(|c| !is_word(c)).all(|word| !names.contains_key(word)));
        }
    }
}
