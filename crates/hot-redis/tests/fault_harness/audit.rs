//! Compares the callers' results with what the server has.

use super::{Arena, COUNT, CallResult, HIT_LOG, HITS, Ledger, SUM};
use emberkeep_schema::KeyLayout;
use emberkeep_testkit::Resp;
use std::collections::BTreeMap;
use std::fmt;

/// What was found.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Audit {
    /// Hits that the server has.
    pub present: usize,
    /// Hits that it has more than once.
    pub twice: usize,
    /// Hits reported as done that the server does not have.
    pub missing: usize,
    /// Hits reported as not done that the server has.
    pub phantom: usize,
    /// Hits that no caller made.
    pub strange: usize,
    /// Hits of unknown outcome that the server has.
    pub unknown_present: usize,
    /// Whether sum, counter, list and log tell the same story.
    pub consistent: bool,
}

impl Audit {
    /// Nothing lost, nothing twice, nothing by half.
    #[track_caller]
    pub fn assert_exact(&self) {
        self.assert_nothing_wrong();
        assert_eq!(self.missing, 0, "acknowledged hits are gone: {self}");
    }

    /// The same, but a failover may have taken acknowledged hits.
    #[track_caller]
    pub fn assert_nothing_wrong(&self) {
        assert_eq!(self.twice, 0, "hits were made twice: {self}");
        assert_eq!(self.phantom, 0, "hits were made that were reported as not made: {self}");
        assert_eq!(self.strange, 0, "hits that no caller made: {self}");
        assert!(self.consistent, "sum, counter, list and log differ: {self}");
    }

    pub fn merge(&mut self, other: &Audit) {
        self.present += other.present;
        self.twice += other.twice;
        self.missing += other.missing;
        self.phantom += other.phantom;
        self.strange += other.strange;
        self.unknown_present += other.unknown_present;
        self.consistent &= other.consistent;
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Audit { present, twice, missing, phantom, strange, .. } = self;
        write!(f, "{present} present, {twice} twice, {missing} missing, {phantom} made though refused, ")?;
        write!(f, "{strange} strange, traces {}", if self.consistent { "agree" } else { "DIFFER" })
    }
}

/// Reads one arena by plain commands and compares it with the ledger of that arena.
pub fn audit(client: &mut Resp, layout: &KeyLayout, arena: &Arena, ledger: &Ledger) -> Audit {
    let list = words(client, &HITS.key().to_text(layout, arena));
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    list.iter().for_each(|id| *found.entry(id).or_default() += 1);
    let mut audit = Audit { present: found.len(), ..Audit::default() };
    audit.twice = found.values().filter(|times| **times > 1).count();
    let mut sum = 0;
    for id in &list {
        match ledger.entries.get(id) {
            Some(entry) => sum += entry.damage,
            None => audit.strange += 1,
        }
    }
    for (id, entry) in &ledger.entries {
        match (&entry.result, found.contains_key(id.as_str())) {
            (CallResult::Done, false) => audit.missing += 1,
            (CallResult::NotDone(_), true) => audit.phantom += 1,
            (CallResult::Unknown(_), true) => audit.unknown_present += 1,
            _ => {}
        }
    }
    audit.consistent = number(client, &SUM.key().to_text(layout, arena)) == sum
        && number(client, &COUNT.key().to_text(layout, arena)) == list.len() as i64
        && log_agrees(client, layout, arena, &list);
    audit
}

/// The log holds the same ids in the same order, with sequences 1, 2, 3….
fn log_agrees(client: &mut Resp, layout: &KeyLayout, arena: &Arena, list: &[String]) -> bool {
    let entries = words(client, &HIT_LOG.key().to_text(layout, arena));
    let agrees = |(number, (entry, id)): (usize, (&String, &String))| {
        let parts: Vec<&str> = entry.splitn(3, ':').collect();
        matches!(parts[..], [sequence, _, event] if sequence == (number + 1).to_string() && event == id)
    };
    entries.len() == list.len() && entries.iter().zip(list).enumerate().all(agrees)
}

fn words(client: &mut Resp, key: &str) -> Vec<String> {
    client.call(&["LRANGE", key, "0", "-1"]).items().iter().map(|item| item.text()).collect()
}

fn number(client: &mut Resp, key: &str) -> i64 {
    match client.call(&["GET", key]) {
        emberkeep_testkit::Reply::Nil => 0,
        reply => reply.text().parse().unwrap_or(i64::MIN),
    }
}
