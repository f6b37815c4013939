//! The binary as its users run it.

use std::process::{Command, Output};

fn emberkeep(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_emberkeep"))
        .args(arguments)
        .env_remove("EMBERKEEP_HOT")
        .env_remove("EMBERKEEP_DATA")
        .output()
        .expect("the binary starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Exit code and what was said on standard error.
fn refused(arguments: &[&str]) -> (i32, String) {
    let output = emberkeep(arguments);
    (output.status.code().expect("it was not killed"), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_demo_in_memory_holds_its_invariants() {
    let output = emberkeep(&["demo", "--for", "1s", "--players", "8", "--monsters", "50"]);
    let said = out(&output);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.starts_with("8 players hit 50 monsters on "), "{said}");
    assert!(said.lines().last().is_some_and(|line| line == "invariants held"), "{said}");
    assert!(said.contains("hits/s") && !said.contains('\x1b'), "a log, not a screen: {said}");
}

#[test]
fn a_demo_on_a_folder_that_was_used_before_is_exact_too() {
    let folder = std::env::temp_dir().join(format!("emberkeep-demo-test-{}", std::process::id()));
    let data = folder.to_str().expect("a temporary folder has a plain name");
    let length = ["demo", "--for", "300ms", "--players", "4", "--monsters", "20", "--data", data];
    for keep in [true, false] {
        let arguments = if keep { [&length[..], &["--keep"]].concat() } else { length.to_vec() };
        let output = emberkeep(&arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(out(&output).ends_with("invariants held\n"));
    }
    std::fs::remove_dir_all(&folder).expect("the folder was made by the demo");
}

#[test]
fn a_demo_is_as_durable_as_asked() {
    for when in ["always", "everysec", "no"] {
        let folder = std::env::temp_dir().join(format!("emberkeep-durability-{when}-{}", std::process::id()));
        let data = folder.to_str().expect("a temporary folder has a plain name");
        let short = ["demo", "--for", "300ms", "--players", "4", "--monsters", "20"];
        let output = emberkeep(&[&short[..], &["--data", data, "--durability", when]].concat());
        std::fs::remove_dir_all(&folder).expect("the folder was made by the demo");
        assert!(output.status.success(), "{when}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(out(&output).ends_with("invariants held\n"), "{when}");
    }
}

#[test]
fn a_demo_with_many_on_one_monster_holds_its_invariants() {
    let output = emberkeep(&["demo", "--for", "300ms", "--players", "32", "--monsters", "1"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(unix)]
#[test]
fn a_demo_that_is_interrupted_still_checks() {
    use std::io::{BufRead, BufReader, Read};
    let mut demo = Command::new(env!("CARGO_BIN_EXE_emberkeep"));
    let demo = demo.args(["demo", "--for", "60s", "--players", "2", "--monsters", "9"]);
    let mut demo = demo.stdout(std::process::Stdio::piped()).spawn().expect("the binary starts");
    let mut lines = BufReader::new(demo.stdout.take().expect("it is piped"));
    let mut said = String::new();
    lines.read_line(&mut said).expect("the game is announced");
    assert!(said.starts_with("2 players hit 9 monsters on "), "{said}");
    let interrupt = Command::new("kill").args(["-INT", &demo.id().to_string()]).status();
    assert!(interrupt.expect("kill is there").success());
    lines.read_to_string(&mut said).expect("it speaks until its end");
    assert!(demo.wait().expect("it ends").success(), "{said}");
    assert!(said.ends_with("invariants held\n"), "{said}");
}

#[test]
fn the_schema_as_json_names_every_family() {
    let output = emberkeep(&["schema", "keys", "--format", "json", "--layout", "cluster", "--prefix", "eu:"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let families = json["families"].as_array().expect("there is a list");
    let monster =
        families.iter().find(|family| family["family"] == "MONSTER").expect("monsters are declared");
    assert_eq!(monster["key"], "eu:{<tenantId>}atlas:monster:<tenantId>:<uniqueId>");
}

#[test]
fn the_schema_as_a_table_shows_keys_and_types() {
    let said = out(&emberkeep(&["schema", "keys"]));
    assert!(said.contains("atlas:monster-ids:<tenantId>:free"), "{said}");
    assert!(said.contains("list"), "{said}");
}

#[test]
fn the_page_of_keys_is_current() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/keys.md");
    let written = std::fs::read_to_string(page).expect("docs/keys.md is there");
    let made = out(&emberkeep(&["schema", "keys", "--format", "markdown"]));
    assert!(
        written == made,
        "docs/keys.md is not what the declarations say; run: cargo run -q -p emberkeep-cli -- schema keys --format markdown > docs/keys.md"
    );
}

#[test]
fn the_page_of_tables_is_current() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tables.md");
    let written = std::fs::read_to_string(page).expect("docs/tables.md is there");
    let made = out(&emberkeep(&["schema", "tables"]));
    assert!(
        written == made,
        "docs/tables.md is not what the declarations say; run: cargo run -q -p emberkeep-cli -- schema tables > docs/tables.md"
    );
}

#[cfg(not(feature = "cql"))]
#[test]
fn a_binary_without_cql_says_how_to_get_it() {
    for command in ["cql", "diff", "apply"] {
        let refused = emberkeep(&["schema", command, "--history", "cql://host/darkages"]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains("cargo build --release --features cql"), "{said}");
    }
}

#[cfg(feature = "cql")]
#[test]
fn both_keyspaces_of_the_document_can_be_printed() {
    let said = out(&emberkeep(&["schema", "cql"]));
    assert!(said.starts_with("CREATE KEYSPACE IF NOT EXISTS darkages\nWITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 3};"), "{said}");
    assert!(said.contains("PRIMARY KEY ((day_bucket), timestamp, event_id)"), "{said}");
    let scaled =
        ["schema", "cql", "--layout", "scaled", "--keyspace", "darkages_dev", "--replication", "simple:1"];
    let said = out(&emberkeep(&scaled));
    assert!(
        said.contains("KEYSPACE IF NOT EXISTS darkages_dev\nWITH replication = {'class': 'SimpleStrategy'"),
        "{said}"
    );
    assert!(
        said.contains("PRIMARY KEY ((day_bucket, ember_bucket, ember_slice), timestamp, event_id)"),
        "{said}"
    );
    assert!(said.contains("CREATE TABLE IF NOT EXISTS ember_slices ("), "{said}");
}

#[test]
fn a_mistake_on_the_command_line_is_explained() {
    let cases: [(&[&str], &str); 13] = [
        (&["demo", "--for", "30"], "such as 500ms, 30s, 2m or 1h"),
        (&["demo", "--players", "0"], "0 is not in 1..=100000"),
        (&["demo", "--plaiers", "3"], "--players"),
        (&["schema", "keys", "--format", "xml"], "possible values: table, markdown, json"),
        (
            &["demo", "--hot", "postgres"],
            "expected embedded, or the URL of a store such as redis://127.0.0.1:6379/0: the URL has no scheme",
        ),
        (&["demo", "--hot", "file:"], "names no folder"),
        (&["demo", "--hot", "file:x?durabilty=no"], "file: understands durability= and prefix="),
        (&["demo", "--hot", "memory:", "--data", "x"], "leave one of them out"),
        (&["demo", "--hot", "redis://127.0.0.1:1", "--data", "x"], "leave it out"),
        (&["demo", "--durability", "always"], "name one with --data"),
        (&["demo", "--durability", "often", "--data", "x"], "possible values: always, everysec, no"),
        (&["demo", "--hot", "redis://127.0.0.1:1", "--durability", "no"], "a server has its own settings"),
        (&["schema", "keys", "--prefix", "{"], "the key prefix holds '{'"),
    ];
    for (arguments, expected) in cases {
        let (code, said) = refused(arguments);
        assert!(code != 0 && said.contains(expected), "{arguments:?} exits {code} and says: {said}");
    }
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let (code, said) = refused(&["demo", "--hot", "redis://127.0.0.1:1"]);
    assert!(code == 1 && said.contains("127.0.0.1:1") && said.contains("cannot open the store"), "{said}");
}

#[test]
fn help_tells_what_there_is() {
    let said = out(&emberkeep(&["--help"]));
    assert!(said.starts_with("The state layer for multiplayer games"), "{said}");
    assert!(said.contains("demo") && said.contains("schema"), "{said}");
    let said = out(&emberkeep(&["demo", "--help"]));
    for word in [
        "--for",
        "--hot",
        "--data",
        "--durability",
        "everysec",
        "--players",
        "--monsters",
        "redis+cluster://",
    ] {
        assert!(said.contains(word), "{word} is missing: {said}");
    }
}

/// Every setting with its variable, as `emberkeep config` knows them.
#[test]
fn the_operators_page_names_every_setting() {
    let page = include_str!("../../../docs/operating.md");
    let shown = out(&emberkeep(&["config"]));
    let words =
        shown.lines().map(|line| line.trim_start_matches("# ").split([' ', '=']).next().unwrap_or(""));
    let settings: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    assert!(settings.len() > 15, "{shown}");
    for setting in settings {
        let variable = format!("EMBERKEEP_{}", setting.to_uppercase().replace('-', "_"));
        let row = format!("| `--{setting}` | `{variable}` |");
        assert!(page.contains(&row), "docs/operating.md lacks the row {row}");
    }
}
