//! Reads outside of transactions.

pub(crate) mod mget;
pub(crate) mod scan;
pub(crate) mod sscan;
