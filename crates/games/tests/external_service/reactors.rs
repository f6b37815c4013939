//! A reactor service that implements the storage document.

use super::PlainClient;
use emberkeep_testkit::{Reply, Resp};
use serde_json::{Value, json};

/// "IDs are generated atomically via a Lua script … and wrap around when the maximum is exceeded."
const ALLOCATE: &str = "
local id = redis.call('INCR', KEYS[1])
if id < 1000000001 or id > 2000000000 then
  redis.call('SET', KEYS[1], '1000000001')
  id = 1000000001
end
return id";

/// The service.
pub struct ReactorService {
    line: PlainClient,
    tenant: String,
}

impl ReactorService {
    pub fn new(connection: Resp, tenant: impl ToString) -> ReactorService {
        ReactorService { line: PlainClient(connection), tenant: tenant.to_string() }
    }

    /// Map 1 of channel 1 of world 0.
    fn field(&self) -> String {
        format!("{}:0:1:1:00000000-0000-0000-0000-000000000000", self.tenant)
    }

    fn cooldown_key(&self, classification: u32, x: i16, y: i16) -> String {
        format!("reactor:cd:{}:{classification}:{x}:{y}", self.field())
    }

    pub fn create(&mut self, classification: u32, x: i16, y: i16, delay_ms: u64) -> u64 {
        let id = self.line.call(&["EVAL", ALLOCATE, "1", "reactors:next_id"]).int() as u64;
        let reactor = json!({
            "tenant": {"id": self.tenant, "region": "GMS", "majorVersion": 83, "minorVersion": 1},
            "id": id, "worldId": 0, "channelId": 1, "mapId": 1,
            "instance": "00000000-0000-0000-0000-000000000000", "classification": classification, "name": "box",
            "data": {"name": "box", "tl": {"x": 0, "y": 0}, "br": {"x": 0, "y": 0}, "stateInfo": {
                "0": [{"type": 0, "activeSkills": [], "nextState": 1}],
                "1": [{"type": 0, "activeSkills": [], "nextState": 2}],
            }, "timeoutInfo": {}},
            "state": 0, "eventState": 0, "delay": delay_ms, "direction": 0, "x": x, "y": y,
            "updateTime": "2026-01-02T03:04:05.678901234Z", "owner": {"guild": 7},
        });
        let key = format!("reactor:{id}");
        self.line.call(&["SET", &key, &reactor.to_string()]);
        self.line.call(&["SADD", "reactors:all", &id.to_string()]);
        let map = format!("reactors:map:{}", self.field());
        self.line.call(&["SADD", &map, &id.to_string()]);
        id
    }

    pub fn get(&mut self, id: u64) -> Option<Value> {
        self.line.json(&format!("reactor:{id}"))
    }

    pub fn in_map(&mut self) -> Vec<u64> {
        let map = format!("reactors:map:{}", self.field());
        self.line.members(&map)
    }

    /// Turns a reactor by WATCH, MULTI and EXEC.
    pub fn turn(&mut self, id: u64) -> bool {
        self.line.change(&format!("reactor:{id}"), 1_000, |reactor| {
            let direction = reactor["direction"].as_u64().unwrap();
            reactor["direction"] = json!((direction + 1) % 256);
        })
    }

    /// Destroys a reactor and starts its spot's cooldown.
    pub fn destroy(&mut self, id: u64) -> bool {
        let Some(reactor) = self.get(id) else { return false };
        if self.line.call(&["DEL", &format!("reactor:{id}")]).int() == 0 {
            return false;
        }
        self.line.call(&["SREM", "reactors:all", &id.to_string()]);
        let map = format!("reactors:map:{}", self.field());
        self.line.call(&["SREM", &map, &id.to_string()]);
        let number = |name: &str| reactor[name].as_i64().unwrap();
        if number("delay") > 0 {
            let (class, x, y) = (number("classification") as u32, number("x") as i16, number("y") as i16);
            let marker = self.cooldown_key(class, x, y);
            self.line.call(&["SET", &marker, "1", "PX", &number("delay").to_string()]);
        }
        true
    }

    pub fn is_cooling(&mut self, classification: u32, x: i16, y: i16) -> bool {
        let marker = self.cooldown_key(classification, x, y);
        self.line.call(&["EXISTS", &marker]) == Reply::Int(1)
    }
}
