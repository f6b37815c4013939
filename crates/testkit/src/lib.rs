//! Starts real servers for tests, on free loopback ports, and stops them again.
