//! Transactions of one commit that share keys: validated, written and answered as one.

use crate::inferred::shows_absence;
use crate::job::Job;
use crate::view::Reads;
use emberkeep_hot::command::*;

/// Transactions that share keys.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) jobs: Vec<Job>,
    pub(crate) keys: Vec<RawKey>,
    /// What its transactions have read, while transactions join it.
    pub(crate) reads: Reads,
    /// The same as the script compares it.
    pub(crate) compared: Vec<(RawKey, Read, Reply)>,
    pub(crate) effects: Effects,
    /// What its transactions ask of the state below, also by writes that later ones cover.
    pub(crate) required: Vec<Precondition>,
    /// The tick of the call that carries it.
    pub(crate) tick: u64,
    /// Its call asks for leases where it proves stale.
    pub(crate) asks: bool,
    /// A transaction that must be alone is in here.
    pub(crate) sealed: bool,
}

impl Group {
    /// The keys it writes, each once.
    pub(crate) fn written(&self) -> impl Iterator<Item = &RawKey> {
        let writes = &self.effects.writes;
        writes
            .iter()
            .enumerate()
            .filter(|(i, (key, _))| *i == 0 || writes[i - 1].0 != *key)
            .map(|(_, (key, _))| key)
    }

    /// The keys that its transactions may have leases on.
    pub(crate) fn leased(&self) -> Vec<RawKey> {
        let mut keys: Vec<RawKey> = self.jobs.iter().flat_map(|job| job.leases.keys()).cloned().collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Whether it does nothing but give memory back.
    pub(crate) fn frees(&self) -> bool {
        use Write::*;
        let frees = |write: &Write| {
            matches!(
                write,
                Del | HDel(_) | SRem(_) | ZRem(_) | LPop(_) | RPop(_) | LTrim(..) | ExpireAt(_) | Persist
            )
        };
        self.effects.log.is_empty() && self.effects.writes.iter().all(|(_, write)| frees(write))
    }

    /// What must be checked before the first write: the types that no read of the group has proved already.
    pub(crate) fn requirements(&self, log_keys: &(RawKey, RawKey)) -> Vec<Precondition> {
        let unproved = |r: &&Precondition| r.countable.is_some() || !self.proves(&r.key, r.kind);
        let mut required: Vec<Precondition> = self.required.iter().filter(unproved).cloned().collect();
        if !self.effects.log.is_empty() {
            let entries = self.effects.log.len() as i64;
            required.push(Precondition { key: log_keys.0.clone(), kind: Kind::List, countable: None });
            required.push(Precondition::counter(log_keys.1.clone(), entries));
        }
        required
    }

    fn proves(&self, key: &RawKey, kind: Kind) -> bool {
        self.compared.iter().any(|(k, read, reply)| {
            let of_kind = || read.kind() == Some(kind) && !matches!(reply, Reply::WrongType(_));
            // A hash whose fields have all ended by deadlines of their own is empty, and still there.
            let absent = || read.kind() != Some(Kind::Hash) && shows_absence(read, reply);
            k == key && (of_kind() || absent())
        })
    }

    /// Takes over another one that turned out to share a key.
    pub(crate) fn absorb(&mut self, other: Group) {
        self.jobs.extend(other.jobs);
        self.keys.extend(other.keys);
        self.reads.extend(other.reads.into_vec());
        self.effects.log.extend(other.effects.log);
        self.effects.messages.extend(other.effects.messages);
        self.sealed |= other.sealed;
    }
}
