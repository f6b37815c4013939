//! Common mistakes on the command line, and the advice that users get.

use super::{Server, emberkeep, run, text};
use emberkeep_testkit::{RedisServer, require, scratch, shared_redis};
use std::process::Output;

/// Exit code, and what was printed on standard error.
fn refused(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), text(&output.stderr))
}

#[test]
fn other_servers_names_of_a_setting_lead_to_ours() {
    for (flag, meant) in [("--port", "--http"), ("--redis-url", "--hot"), ("--dir", "--data")] {
        let (code, said) = refused(&run(&["serve", flag, "7777"]));
        assert!(code == Some(2) && said.contains(&format!("'{meant}'")), "{flag}: {said}");
        assert!(!said.contains("Usage: "), "usage names the flag that clap would have suggested: {said}");
    }
    let (code, said) = refused(&emberkeep(&["serve"]).env("EMBERKEEP_PORT", "7777").output().unwrap());
    assert!(code == Some(1) && said.contains("did you mean EMBERKEEP_HTTP?"), "{said}");
}

#[test]
fn a_wrong_value_is_refused_by_flag_by_variable_and_by_config() {
    for (name, value, expected) in [
        ("http", "game.example:7777", "expected an address and a port"),
        ("memory-max", "lots", "expected a size such as 512MiB"),
        ("connections-max", "0", "expected a number of connections from 1 on"),
        ("rooms-per-second", "many", "expected a number of rooms"),
        ("log-level", "silly", "debug"),
        ("durability", "often", "everysec"),
        ("hot", "nonsense", "the URL of a store such as redis://127.0.0.1:6379/0"),
        ("hot", "redis://127.0.0.1:1?wiat=1", "the option wiat is not known"),
        ("history", "file:", "the URL of history such as file:DIR or cql://host/keyspace"),
        ("origins", "game.example", "such as https://play.example:8443"),
        ("ws-origins", "https://a.example,b.example", "\"b.example\" is not an origin"),
        ("trusted-proxies", "10.0.0.0/33", "expected for example 10.0.0.7"),
    ] {
        for command in ["serve", "config"] {
            let (code, said) = refused(&run(&[command, &format!("--{name}"), value]));
            assert!(code == Some(2) && said.contains(expected), "{command} {name}: {said}");
            assert!(said.contains(&format!("for '--{name} <")), "the flag is named: {said}");
            let variable = format!("EMBERKEEP_{}", name.to_uppercase().replace('-', "_"));
            let (code, said) = refused(&emberkeep(&[command]).env(variable, value).output().unwrap());
            assert!(code == Some(1) && said.contains(expected), "{command} {name}: {said}");
            let shown = value.replace("wiat=1", "wiat=***");
            assert!(said.contains(&format!("{name} is {shown:?} (variable)")), "{command} {name}: {said}");
        }
    }
}

#[test]
fn config_refuses_what_serve_would_refuse() {
    for (arguments, expected) in [
        (&["--tls-key", "only.pem"][..], "without tls-certificate"),
        (&["--hot", "redis://127.0.0.1:1", "--data", "x"], "leave it out"),
        (&["--durability", "always"], "name one with --data"),
        (&["--http", "0.0.0.0:0"], "refusing to listen on 0.0.0.0:0 without tokens"),
        (&["--origins", "*"], "refusing origins * without tokens"),
        (&["--tokens", "/no/such/tokens.toml"], "/no/such/tokens.toml"),
        (&["--tls-certificate", "/no/cert.pem", "--tls-key", "/no/key.pem"], "cannot use the certificate"),
    ] {
        let ran = run(&[&["config"], arguments].concat());
        let (code, said) = refused(&ran);
        assert!(code == Some(1) && said.contains(expected), "{arguments:?}: {said}");
        assert!(text(&ran.stdout).contains("log-level = \"info\""), "the settings are shown all the same");
        // The log of `serve` may come before it.
        let (of_serve, reason) = refused(&run(&[&["serve"], arguments].concat()));
        assert!(of_serve == code && reason.ends_with(&said), "{arguments:?}: {reason}");
    }
    assert!(run(&["config", "--http", "localhost:7777"]).status.success());
}

#[test]
fn a_password_in_the_wrong_place_is_not_shown() {
    for (flag, value) in [
        ("--http", "redis://joe:s3cret@host:1"),
        ("--hot", "postgres://joe:s3cret@host"),
        ("--hot", "redis://joe:s3cret@host:no"),
        ("--hot", "redis://joe:s3cret"),
        ("--hot", "redis:s3cret"),
        ("--hot", "redis://host:1?password=s3cret"),
        ("--hot", "redis://joe:s3?cret@host"),
        ("--history", "mysql://joe:s3cret@host/game"),
        ("--history", "file:history?password=s3cret"),
        ("--origins", "https://joe:s3cret@game.example/"),
    ] {
        for command in ["serve", "config"] {
            let (code, said) = refused(&run(&[command, flag, value]));
            assert!(code == Some(2) && said.contains(flag) && said.contains("expected"), "{value}: {said}");
            assert!(!said.contains("s3cret") && !said.contains("cret@"), "{value}: {said}");
            let variable = format!("EMBERKEEP_{}", flag.trim_start_matches('-').to_uppercase());
            let (code, said) = refused(&emberkeep(&[command]).env(variable, value).output().unwrap());
            assert!(
                code == Some(1) && !said.contains("s3cret") && !said.contains("cret@"),
                "{value}: {said}"
            );
        }
    }
    for arguments in
        [&["demo", "--hot", "redis://joe:s3cret"][..], &["history", "lag", "--history", "cql:s3cret"]]
    {
        let (code, said) = refused(&run(arguments));
        assert!(code == Some(2) && !said.contains("s3cret"), "{said}");
    }
}

