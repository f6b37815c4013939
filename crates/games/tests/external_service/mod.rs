//! Services in another language that implement the storage documents with plain commands and none of our
//! code.

#![allow(unreachable_pub)] // One module of several test binaries.

pub mod go;
pub mod monsters;
pub mod reactors;

use emberkeep_testkit::{Reply, Resp};
use serde_json::Value;

/// A plain connection.
pub struct PlainClient(pub Resp);

impl PlainClient {
    /// Sends a command whose reply must not be an error.
    pub fn call(&mut self, command: &[&str]) -> Reply {
        let reply = self.0.call(command);
        assert!(!matches!(reply, Reply::Error(_)), "{command:?}: {reply:?}");
        reply
    }

    /// The JSON at a key.
    pub fn json(&mut self, key: &str) -> Option<Value> {
        match self.call(&["GET", key]) {
            Reply::Nil => None,
            reply => Some(serde_json::from_slice(reply.bytes()).expect("what we write is JSON")),
        }
    }

    /// Changes the JSON at a key by WATCH, MULTI and EXEC; `false` if another client was faster in each of
    /// `tries` attempts.
    pub fn change(&mut self, key: &str, tries: u32, rule: impl Fn(&mut Value)) -> bool {
        for _ in 0..tries {
            self.call(&["WATCH", key]);
            let Some(mut value) = self.json(key) else {
                self.call(&["UNWATCH"]);
                return false;
            };
            rule(&mut value);
            self.call(&["MULTI"]);
            self.call(&["SET", key, &value.to_string()]);
            if self.call(&["EXEC"]) != Reply::Nil {
                return true;
            }
        }
        false
    }

    /// The members of a set, as numbers.
    pub fn members(&mut self, key: &str) -> Vec<u64> {
        let reply = self.call(&["SMEMBERS", key]);
        let mut members: Vec<u64> = reply.items().iter().map(|id| id.text().parse().unwrap()).collect();
        members.sort_unstable();
        members
    }
}
