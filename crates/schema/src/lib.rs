//! What keys exist: families, patterns, partitions, TTL policies, owners. Pure data, no I/O.
