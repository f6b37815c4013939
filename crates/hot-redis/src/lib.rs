//! The hot-state contract over Redis and Valkey, standalone and Cluster.
