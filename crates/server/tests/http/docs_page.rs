//! The reference page, in a real browser.

use crate::support::{Server, examples};
use emberkeep_testkit::{open_page, require};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_every_operation_and_loads_nothing_from_elsewhere() {
    let server = Server::open().await;
    let document = server.get("/openapi.json").await.json(200);
    let home = format!("http://{}/", server.address());
    let url = format!("{home}docs");
    let opened = tokio::task::spawn_blocking(move || open_page(&url)).await.expect("no panic");
    let Some(page) = require(opened) else { return };
    for tag in document["tags"].as_array().expect("groups") {
        let group = format!("data-group=\"{}\"", tag["name"].as_str().expect("a name"));
        assert!(page.dom.contains(&group), "{group} is not on the page");
    }
    for example in examples(&document) {
        let card = format!("id=\"{}\"", example.operation["operationId"].as_str().expect("a name"));
        assert!(page.dom.contains(&card), "{example} is not on the page");
    }
    for code in document["x-errors"].as_object().expect("codes").keys() {
        assert!(page.dom.contains(&format!("id=\"error-{code}\"")), "{code} is not on the page");
    }
    assert!(page.requests.contains(&format!("{home}openapi.json")), "{:?}", page.requests);
    let external: Vec<_> = page.requests.iter().filter(|asked| !asked.starts_with(&home)).collect();
    assert!(
        external.iter().all(|asked| asked.starts_with("data:")),
        "requests left the server: {external:?}"
    );
    let head = server.get("/docs").await;
    assert!(
        head.text().contains("if (destroys && !confirm("),
        "it asks before it sends what cannot be undone"
    );
    let policy = head.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(!head.text().contains("https://"), "the page names no external host");
}
