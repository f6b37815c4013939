//! Checks that every test, call and key family that a page of `docs/games` names exists.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
}

/// The source files below a folder.
fn sources(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    files(&root().join(folder), "rs", &mut found);
    found.iter().map(|path| fs::read_to_string(path).expect("a readable file")).collect()
}

/// The tests of all crates: files in `tests` folders, and the test modules of other files.
fn tests() -> Vec<String> {
    let mut found = Vec::new();
    files(&root().join("crates"), "rs", &mut found);
    let part = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("a readable file");
        let of_tests = path.components().any(|part| part.as_os_str() == "tests");
        if of_tests { Some(text) } else { text.split_once("#[cfg(test)]").map(|(_, tests)| tests.to_owned()) }
    };
    found.iter().filter_map(part).collect()
}

/// The identifiers that follow a word in these texts.
fn after(word: &str, texts: &[String]) -> HashSet<String> {
    let name = |rest: &str| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    texts.iter().flat_map(|text| text.split(word).skip(1)).map(name).collect()
}

/// Words in backticks.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    page.split('`').skip(1).step_by(2)
}

/// Whether a word is the name of a call or a test: lower case and underscores.
fn is_function(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The names that a game defines.
struct Game {
    /// Its public functions.
    calls: HashSet<String>,
    /// Fields of its public types, and words of the storage document that are neither calls nor tests.
    words: HashSet<String>,
    /// Functions of all crates, including tests.
    functions: HashSet<String>,
    text: String,
}

impl Game {
    fn new(name: &str) -> Game {
        let (own, all) = (sources(&format!("crates/games/src/{name}")), sources("crates"));
        let mut calls = after("pub fn ", &own);
        calls.extend(after("pub async fn ", &own));
        let mut words = after("    pub ", &own);
        words.insert("null".into());
        // Names of tables, indexes and texts.
        words.extend(["= \"", "index \"", "table \"", "by \""].iter().flat_map(|before| after(before, &own)));
        Game { calls, words, functions: after("fn ", &all), text: own.concat() }
    }

    /// Whether a word of a page exists. A name with three underscores or more is a test.
    fn knows(&self, word: &str) -> bool {
        match word.split_once("::") {
            None if is_function(word) && word.matches('_').count() >= 3 => {
                self.functions.contains(word) || self.words.contains(word)
            }
            None if is_function(word) => {
                self.calls.contains(word) || self.words.contains(word) || self.functions.contains(word)
            }
            // `Service::method` or `Request::field`; a path of modules is not a call.
            Some((of, member)) if of.starts_with(char::is_uppercase) && is_function(member) => {
                let defines = self.text.contains(&format!("pub struct {of}"));
                defines && (self.calls.contains(member) || self.words.contains(member))
            }
            _ => true,
        }
    }
}

fn pages() -> Vec<(String, String)> {
    let mut pages = Vec::new();
    files(&root().join("docs/games"), "md", &mut pages);
    assert!(!pages.is_empty(), "the pages were found");
    let named = |path: &PathBuf| {
        let name = path.file_stem().expect("a page has a name").to_string_lossy().into_owned();
        (name, fs::read_to_string(path).expect("a readable page"))
    };
    pages.iter().map(named).collect()
}

#[test]
fn every_test_and_every_call_that_a_page_names_exists() {
    for (name, text) in pages() {
        let game = Game::new(&name);
        assert!(
            quoted(&text).filter(|word| is_function(word)).count() > 20,
            "{name}.md names tests and calls"
        );
        let missing: Vec<_> = quoted(&text).filter(|word| !game.knows(word)).collect();
        assert!(missing.is_empty(), "{name}.md names what does not exist: {missing:#?}");
    }
}

/// The last column of a table with the head `test` contains nothing but tests.
#[test]
fn the_column_of_tests_contains_only_tests() {
    let tests = after("fn ", &tests());
    for (name, text) in pages() {
        let mut in_tests = false;
        for row in text.lines() {
            in_tests = if row.starts_with('|') { in_tests || row.ends_with("| test |") } else { false };
            let Some(cell) = row.trim_end_matches('|').rsplit('|').next().filter(|_| in_tests) else {
                continue;
            };
            for word in quoted(cell).filter(|word| is_function(word)) {
                assert!(
                    tests.contains(word),
                    "{name}.md: {word} is in the column of tests, but is not a test"
                );
            }
        }
    }
}

/// Key families are named by their constants.
#[test]
fn every_family_that_a_page_names_exists() {
    for (name, text) in pages() {
        let game = Game::new(&name);
        let mut named = 0;
        for after in text.split("family `").skip(1) {
            let family = after.split('`').next().unwrap_or(after);
            assert!(game.text.contains(&format!("pub {family} = \"")), "{name}.md: no family {family}");
            named += 1;
        }
        assert!(named > 0 || !game.text.contains("family! {"), "{name}.md names families");
    }
}
