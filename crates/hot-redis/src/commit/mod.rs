//! The life of a commit, in this order: a transaction is queued, its partition's task puts it into a batch,
//! the batch is in flight, and its completion answers the transactions or queues them again.
//! `docs/commit-protocol.md` explains it.

mod batch;
mod cancel_guard;
mod in_flight;
mod lease;
mod partition_task;
mod queued;
mod receipt;

pub(crate) use partition_task::PartitionTask;
pub(crate) use queued::QueuedTransaction;
