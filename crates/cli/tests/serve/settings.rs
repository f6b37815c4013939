//! Settings that are refused, and how they are shown.

use super::{emberkeep, run, text};
use emberkeep_testkit::scratch;
use std::process::Command;

#[test]
fn other_machines_are_not_served_without_tokens() {
    let refused = run(&["serve", "--http", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("without tokens"), "{}", text(&refused.stderr));
}

#[test]
fn settings_are_shown_with_their_sources_and_without_secrets() {
    let folder = scratch();
    let file = folder.path().join("emberkeep.toml");
    std::fs::write(&file, "hot = \"redis://:s3cret@127.0.0.1:1/0\"\nlog = \"json\"\n").unwrap();
    let file = file.display().to_string();
    let mut command = emberkeep(&["config", "--config", &file, "--log-level", "debug"]);
    let shown = command.env("EMBERKEEP_LOG", "text").output().unwrap();
    let said = text(&shown.stdout);
    assert!(said.contains(&format!("hot = \"redis://:***@127.0.0.1:1/0\"  # {file}")), "{said}");
    assert!(
        said.contains("log = \"text\"  # variable") && said.contains("log-level = \"debug\"  # flag"),
        "{said}"
    );
    assert!(!said.contains("s3cret"));
    std::fs::write(&file, "htpp = \"127.0.0.1:1\"\n").unwrap();
    let refused = run(&["serve", "--config", &file]);
    assert!(
        text(&refused.stderr).contains("unknown key \"htpp\"; did you mean http?"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn variables_of_others_refuse_nothing_and_empty_ones_hide_nothing() {
    let with = |variables: &[(&str, &str)]| {
        let shown =
            emberkeep(&["config"]).envs(variables.iter().copied()).output().expect("the binary starts");
        (shown.status.success(), text(&shown.stderr))
    };
    let kubernetes = [
        ("EMBERKEEP_SERVICE_HOST", "10.96.3.7"),
        ("EMBERKEEP_SERVICE_PORT", "7777"),
        ("EMBERKEEP_PORT", "tcp://10.96.3.7:7777"),
        ("EMBERKEEP_PORT_7777_TCP", "tcp://10.96.3.7:7777"),
        ("EMBERKEEP_PORT_7777_TCP_ADDR", "10.96.3.7"),
    ];
    assert_eq!(with(&kubernetes), (true, String::new()));
    let (passed, said) = with(&[("EMBERKEEP_TOKEN", "tokens.toml")]);
    assert!(!passed && said.contains("did you mean EMBERKEEP_TOKENS?"), "{said}");
    let (passed, said) = with(&[("EMBERKEEP_TOKENS", "")]);
    assert!(!passed && said.contains("tokens is empty (variable)"), "{said}");
}

#[test]
fn a_store_that_cannot_be_opened_is_named_without_its_password() {
    for hot in [":s3cret@host", "redis://127.0.0.1:1?password=s3cret", "http://joe:s3cret@host"] {
        for command in ["serve", "config"] {
            let ran = run(&[command, "--hot", hot]);
            let said = text(&ran.stdout) + &text(&ran.stderr);
            assert_eq!(ran.status.code(), Some(2), "{said}");
            assert!(!said.is_empty() && !said.contains("s3cret"), "{said}");
        }
    }
}

#[test]
fn a_demo_is_for_a_store_of_its_own_on_this_machine() {
    let folder = scratch();
    let (file, tokens) = (folder.join("emberkeep.toml"), folder.join("tokens.toml").display().to_string());
    std::fs::write(&file, "hot = \"redis://127.0.0.1:1\"\n").unwrap();
    let refused = |mut command: Command| {
        let ran = command.output().expect("the binary starts");
        assert_eq!(ran.status.code(), Some(1));
        text(&ran.stderr)
    };
    let mut by_variable = emberkeep(&["serve", "--demo"]);
    by_variable.env("EMBERKEEP_HOT", "redis://127.0.0.1:1");
    for command in [
        emberkeep(&["serve", "--demo", "--hot", "redis://127.0.0.1:1"]),
        emberkeep(&["serve", "--demo", "--config", &file.display().to_string()]),
        by_variable,
    ] {
        let said = refused(command);
        assert!(said.contains("--demo fills a store of its own"), "{said}");
    }
    run(&["token", "new", "--name", "lobby", "--tokens", &tokens]);
    let said = refused(emberkeep(&["serve", "--demo", "--http", "0.0.0.0:0", "--tokens", &tokens]));
    assert!(said.contains("--demo is for this machine only, and http is 0.0.0.0:0"), "{said}");
}

#[test]
fn an_address_that_cannot_be_had_names_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    for (code, http, expected) in [
        (1, format!("localhost:{port}"), "another process listens there"),
        (1, format!("127.0.0.1:{port}"), "choose another port with --http"),
        (2, format!(":{port}"), "expected an address and a port: 127.0.0.1:7777 for this machine"),
        (2, "game.example:7777".to_owned(), "expected an address and a port"),
        (2, "7777".to_owned(), "0.0.0.0:7777 for every network (needs tokens)"),
    ] {
        let refused = run(&["serve", "--http", &http]);
        let said = text(&refused.stderr);
        assert!(refused.status.code() == Some(code) && said.contains(expected), "{http}: {said}");
    }
}

#[test]
fn every_page_may_call_only_where_tokens_are_asked_for() {
    let refused = run(&["serve", "--http", "127.0.0.1:0", "--origins", "*"]);
    let said = text(&refused.stderr);
    assert!(refused.status.code() == Some(1) && said.contains("configure tokens"), "{said}");
}

#[test]
fn the_rules_in_which_services_differ_are_settings() {
    for (name, value, expected) in [
        ("--poison-rule", "share", "[possible values: value, share-of-max-hp]"),
        ("--reactor-rules", "none,last-state-ends", "expected none, item-reactors-stay, last-state-ends"),
    ] {
        let refused = run(&["serve", "--http", "127.0.0.1:0", name, value]);
        let said = text(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(expected), "{name}: {said}");
    }
    let both = "item-reactors-stay,last-state-ends";
    let server = super::Server::start(&["--poison-rule", "share-of-max-hp", "--reactor-rules", both]);
    assert_eq!(super::status_of(&server, "/readyz", None), 200);
}
