//! A monster service that implements the storage document.

use super::PlainClient;
use super::go::{GoMonster, GoTimer, written};
use emberkeep_testkit::{Reply, Resp};
use serde_json::{Value, json};

/// An id as the document says, see the file.
const ALLOCATE: &str = include_str!("../../../bench/src/peer_allocate.lua");

/// "Damage application uses a Lua script for atomic HP deduction and damage entry append."
const DAMAGE: &str = "
local json = redis.call('GET', KEYS[1])
if not json then return {-1, 0} end
local monster = cjson.decode(json)
if monster.hp == 0 then return {0, 0} end
local actual = math.min(monster.hp, tonumber(ARGV[2]))
monster.hp = monster.hp - actual
local entries = monster.damageEntries
entries[#entries + 1] = { characterId = tonumber(ARGV[1]), damage = actual }
redis.call('SET', KEYS[1], cjson.encode(monster))
return {actual, monster.hp == 0 and 1 or 0}";

/// The service.
pub struct MonsterService {
    line: PlainClient,
    tenant: String,
}

/// What a hit came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Struck {
    /// Health that it took; -1 = no such monster.
    pub actual: i64,
    /// Whether it killed.
    pub killed: bool,
}

impl MonsterService {
    pub fn new(connection: Resp, tenant: impl ToString) -> MonsterService {
        MonsterService { line: PlainClient(connection), tenant: tenant.to_string() }
    }

    fn key(&self, id: u64) -> String {
        format!("atlas:monster:{}:{id}", self.tenant)
    }

    /// The index of map 1 of channel 1 of world 0.
    fn map_key(&self) -> String {
        format!("atlas:monster-map:{}:0:1:1:00000000-0000-0000-0000-000000000000", self.tenant)
    }

    pub fn spawn(&mut self, hp: u64) -> u64 {
        let next = format!("atlas:monster-ids:{}:next", self.tenant);
        let free = format!("atlas:monster-ids:{}:free", self.tenant);
        let id = self.line.call(&["EVAL", ALLOCATE, "2", &next, &free]).int() as u64;
        let monster = GoMonster {
            unique_id: id as u32,
            tenant_id: self.tenant.clone(),
            tenant_region: "GMS".into(),
            tenant_major_version: 83,
            tenant_minor_version: 1,
            channel_id: 1,
            map_id: 1,
            instance: "00000000-0000-0000-0000-000000000000".into(),
            monster_id: 100_100,
            max_hp: hp as u32,
            hp: hp as u32,
            max_mp: 50,
            mp: 50,
            x: -5,
            y: 10,
            fh: 1,
            stance: 2,
            team: -1,
            ..GoMonster::default()
        };
        let mut monster: Value = serde_json::from_str(&written(&monster)).unwrap();
        monster["spawnedBy"] = json!({"service": "other", "tags": [1, 2]});
        let (key, map_key) = (self.key(id), self.map_key());
        self.line.call(&["SET", &key, &monster.to_string()]);
        self.line.call(&["SADD", &map_key, &id.to_string()]);
        id
    }

    pub fn get(&mut self, id: u64) -> Option<Value> {
        let key = self.key(id);
        self.line.json(&key)
    }

    /// A monster as the service reads it.
    pub fn read(&mut self, id: u64) -> Result<GoMonster, String> {
        let key = self.key(id);
        GoMonster::read(&self.line.call(&["GET", &key]).text())
    }

    /// A drop timer as the service reads it.
    pub fn read_timer(&mut self, id: u64) -> Result<GoTimer, String> {
        let key = format!("atlas:drop-timer:{}:{id}", self.tenant);
        GoTimer::read(&self.line.call(&["GET", &key]).text())
    }

    pub fn in_map(&mut self) -> Vec<u64> {
        let key = self.map_key();
        self.line.members(&key)
    }

    pub fn damage(&mut self, id: u64, character: u32, amount: u64) -> Struck {
        let key = self.key(id);
        let words = ["EVAL", DAMAGE, "1", &key, &character.to_string(), &amount.to_string()];
        let reply = self.line.call(&words);
        let [actual, killed] = reply.items() else { panic!("{reply:?}") };
        Struck { actual: actual.int(), killed: killed.int() == 1 }
    }

    /// Moves one to the right. "Optimistic locking via WATCH/TxPipelined", until it succeeds or the
    /// monster is gone.
    pub fn move_right(&mut self, id: u64) -> bool {
        let key = self.key(id);
        self.line.change(&key, 1_000, |monster| {
            let x = monster["x"].as_i64().unwrap();
            monster["x"] = json!(x + 1);
        })
    }

    /// Removes a monster; the caller that deletes the record releases the id.
    pub fn remove(&mut self, id: u64) -> bool {
        let (key, map_key) = (self.key(id), self.map_key());
        let free = format!("atlas:monster-ids:{}:free", self.tenant);
        if self.line.call(&["DEL", &key]).int() == 0 {
            return false;
        }
        self.line.call(&["SREM", &map_key, &id.to_string()]);
        self.line.call(&["LPUSH", &free, &id.to_string()]);
        true
    }

    /// Deletes a record and forgets the rest.
    pub fn lose(&mut self, id: u64) {
        let key = self.key(id);
        self.line.call(&["DEL", &key]);
    }

    pub fn start_cooldown(&mut self, id: u64, skill: u32, ms: u64) {
        let key = format!("atlas:monster-cooldown:{}:{id}:{skill}", self.tenant);
        self.line.call(&["SET", &key, "1", "PX", &ms.to_string()]);
    }

    pub fn is_cooling(&mut self, id: u64, skill: u32) -> bool {
        let key = format!("atlas:monster-cooldown:{}:{id}:{skill}", self.tenant);
        self.line.call(&["EXISTS", &key]) == Reply::Int(1)
    }
}
