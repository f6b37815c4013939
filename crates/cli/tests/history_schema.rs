//! `emberkeep schema diff` and `apply` on a live keyspace of Cassandra.
#![cfg(feature = "cql")]

use emberkeep::history::cql::schema::{LiveKeyspace, Replication};
use emberkeep_testkit::{block_on, shared_cassandra};
use std::process::{Command, Output};

fn schema(command: &str, url: &str) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_emberkeep");
    let Output { status, stdout, stderr } =
        Command::new(program).args(["schema", command, "--history", url]).output().expect("it runs");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

#[test]
fn a_keyspace_is_compared_and_completed() {
    let Some(cassandra) = shared_cassandra() else { return };
    let url = cassandra.url("completed");
    let (code, said) = schema("diff", &url);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the keyspace completed does not exist"), "{said}");
    block_on(async {
        LiveKeyspace::connect(&url).await.unwrap().create(&Replication::Simple(1)).await.unwrap();
    });
    let (code, said) = schema("diff", &url);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("table combat_events is missing"), "{said}");
    let (code, said) = schema("apply", &url);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("added: table combat_events: index idx_combat_attacker on attacker_id is missing"),
        "{said}"
    );
    assert_eq!(schema("diff", &url), (Some(0), "the keyspace is as declared\n".to_owned()));
    let (code, said) = schema("apply", &format!("{url}?layout=scaled"));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("its key is ((day_bucket), timestamp DESC, event_id ASC)"), "{said}");
    let (code, said) = schema("diff", &url.replace("cassandra:cassandra", "cassandra:secret"));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("refuses the user or the password") && !said.contains("secret"), "{said}");
}
