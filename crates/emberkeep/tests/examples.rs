//! The examples run, and the README shows the first of them as it is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

fn names() -> BTreeSet<String> {
    let files = std::fs::read_dir(folder()).expect("the folder of examples");
    files
        .map(|file| file.expect("an entry").path())
        .filter(|path| path.is_dir() || path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect()
}

/// Runs an example and gives what it printed. Cargo builds examples before it runs any test, beside this one's folder.
fn output_of(name: &str) -> String {
    let test = std::env::current_exe().expect("a test is a program");
    let program =
        test.parent().and_then(Path::parent).expect("target/debug/deps").join("examples").join(name);
    assert!(
        program.exists(),
        "{name} is not built; run `cargo test -p emberkeep`, which builds the examples"
    );
    let ran = Command::new(program).output().expect("a program that starts");
    let (said, wrong) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{name} failed: {said}{wrong}");
    said.into_owned()
}

#[test]
fn every_example_runs_and_says_something() {
    let names = names();
    assert!(names.len() >= 6, "{names:?}");
    for name in names {
        assert!(!output_of(&name).is_empty(), "{name} prints nothing");
    }
}

/// The text between the fences of the block that begins with `start`.
fn block<'a>(page: &'a str, fence: &str, start: &str) -> &'a str {
    let begin = page.find(&format!("```{fence}\n{start}")).unwrap_or_else(|| panic!("no block {start:?}"));
    let block = &page[begin + fence.len() + "```\n".len()..];
    &block[..block.find("```").expect("the block ends")]
}

#[test]
fn the_readme_shows_the_boss_and_what_it_prints() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md"));
    let readme = readme.expect("README.md is there");
    let source = std::fs::read_to_string(folder().join("boss.rs")).expect("the example is there");
    let code: String = source
        .lines()
        .skip_while(|line| line.starts_with("//!") || line.is_empty())
        .fold(String::new(), |code, line| code + line + "\n");
    assert_eq!(block(&readme, "rust", "use emberkeep::prelude"), code, "README.md is not examples/boss.rs");
    assert_eq!(block(&readme, "text", "ann killed"), output_of("boss"));
}
