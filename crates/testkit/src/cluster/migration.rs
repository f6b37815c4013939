//! Moves one slot step by step, so that a test can stop anywhere in between.

use crate::cluster::RedisCluster;
use crate::resp::Resp;

/// How long one MIGRATE may take.
const MIGRATE_MS: &str = "5000";

/// A slot on its way. Dropping this leaves the slot where it is: between the nodes.
#[derive(Debug)]
pub struct SlotMigration<'a> {
    cluster: &'a RedisCluster,
    slot: u16,
    from: usize,
    to: usize,
}

impl<'a> SlotMigration<'a> {
    /// IMPORTING on the target first: the source sends clients there as soon as it is MIGRATING.
    #[track_caller]
    pub(super) fn begin(cluster: &'a RedisCluster, slot: u16, to: usize) -> Self {
        let from = cluster.primary_of_slot(slot);
        assert_ne!(from, to, "the slot is already there");
        let migration = Self { cluster, slot, from, to };
        migration.set_slot(to, "IMPORTING", &migration.id(from));
        migration.set_slot(from, "MIGRATING", &migration.id(to));
        migration
    }

    /// The node that gives the slot away.
    pub fn from(&self) -> usize {
        self.from
    }

    /// The node that takes it.
    pub fn to(&self) -> usize {
        self.to
    }

    /// Moves one key; false if the source does not have it.
    #[track_caller]
    pub fn move_key(&self, key: impl AsRef<[u8]>) -> bool {
        self.migrate(&[key.as_ref().to_vec()])
    }

    /// Moves up to `max` keys, and returns how many.
    #[track_caller]
    pub fn move_keys(&self, max: usize) -> usize {
        let (slot, max) = (self.slot.to_string(), max.to_string());
        let keys = self.client(self.from).call(&["CLUSTER", "GETKEYSINSLOT", &slot, &max]);
        let keys: Vec<Vec<u8>> = keys.items().iter().map(|key| key.bytes().to_vec()).collect();
        if !keys.is_empty() {
            self.migrate(&keys);
        }
        keys.len()
    }

    /// Moves what is left, and tells every primary whose the slot is now.
    #[track_caller]
    pub fn finish(self) {
        while self.move_keys(100) > 0 {}
        let id = self.id(self.to);
        // The target first: should anything go wrong between, it is better that two claim the slot
        // than that no node does.
        self.set_slot(self.to, "NODE", &id);
        self.set_slot(self.from, "NODE", &id);
        for range in 0..self.cluster.ranges() {
            let node = self.cluster.primary_of_range(range);
            if node != self.to && node != self.from {
                self.set_slot(node, "NODE", &id);
            }
        }
        self.cluster.await_owner(self.slot, self.to);
    }

    #[track_caller]
    fn migrate(&self, keys: &[Vec<u8>]) -> bool {
        let port = self.cluster.nodes()[self.to].port().to_string();
        let head = ["MIGRATE", "127.0.0.1", &port, "", "0", MIGRATE_MS, "KEYS"];
        let mut command: Vec<Vec<u8>> = head.iter().map(|word| word.as_bytes().to_vec()).collect();
        command.extend_from_slice(keys);
        let reply = self.client(self.from).call(&command);
        assert!(reply.is_ok() || reply.text() == "NOKEY", "MIGRATE: {reply:?}");
        reply.is_ok()
    }

    #[track_caller]
    fn set_slot(&self, node: usize, state: &str, id: &str) {
        let reply = self.client(node).call(&["CLUSTER", "SETSLOT", &self.slot.to_string(), state, id]);
        assert!(reply.is_ok(), "SETSLOT {state}: {reply:?}");
    }

    fn id(&self, node: usize) -> String {
        self.client(node).call(&["CLUSTER", "MYID"]).text()
    }

    fn client(&self, node: usize) -> Resp {
        self.cluster.nodes()[node].client()
    }
}
