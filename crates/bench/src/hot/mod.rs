//! The workloads of hot state, one file each.

pub(super) mod damage;
pub(super) mod expiry;
pub(super) mod field;
pub(super) mod get_set;
pub(super) mod growth;
pub(super) mod lifecycle;
pub(super) mod memory;
pub(super) mod recovery;
pub(super) mod redis_damage;
pub(super) mod remote_latency;
pub(super) mod sweep;
pub(super) mod tenant;
pub(super) mod vs_redis;
