//! The start page and the protocol page.

use crate::support::{Server, loopback};
use emberkeep_testkit::{open_page, require};
use std::collections::BTreeSet;

#[tokio::test]
async fn the_start_page_links_to_everything_and_loads_nothing_from_elsewhere() {
    let server = Server::open().await;
    server.listening.add_home_link("Demo <room>", "/v1/rooms/AB23CD?a=\"b\"");
    let page = server.get("/").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let text = page.text();
    assert!(
        text.contains("Demo &lt;room>") && text.contains("\"/v1/rooms/AB23CD?a=&quot;b&quot;\""),
        "{text}"
    );
    assert!(
        text.contains("prefers-color-scheme: dark") && !text.contains("https://") && !text.contains("{{")
    );
    for link in text.split("href=\"/").skip(1).filter_map(|rest| rest.split('"').next()) {
        let answer = server.get(&format!("/{}", link.split('?').next().unwrap_or_default())).await;
        assert!(answer.status == 200 || link.starts_with("v1/rooms"), "/{link}: {}", answer.status);
    }
    let metrics = server.get("/metrics").await.text();
    for metric in text.split('"').filter(|word| word.starts_with("emberkeep_")) {
        let sample = |line: &str| line.strip_prefix(metric).is_some_and(|rest| rest.starts_with([' ', '{']));
        assert!(metrics.lines().any(sample), "{metric} is not in the metrics");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_counters_are_live() {
    let server = Server::open().await;
    let url = format!("http://{}/", server.address());
    let opened = tokio::task::spawn_blocking(move || open_page(&url)).await.expect("no panic");
    let Some(page) = require(opened) else { return };
    assert!(page.dom.contains("Updated every two seconds."), "{}", page.dom);
}

#[tokio::test]
async fn the_protocol_page_is_the_one_of_the_documentation() {
    let page = Server::open().await.get("/protocol").await;
    assert_eq!(page.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(page.text(), include_str!("../../../../docs/party-protocol.md"));
    let page = Server::open().await.get("/protocol/galaxy").await;
    assert_eq!(page.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(page.text(), include_str!("../../../../docs/galaxy-protocol.md"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operators_page_names_every_metric() {
    let page = include_str!("../../../../docs/operating.md");
    let metrics = Server::with_history(loopback()).await.get("/metrics").await.text();
    let names: Vec<_> =
        metrics.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next()).collect();
    assert!(names.len() > 20, "{metrics}");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "docs/operating.md does not say what {name} means");
    }
}

#[tokio::test]
async fn the_operators_page_says_what_to_do_about_every_error() {
    let page = include_str!("../../../../docs/operating.md");
    let (_, section) = page.split_once("## Errors and what to do").expect("the section of errors");
    let (tables, _) = section.split_once("At start:").expect("the errors of calls come first");
    let cells = tables.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let documented: BTreeSet<&str> = cells.flat_map(|(codes, _)| codes.split("`, `")).collect();
    let document = Server::open().await.get("/openapi.json").await.json(200);
    let codes = document["x-errors"].as_object().expect("all codes with their titles");
    assert_eq!(documented, codes.keys().map(String::as_str).collect());
}
