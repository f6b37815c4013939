//! `emberkeep repair` as its users run it: on folders that a demo has filled and an accident has damaged.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn emberkeep(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_emberkeep"));
    command
        .args(arguments)
        .env_remove("EMBERKEEP_HOT")
        .env_remove("EMBERKEEP_DATA")
        .env_remove("EMBERKEEP_HISTORY")
        .stdin(Stdio::null());
    command.output().expect("the binary starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn demo(data: &str) -> Output {
    emberkeep(&["demo", "--for", "200ms", "--players", "2", "--monsters", "5", "--keep", "--data", data])
}

/// A demo that must succeed.
fn played(data: &str) {
    let output = demo(data);
    assert!(output.status.success(), "{}", said(&output));
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.file_name() != "lock")
        .map(|entry| {
            (entry.file_name().into_string().expect("a name"), fs::read(entry.path()).expect("a file"))
        })
        .collect();
    found.sort();
    found
}

#[test]
fn a_folder_that_does_not_exist_is_named() {
    let refused = emberkeep(&["repair", "--data", "/nonexistent/data"]);
    let expected =
        "/nonexistent/data has no folder appendonlydir, expected the folder that `serve --data` was given";
    assert!(!refused.status.success() && said(&refused).contains(expected), "{}", said(&refused));
}

#[test]
fn history_beside_another_store_is_repaired_by_itself() {
    let scratch = emberkeep_testkit::scratch();
    let missing = format!("file:{}", scratch.join("missing").display());
    let refused = emberkeep(&["repair", "--history", &missing]);
    assert!(!refused.status.success() && said(&refused).contains("there is no folder"), "{}", said(&refused));
    assert!(!scratch.join("missing").exists(), "a repair makes no folder");
    std::fs::create_dir(scratch.join("history")).expect("a folder");
    let repaired =
        emberkeep(&["repair", "--history", &format!("file:{}", scratch.join("history").display())]);
    assert!(repaired.status.success(), "{}", said(&repaired));
    assert_eq!(said(&repaired), "History is sound.\n");
    let nothing = emberkeep(&["repair"]);
    assert_eq!(nothing.status.code(), Some(2), "{}", said(&nothing));
}

#[test]
fn a_damaged_folder_is_refused_with_a_remedy_that_works() {
    let scratch = emberkeep_testkit::scratch();
    let (data, folder) = (scratch.path().to_str().expect("plain"), scratch.join("appendonlydir"));
    played(data);
    let sound = emberkeep(&["repair", "--data", data]);
    assert!(sound.status.success() && said(&sound).contains("is sound"), "{}", said(&sound));
    // In the middle of the last increment.
    let name =
        files(&folder).into_iter().rfind(|(name, _)| name.ends_with(".incr.aof")).expect("an increment").0;
    let mut bytes = fs::read(folder.join(&name)).expect("the increment");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 20].fill(b'?');
    fs::write(folder.join(&name), bytes).expect("written");
    let before = files(&folder);
    let refused = demo(data);
    assert!(
        !refused.status.success() && said(&refused).contains("emberkeep repair --data"),
        "{}",
        said(&refused)
    );
    let asked = emberkeep(&["repair", "--data", data]);
    assert!(!asked.status.success() && said(&asked).contains("nothing was changed"), "{}", said(&asked));
    assert!(files(&folder) == before, "looking changes nothing");
    let repaired = emberkeep(&["repair", "--yes", "--data", data]);
    assert!(repaired.status.success(), "{}", said(&repaired));
    assert!(
        said(&repaired).contains(&format!("set aside: appendonlydir/{name}.damaged")),
        "{}",
        said(&repaired)
    );
    let again = emberkeep(&["repair", "--data", data]);
    assert!(again.status.success() && said(&again).contains("is sound"), "{}", said(&again));
}

#[test]
fn an_emptied_manifest_is_made_anew_and_nothing_is_lost() {
    let scratch = emberkeep_testkit::scratch();
    let (data, folder) = (scratch.path().to_str().expect("plain"), scratch.join("appendonlydir"));
    played(data);
    let before = said(&emberkeep(&["repair", "--data", data]));
    fs::write(folder.join("appendonly.aof.manifest"), "").expect("emptied");
    let refused = demo(data);
    assert!(said(&refused).contains("it names no file"), "{}", said(&refused));
    let repaired = emberkeep(&["repair", "--yes", "--data", data]);
    assert!(said(&repaired).contains(before.trim()), "{before} then {}", said(&repaired));
    played(data);
}

#[test]
fn a_folder_that_is_not_there_is_not_made() {
    let scratch = emberkeep_testkit::scratch();
    let missing = scratch.join("missing");
    assert!(!emberkeep(&["repair", "--data", missing.to_str().expect("plain")]).status.success());
    assert!(!missing.exists());
}

#[cfg(unix)]
#[test]
fn the_files_of_a_store_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = emberkeep_testkit::scratch();
    let data = scratch.join("data");
    assert!(demo(data.to_str().expect("plain")).status.success());
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&data), mode(&data.join("appendonlydir"))), (0o700, 0o700));
    for file in fs::read_dir(data.join("appendonlydir")).expect("a folder") {
        let path = file.expect("an entry").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}
