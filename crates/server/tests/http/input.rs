//! What makes no sense is refused in one shape, and says why.

use crate::support::{FIELD, Server, TENANT};
use emberkeep_server::limits::BODY_BYTES_MAX;
use serde_json::json;

#[tokio::test]
async fn bodies_that_are_none_are_refused() {
    let server = Server::open().await;
    let path = format!("{FIELD}/monsters");
    let post = || server.request("POST", &path);
    let json = || post().header("Content-Type", "application/json");
    for body in ["{", "", "nonsense", "{\"monsterId\":}", "\u{0}"] {
        assert_eq!(json().body(body).send().await.problem(400), "malformed_json", "{body:?}");
    }
    for kind in ["text/plain", "application/xml", "application/jsonx"] {
        let refused = post().header("Content-Type", kind).body("{}").send().await;
        assert_eq!(refused.problem(415), "unsupported_media_type", "{kind}");
    }
    assert_eq!(post().body("{}").send().await.problem(415), "unsupported_media_type");
    let charset = post().header("Content-Type", "Application/JSON; charset=utf-8");
    charset.body(json!({"monsterId": 1, "maxHp": 1}).to_string()).send().await.json(201);
}

#[tokio::test]
async fn a_body_of_the_largest_size_is_read_and_one_byte_more_is_not() {
    let server = Server::open().await;
    let post = |length: usize| {
        let body = json!({"monsterId": 1, "maxHp": 1}).to_string();
        let request = server.request("POST", &format!("{FIELD}/monsters"));
        request
            .header("Content-Type", "application/json")
            .body(body.clone() + &" ".repeat(length - body.len()))
    };
    post(BODY_BYTES_MAX).send().await.json(201);
    assert_eq!(post(BODY_BYTES_MAX + 1).send().await.problem(413), "body_too_large");
    assert_eq!(post(BODY_BYTES_MAX * 8).send().await.problem(413), "body_too_large");
}

#[tokio::test]
async fn what_a_route_does_not_take_is_named() {
    let server = Server::open().await;
    let path = format!("{FIELD}/monsters");
    let refused = [
        (json!({"monsterId": 1, "maxHp": 1, "maxHP": 2}), "`maxHP`"),
        (json!({"monsterId": 1}), "`maxHp`"),
        (json!({"monsterId": 1, "maxHp": 0}), "expected at least 1"),
        (json!({"monsterId": 1, "maxHp": 4_294_967_296_u64}), "expected an integer from 0 to 4294967295"),
        (json!({"monsterId": 1, "maxHp": -1}), "expected an integer from 0 to 4294967295"),
        (json!({"monsterId": 1, "maxHp": 1.5}), "expected an integer from 0 to 4294967295"),
        (json!({"monsterId": 1, "maxHp": "1"}), "expected an integer from 0 to 4294967295"),
        (json!({"monsterId": 1, "maxHp": 1, "team": 200}), "expected an integer from -128 to 127"),
        (json!([1, 1]), "expected an object"),
        (json!(null), "expected an object"),
        (json!("monster"), "expected an object"),
    ];
    for (body, why) in refused {
        let answer = server.post(&path, body.clone()).await;
        assert_eq!(answer.problem(422), "invalid", "{body}");
        assert!(answer.text().contains(why), "{body}: {}", answer.text());
    }
}

#[tokio::test]
async fn paths_and_queries_are_read_strictly() {
    let server = Server::open().await;
    for path in [
        "/v1/tenants/nobody/monsters/1".to_owned(),
        format!("/v1/tenants/{TENANT}/monsters/-1"),
        format!("/v1/tenants/{TENANT}/monsters/4294967296"),
        format!("/v1/tenants/{TENANT}/fields/256/0/0/{TENANT}/monsters"),
        format!("/v1/tenants/{TENANT}/fields/0/0/0/here/monsters"),
        format!("{FIELD}/monsters?limit=ten"),
        format!("{FIELD}/monsters?unknown=1"),
        format!("{FIELD}/reactor-cooldowns/1/40000/0"),
    ] {
        assert_eq!(server.get(&path).await.problem(422), "invalid", "{path}");
    }
}

#[tokio::test]
async fn an_unknown_route_is_answered_in_the_same_shape() {
    let server = Server::open().await;
    for path in ["/home", "/v1", "/v1/dragons", "/openapi.yaml", "/v1/tenants/a/b/c/d"] {
        assert_eq!(server.get(path).await.problem(404), "no_such_route", "{path}");
    }
    let refused = server.request("BREW", "/healthz").send().await;
    assert_eq!(
        (refused.problem(405), refused.header("allow")),
        ("method_not_allowed".into(), Some("GET,HEAD"))
    );
}
