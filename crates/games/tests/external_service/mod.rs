//! Services in another language that follow the documents' documents by hand: plain commands on a plain connection, and
//! nothing of ours, not even the names of keys.

#![allow(unreachable_pub)] // One module of several test binaries.

pub mod go;
pub mod monsters;
pub mod reactors;

use emberkeep_testkit::{Reply, Resp};
use serde_json::Value;

/// A connection that speaks in words.
pub struct Line(pub Resp);

impl Line {
    /// A command whose reply is no error.
    pub fn say(&mut self, command: &[&str]) -> Reply {
        let reply = self.0.call(command);
        assert!(!matches!(reply, Reply::Error(_)), "{command:?}: {reply:?}");
        reply
    }

    /// The JSON at a key.
    pub fn json(&mut self, key: &str) -> Option<Value> {
        match self.say(&["GET", key]) {
            Reply::Nil => None,
            reply => Some(serde_json::from_slice(reply.bytes()).expect("what we write is JSON")),
        }
    }

    /// Changes the JSON at a key by WATCH, MULTI and EXEC. `false` = somebody else was quicker, each of `tries` times.
    pub fn change(&mut self, key: &str, tries: u32, rule: impl Fn(&mut Value)) -> bool {
        for _ in 0..tries {
            self.say(&["WATCH", key]);
            let Some(mut value) = self.json(key) else {
                self.say(&["UNWATCH"]);
                return false;
            };
            rule(&mut value);
            self.say(&["MULTI"]);
            self.say(&["SET", key, &value.to_string()]);
            if self.say(&["EXEC"]) != Reply::Nil {
                return true;
            }
        }
        false
    }

    /// The members of a set, as numbers.
    pub fn members(&mut self, key: &str) -> Vec<u64> {
        let reply = self.say(&["SMEMBERS", key]);
        let mut members: Vec<u64> = reply.items().iter().map(|id| id.text().parse().unwrap()).collect();
        members.sort_unstable();
        members
    }
}
