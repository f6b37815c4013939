//! The life of a commit, in this order: a transaction is queued, joins a batch, its batch is in flight, and is completed.

pub(crate) mod batch;
pub(crate) mod complete;
pub(crate) mod in_flight;
pub(crate) mod lease;
pub(crate) mod partition_task;
pub(crate) mod queued;
