//! Replays the examples of the protocol's page.

use super::pilot::{Engine, Pilot, request};
use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;

struct Replay {
    server: SocketAddr,
    engine: Engine,
    pilots: HashMap<String, Pilot>,
}

/// Replays every block that is marked `galaxy`, in order, and gives the number of lines.
pub(crate) async fn replay(page: &str, server: SocketAddr, engine: Engine) -> usize {
    let mut replay = Replay { server, engine, pilots: HashMap::new() };
    let mut lines = 0;
    for block in page.split("```galaxy\n").skip(1) {
        for line in block.split("```").next().expect("a block ends").lines() {
            replay.line(line).await;
            lines += 1;
        }
    }
    lines
}

impl Replay {
    async fn line(&mut self, line: &str) {
        if line == "TICK" {
            self.engine.tick().await;
        } else if let Some((who, text)) = line.split_once(" -> ") {
            self.pilot(who).await.send_text(text.to_owned()).await;
        } else if let Some((who, expected)) = line.split_once(" <- ") {
            let expected: Value = serde_json::from_str(expected).expect(line);
            let found = self.pilot(who).await.next().await;
            assert!(found.as_ref().is_ok_and(|found| holds(found, &expected)), "{line}: {found:?}");
        } else if let Some((who, code)) = line.split_once(" closed ") {
            assert_eq!(self.pilot(who).await.ended().await, code.parse().ok(), "{line}");
        } else {
            self.request(line).await;
        }
    }

    async fn pilot(&mut self, who: &str) -> &mut Pilot {
        if !self.pilots.contains_key(who) {
            let pilot = Pilot::connect(self.server, who).await;
            self.pilots.insert(who.to_owned(), pilot);
        }
        self.pilots.get_mut(who).expect("it is there")
    }

    /// `METHOD PATH [BODY] => STATUS [ANSWER]`
    async fn request(&mut self, line: &str) {
        let (request_part, answer) = line.split_once(" => ").expect(line);
        let (method, rest) = request_part.split_once(' ').expect(line);
        let (path, body) = rest.split_once(' ').unwrap_or((rest, "null"));
        let body = serde_json::from_str(body).expect(line);
        let (status, found) = request(self.server, method, path, None, &body).await;
        let (expected_status, expected) = answer.split_once(' ').unwrap_or((answer, "{}"));
        assert_eq!(status.to_string(), expected_status, "{line}: {found}");
        let expected: Value = serde_json::from_str(expected).expect(line);
        assert!(expected == serde_json::json!({}) || holds(&found, &expected), "{line}: {found}");
    }
}

/// Whether a message says everything that is expected; it may say more. An empty object is one without members.
fn holds(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) if !expected.is_empty() => {
            expected.iter().all(|(name, value)| found.get(name).is_some_and(|found| holds(found, value)))
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, value)| holds(found, value))
        }
        _ => found == expected,
    }
}
