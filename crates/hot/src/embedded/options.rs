//! Options of an embedded engine.

use super::Embedded;
use super::clock::Clock;
use crate::error::Result;
use crate::journal::Durability;
use crate::journal::files::{Disk, Files};
use crate::limits::JOURNAL_REWRITE_BYTES_MIN;
use emberkeep_schema::KeyLayout;
use std::path::PathBuf;
use std::sync::Arc;

/// What an embedded engine is opened with. The default lives in memory only and follows the system's clock.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Where a journal is kept; `None` = with the process everything ends.
    pub data: Option<PathBuf>,
    /// What an answer promises; without a folder, nothing.
    pub durability: Durability,
    /// The file system of the journal.
    pub files: Arc<dyn Files>,
    /// Opens a damaged journal: keeps everything before the damage and sets the rest pending_copies.
    pub cut_damage: bool,
    /// The journal is not rewritten below this size.
    pub rewrite_bytes_min: u64,
    /// Prefix of all keys. The layout is that of one server.
    pub layout: KeyLayout,
    /// Bytes of keys and values beyond which transactions that grow are refused.
    pub memory_bytes_max: Option<usize>,
    /// Where time comes from.
    pub clock: Clock,
    /// Start of the engine's random numbers; `None` = different at every start.
    pub seed: Option<u64>,
    /// Whether a thread sweeps ended keys and rewrites the journal. Off, a test does both by hand.
    pub background: bool,
    /// Whether closures are tested for purity, see [`Options::check_closures`].
    pub check_closures: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            data: None,
            durability: Durability::default(),
            files: Arc::new(Disk),
            cut_damage: false,
            rewrite_bytes_min: JOURNAL_REWRITE_BYTES_MIN,
            layout: KeyLayout::single(),
            memory_bytes_max: None,
            clock: Clock::System,
            seed: None,
            background: true,
            check_closures: false,
        }
    }
}

impl Options {
    /// Keeps a journal in this folder, and loads what is there.
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Options {
        self.data = Some(folder.into());
        self
    }

    /// What an answer promises.
    pub fn durability(mut self, durability: Durability) -> Options {
        self.durability = durability;
        self
    }

    /// Keeps the journal on this file system.
    pub fn files(mut self, files: Arc<dyn Files>) -> Options {
        self.files = files;
        self
    }

    /// Opens a damaged journal by giving up what follows the damage. For once, by hand.
    pub fn cut_damage(mut self, cut: bool) -> Options {
        self.cut_damage = cut;
        self
    }

    /// Rewrites the journal from this size on.
    pub fn rewrite_bytes_min(mut self, bytes: u64) -> Options {
        self.rewrite_bytes_min = bytes;
        self
    }

    /// Puts a prefix in front of all keys.
    pub fn layout(mut self, layout: KeyLayout) -> Options {
        self.layout = layout;
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

    /// For tests: finds closures that would misbehave on Redis, without Redis.
    ///
    /// The first read of every key is not available at first, as if it had to be fetched: the closure runs
    /// again, and must not panic. A complete run is made twice, and the second one must write, record and
    /// publish the same as the first. Otherwise the transaction ends with
    /// [`Error::ImpureClosure`](crate::Error::ImpureClosure).
    pub fn check_closures(mut self, on: bool) -> Options {
        self.check_closures = on;
        self
    }

    /// Opens the engine and loads its folder, if it has one. Fails if the folder is in use or damaged.
    pub fn open(self) -> Result<Embedded> {
        Embedded::open(self)
    }
}
