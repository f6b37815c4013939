//! The `emberkeep` binary.

fn main() {}
