//! Request ids, counters, health.

use crate::support::{FIELD, Server, TENANT};
use serde_json::json;
use std::collections::BTreeMap;

#[tokio::test]
async fn a_request_keeps_its_id_or_gets_one() {
    let server = Server::open().await;
    let with = async |id: &str| {
        let answer = server.request("GET", "/healthz").header("X-Request-Id", id).send().await;
        answer.header("x-request-id").expect("every answer has one").to_owned()
    };
    assert_eq!(with("lobby-17").await, "lobby-17");
    for unfit in ["", "with space", &"x".repeat(65)] {
        assert_ne!(with(unfit).await, unfit);
    }
    let (first, second) = (server.get("/nowhere").await, server.get("/nowhere").await);
    assert_ne!(first.header("x-request-id").unwrap(), second.header("x-request-id").unwrap());
}

/// The lines of a page that is scraped, by name and labels, after a look at its form.
fn scraped(page: &str) -> BTreeMap<&str, f64> {
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    let mut values = BTreeMap::new();
    for line in page.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').expect("a name and a kind");
            assert!(types.insert(name, kind).is_none(), "{name} is declared twice");
        } else if !line.starts_with("# HELP ") {
            let (series, value) = line.rsplit_once(' ').expect("a series and a value");
            let name = series.split('{').next().expect("a name");
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let known = types.contains_key(name)
                || family.is_some_and(|family| types.get(family) == Some(&"histogram"));
            assert!(known, "{line} has no type");
            assert!(values.insert(series, value.parse().expect("a number")).is_none(), "{line} stands twice");
        }
    }
    values
}

#[tokio::test]
async fn calls_and_problems_are_counted_by_operation() {
    let server = Server::open().await;
    for _ in 0..3 {
        server.get(&format!("/v1/tenants/{TENANT}/monsters/1")).await.problem(404);
    }
    server.post(&format!("{FIELD}/monsters"), json!({"monsterId": 1, "maxHp": 1})).await.json(201);
    server.get("/nowhere").await.problem(404);
    let page = server.get("/metrics").await;
    assert_eq!(page.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = page.text();
    let counted = scraped(&text);
    let path = "/v1/tenants/{tenant}/monsters/{monster}";
    let errors =
        format!("emberkeep_request_errors_total{{method=\"GET\",path=\"{path}\",error=\"not_found\"}}");
    assert_eq!(counted[errors.as_str()], 3.0);
    assert_eq!(
        counted[format!("emberkeep_request_seconds_count{{method=\"GET\",path=\"{path}\"}}").as_str()],
        3.0
    );
    let nowhere = "emberkeep_request_errors_total{method=\"GET\",path=\"(none)\",error=\"no_such_route\"}";
    assert_eq!(counted[nowhere], 1.0);
    assert!(counted["emberkeep_engine_committed_total"] >= 1.0);
    assert!(counted["emberkeep_engine_keys"] >= 1.0);
}

#[tokio::test]
async fn a_closed_store_is_not_ready_and_calls_say_so() {
    let server = Server::open().await;
    assert_eq!(server.get("/readyz").await.json(200), json!({"status": "ok"}));
    server.store.close().await.unwrap();
    let refused = server.get("/readyz").await;
    assert_eq!(refused.problem(503), "not_ready");
    assert_eq!(refused.json(503)["details"]["backend"], "hot");
    assert_eq!(server.get("/healthz").await.json(200), json!({"status": "ok"}));
    let refused = server.post(&format!("{FIELD}/monsters"), json!({"monsterId": 1, "maxHp": 1})).await;
    assert_eq!(refused.problem(503), "store_unavailable");
}
