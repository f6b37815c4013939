//! The house rules that a machine can check: layers, headers, bans. Each message says what to do instead.

use std::fs;
use std::path::{Path, PathBuf};

/// Which of our crates a crate may depend on. The order is the architecture.
const LAYERS: &[(&str, &[&str])] = &[
    ("schema", &[]),
    ("hot", &["schema"]),
    ("hot-redis", &["hot", "schema"]),
    ("primitives", &["hot", "schema"]),
    ("games", &["hot", "schema", "primitives"]),
    ("server", &["games", "hot", "schema"]),
    ("sim", &[]),
    ("cli", &["server", "sim"]),
    ("bench", &["server", "testkit"]),
    ("testkit", &[]),
];

/// Text that library code must not contain, and what to write instead. Tests and the binary are free.
const BANS: &[(&str, &str)] = &[
    (".unwrap()", "`expect` that says why it holds, or an error"),
    ("println!", "`tracing`, or a return value"),
    ("todo!", "the code"),
    ("unimplemented!", "the code"),
    ("dbg!", "nothing"),
    ("SystemTime::now", "the engine's clock (`embedded/clock.rs` is the one place that asks the system)"),
];

/// Production lines that a file may have.
const FILE_LINES_MAX: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn library_sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in ["schema", "hot", "hot-redis", "primitives", "games", "emberkeep", "server"] {
        sources(&root().join("crates").join(name).join("src"), &mut found);
    }
    // Folders and files of tests may do as they like.
    found.retain(|path| !path.components().any(|part| part.as_os_str() == "tests"));
    found.retain(|path| path.file_name().is_none_or(|name| name != "tests.rs"));
    assert!(found.len() > 50, "the sources were found");
    found
}

/// The text before the tests of a file, without comments.
fn production(text: &str) -> String {
    let code = text.split("#[cfg(test)]").next().unwrap_or(text);
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[test]
fn crates_depend_only_on_the_layers_below() {
    for (name, allowed) in LAYERS {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml"));
        let manifest = manifest.expect("every crate has a manifest");
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or("");
        let dependencies = dependencies.split("\n[").next().unwrap_or("");
        for line in dependencies.lines().filter_map(|line| line.strip_prefix("emberkeep-")) {
            let used = line.split(['.', ' ', '=']).next().unwrap_or("");
            assert!(
                allowed.contains(&used),
                "crate {name} must not depend on {used}; it may use {allowed:?}"
            );
        }
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    let mut all = Vec::new();
    sources(&root().join("crates"), &mut all);
    for path in all {
        // Cases of the compiler's messages are as short as a user's mistake.
        if path.components().any(|part| part.as_os_str() == "ui") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a readable file");
        assert!(text.starts_with("//!"), "{} begins with `//!` and a sentence", path.display());
    }
}

#[test]
fn library_code_keeps_the_bans() {
    for path in library_sources() {
        let code = production(&fs::read_to_string(&path).expect("a readable file"));
        for (banned, instead) in BANS {
            let exempt = *banned == "SystemTime::now" && path.ends_with("embedded/clock.rs");
            assert!(exempt || !code.contains(banned), "{} uses {banned}: write {instead}", path.display());
        }
    }
}

#[test]
fn files_stay_readable() {
    for path in library_sources() {
        let lines = production(&fs::read_to_string(&path).expect("a readable file")).lines().count();
        assert!(
            lines <= FILE_LINES_MAX,
            "{} has {lines} lines of code: give its parts their own files",
            path.display()
        );
    }
}
