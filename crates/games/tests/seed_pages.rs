//! The pages of `docs/seeds` name tests and calls: each of them must exist.

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

/// Names of all functions of the project.
fn functions() -> HashSet<String> {
    let mut sources = Vec::new();
    files(&root().join("crates"), "rs", &mut sources);
    let mut names = HashSet::new();
    for source in sources {
        let text = fs::read_to_string(&source).expect("a readable file");
        for after in text.split("fn ").skip(1) {
            names.insert(after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    names
}

/// Words in backticks that look like the name of a test: small letters and at least three underscores.
fn named(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    quoted.filter(|word| word.chars().all(plain) && word.matches('_').count() >= 3).collect()
}

#[test]
fn every_test_that_a_page_names_exists() {
    let (functions, mut pages) = (functions(), Vec::new());
    files(&root().join("docs/seeds"), "md", &mut pages);
    assert!(!pages.is_empty(), "the pages were found");
    for page in pages {
        let text = fs::read_to_string(&page).expect("a readable page");
        let names = named(&text);
        assert!(!names.is_empty(), "{} names no test", page.display());
        let missing: Vec<_> = names.iter().filter(|name| !functions.contains(**name)).collect();
        assert!(missing.is_empty(), "{} names what is not there: {missing:#?}", page.display());
    }
}