#[test]
fn a_data_folder_that_is_a_file_is_named() {
    let folder = scratch();
    let file = folder.join("data").display().to_string();
    std::fs::write(&file, "not a folder").unwrap();
    for command in ["serve", "demo", "config"] {
        let (code, said) = refused(&run(&[command, "--data", &file]));
        let expected = format!("--data is {file}, which is a file; name a folder");
        assert!(code == Some(1) && said.contains(&expected), "{command}: {said}");
    }
}

#[test]
fn an_http_port_is_not_redis() {
    let server = Server::start(&[]);
    let (code, said) = refused(&run(&["demo", "--hot", &format!("redis://{}", server.address)]));
    assert!(code == Some(1) && said.contains("an HTTP server answers there, not Redis"), "{said}");
}

#[test]
fn a_plain_redis_is_neither_a_cluster_nor_tls() {
    let Some(server) = shared_redis() else { return };
    for (scheme, expected) in [
        ("redis+cluster", "write redis:// instead of redis+cluster://"),
        ("rediss", "write redis:// instead of rediss://"),
    ] {
        let (code, said) = refused(&run(&["demo", "--hot", &format!("{scheme}://{}", server.address())]));
        assert!(code == Some(1) && said.contains(expected), "{scheme}: {said}");
    }
}

#[test]
fn help_names_every_variable_and_the_options_of_a_url() {
    let (serve, config) = (text(&run(&["serve", "--help"]).stdout), text(&run(&["config"]).stdout));
    let names =
        config.lines().map(|line| line.trim_start_matches("# ").split(' ').next().unwrap_or_default());
    for name in names {
        let variable = format!("[env: EMBERKEEP_{}]", name.to_uppercase().replace('-', "_"));
        assert!(serve.contains(&variable), "{variable} is missing: {serve}");
    }
    for command in ["serve", "config", "demo"] {
        let help = text(&run(&[command, "--help"]).stdout);
        for word in
            ["rediss://", "redis+cluster://", "wait=1", "ca=/path/ca.pem", "prefix=eu:", "EMBERKEEP_HOT"]
        {
            assert!(help.contains(word), "{command}: {word} is missing: {help}");
        }
    }
}

#[test]
fn completions_know_commands_and_flags() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&run(&["completions", shell]).stdout);
        for word in ["serve", "demo", "repair", "memory-max", "everysec"] {
            assert!(script.contains(word), "{shell}: {word} is missing");
        }
    }
}

#[test]
fn a_service_that_no_game_declares_is_named() {
    let token =
        ["token", "new", "--name", "lobby", "--tokens", "/nowhere/tokens.toml", "--service", "nowhere"];
    for arguments in [&["schema", "acl", "--service", "nowhere"][..], &token] {
        let refused = run(arguments);
        assert_eq!(refused.status.code(), Some(2));
        let said = text(&refused.stderr);
        assert!(said.contains("no service is named \"nowhere\"; declared are: physics,"), "{said}");
    }
    let lines = text(&run(&["schema", "acl", "--services"]).stdout);
    assert!(lines.lines().all(|line| line.starts_with('#') || line.starts_with("user ")), "{lines}");
    assert!(lines.contains("user tick-engine on "), "{lines}");
}

#[test]
fn the_acl_line_is_enough_for_the_demo_and_for_rooms() {
    let line = text(&run(&["schema", "acl"]).stdout).replace("PASSWORD", "s3cret");
    let options = RedisServer::options().acl("user default on nopass ~* &* +@all").acl(line.trim_end());
    let Some(redis) = require(options.start()) else { return };
    let url = format!("redis://emberkeep:s3cret@{}/0", redis.address());
    let ran = run(&["demo", "--for", "1s", "--players", "8", "--monsters", "60", "--hot", &url]);
    assert!(ran.status.success(), "{}{}", text(&ran.stdout), text(&ran.stderr));
    let server = Server::start(&["--hot", &url]);
    let created = super::request(&server, "POST /room");
    assert!(created.starts_with("HTTP/1.1 201"), "{created}");
    let denied = redis.client().call(&["ACL", "LOG"]);
    // Newer clients name themselves where they may, and go on where they may not.
    let needed = denied.items().iter().filter(|entry| !format!("{entry:?}").contains("setinfo")).count();
    assert_eq!(needed, 0, "{denied:?}");
}
