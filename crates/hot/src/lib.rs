//! Hot state: the engine contract, atomic steps, and the embedded engine with its journal.
