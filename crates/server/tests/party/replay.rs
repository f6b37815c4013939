//! Replays the examples of the protocol's page.

use super::phone::{Phone, post};
use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;

/// Replays every block that is marked `room`, in order, and gives the number of lines.
pub(crate) async fn replay(page: &str, server: SocketAddr) -> usize {
    let mut replay = Replay { server, names: HashMap::new(), phones: HashMap::new() };
    let mut lines = 0;
    for block in page.split("```room\n").skip(1) {
        let block = block.split("```").next().expect("a block ends");
        for line in block.lines() {
            replay.line(line).await;
            lines += 1;
        }
    }
    lines
}

struct Replay {
    server: SocketAddr,
    /// What `$name` stands for.
    names: HashMap<String, String>,
    phones: HashMap<String, Phone>,
}

impl Replay {
    async fn line(&mut self, line: &str) {
        if let Some(request) = line.strip_prefix("POST ") {
            self.post(request).await;
        } else if let Some((who, text)) = line.split_once(" -> ") {
            let text = self.filled(text);
            self.phone(who).await.send_text(text).await;
        } else if let Some((who, expected)) = line.split_once(" <- ") {
            let expected: Value = serde_json::from_str(&self.filled(expected)).expect(line);
            self.expect(who, &expected).await;
        } else if let Some((who, code)) = line.split_once(" closed ") {
            assert_eq!(self.phone(who).await.ended().await, code.parse().ok(), "{line}");
        } else {
            panic!("a line that is none: {line}");
        }
    }

    async fn phone(&mut self, who: &str) -> &mut Phone {
        if !self.phones.contains_key(who) {
            let phone = Phone::connect(self.server, who).await;
            self.phones.insert(who.to_owned(), phone);
        }
        self.phones.get_mut(who).expect("it is there")
    }

    /// `PATH BODY => STATUS [ANSWER]`
    async fn post(&mut self, request: &str) {
        let (request, answer) = request.split_once(" => ").expect("an answer");
        let (path, body) = request.split_once(' ').expect("a body");
        let body = serde_json::from_str(body).expect(body);
        let key = self.names.get("key").cloned();
        let found = post(self.server, &self.filled(path), key.as_deref(), &body).await;
        let (status, expected) = answer.split_once(' ').unwrap_or((answer, "null"));
        assert_eq!(found.status.to_string(), status, "{request}: {found:?}");
        let expected: Value = serde_json::from_str(expected).expect(expected);
        for (field, name) in expected.as_object().into_iter().flatten() {
            let name = name.as_str().and_then(|name| name.strip_prefix('$')).expect("a name");
            let text = found.body[field].as_str().expect("a text in the answer");
            self.names.insert(name.to_owned(), text.to_owned());
        }
    }

    /// Passes over messages until one is as expected: those of others may come in between.
    async fn expect(&mut self, who: &str, expected: &Value) {
        let mut passed = Vec::new();
        loop {
            match self.phone(who).await.next().await {
                Ok(message) if holds(&message, expected) => return,
                Ok(message) => passed.push(message.to_string()),
                Err(frame) => {
                    panic!("{who} expects {expected}, its connection ended: {frame:?}; it heard {passed:#?}")
                }
            }
            assert!(passed.len() < 100, "{who} expects {expected}, and heard {passed:#?}");
        }
    }

    fn filled(&self, text: &str) -> String {
        self.names
            .iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
    }
}

/// Whether a message says everything that is expected; it may say more.
fn holds(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            expected.iter().all(|(name, value)| found.get(name).is_some_and(|found| holds(found, value)))
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, value)| holds(found, value))
        }
        _ => found == expected,
    }
}
