//! How an embedded engine is opened.

use super::Embedded;
use super::clock::Clock;
use crate::error::Result;
use emberkeep_schema::Naming;

/// What an embedded engine is opened with. The default lives in memory only and follows the system's clock.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Prefix of all keys. The layout is that of one server.
    pub naming: Naming,
    /// Bytes of keys and values beyond which steps that grow are refused.
    pub memory_bytes_max: Option<usize>,
    /// Where time comes from.
    pub clock: Clock,
    /// Start of the engine's random numbers; `None` = different at every start.
    pub seed: Option<u64>,
    /// Whether a thread sweeps ended keys and rewrites the journal. Off, a test does both by hand.
    pub background: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            naming: Naming::single(),
            memory_bytes_max: None,
            clock: Clock::System,
            seed: None,
            background: true,
        }
    }
}

impl Options {
    /// Puts a prefix in front of all keys.
    pub fn naming(mut self, naming: Naming) -> Options {
        self.naming = naming;
        self
    }

    /// Refuses growth beyond this many bytes.
    pub fn memory_bytes_max(mut self, bytes: usize) -> Options {
        self.memory_bytes_max = Some(bytes);
        self
    }

    /// Takes time from this clock.
    pub fn clock(mut self, clock: Clock) -> Options {
        self.clock = clock;
        self
    }

    /// Makes random numbers and the order of scans repeatable.
    pub fn seed(mut self, seed: u64) -> Options {
        self.seed = Some(seed);
        self
    }

    /// Whether ended keys are swept and the journal is rewritten by a thread of the engine.
    pub fn background(mut self, on: bool) -> Options {
        self.background = on;
        self
    }

    /// Opens the engine.
    pub fn open(self) -> Result<Embedded> {
        Embedded::open(self)
    }
}
