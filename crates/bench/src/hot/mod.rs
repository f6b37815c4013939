//! The workloads of hot state, one file each.

mod damage;
mod expiry;
mod field;
mod get_set;
mod growth;
mod leaderboard;
mod lifecycle;
mod memory;
pub(super) mod recovery;
mod redis_damage;
mod remote_latency;
mod sweep;
mod tenant;
mod transfer;
mod vs_redis;

use super::suite::Workload;

/// All of them, in the order in which they run.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload { name: "get", run: get_set::get },
    Workload { name: "set", run: get_set::set },
    Workload { name: "get-beside-redis", run: vs_redis::get },
    Workload { name: "set-beside-redis", run: vs_redis::set },
    Workload { name: "damage", run: damage::in_memory },
    Workload { name: "damage-journal", run: damage::with_journal },
    Workload { name: "transfer", run: transfer::in_memory },
    Workload { name: "transfer-journal", run: transfer::with_journal },
    Workload { name: "transfer-event", run: transfer::with_event },
    Workload { name: "leaderboard", run: leaderboard::in_memory },
    Workload { name: "redis-leaderboard", run: leaderboard::redis },
    Workload { name: "redis-sequential", run: redis_damage::sequential },
    Workload { name: "redis-hot-1x64", run: redis_damage::hot },
    Workload { name: "redis-hot-4x16", run: redis_damage::hot_processes },
    Workload { name: "redis-64-keys-1x64", run: redis_damage::some_keys },
    Workload { name: "redis-64-keys-4x16", run: redis_damage::some_keys_processes },
    Workload { name: "redis-1000-keys-1x64", run: redis_damage::many_keys },
    Workload { name: "redis-512-entries", run: redis_damage::long_memory },
    Workload { name: "redis-far", run: remote_latency::far },
    Workload { name: "redis-lifecycle", run: lifecycle::lifecycle },
    Workload { name: "redis-field-500", run: field::field },
    Workload { name: "sweep", run: sweep::embedded },
    Workload { name: "redis-sweep", run: sweep::redis },
    Workload { name: "expiry", run: expiry::expiry },
    Workload { name: "growth", run: growth::growth },
    Workload { name: "memory", run: memory::memory },
    Workload { name: "tenant", run: tenant::tenant },
    Workload { name: "recovery", run: recovery::recovery },
];
