//! A disk for tests that loses unsynced data, tears writes, fills up and fails.
//!
//! It records which bytes of each file, and which names of each folder, a sync has made durable. [`crash`]
//! returns one of the disks that a power failure could leave: unsynced bytes lost, cut short, or with holes;
//! unsynced creations, renames and removals each done or not. Dropping a journal without closing it and
//! opening the same disk again simulates the death of a process: everything it wrote is there.
//!
//! [`crash`]: FaultDisk::crash

use super::files::{Files, LogFile, OpenFile, Space, TryLock};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The disk. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct FaultDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    /// Changes of names since the folder's last sync, oldest first.
    changes: Vec<Change>,
    folders: BTreeSet<PathBuf>,
    durable_folders: BTreeSet<PathBuf>,
    locks: BTreeSet<PathBuf>,
    operations: u64,
    writes: u64,
    syncs: u64,
    copies: u64,
    faults: Faults,
}

#[derive(Debug, Default)]
struct Faults {
    full_at_write: Option<u64>,
    broken_at_sync: Option<u64>,
    broken_at_copy: Option<u64>,
    power_until: Option<u64>,
    panic_at_sync: Option<u64>,
    panic_at_base: bool,
}

#[derive(Debug, Clone, Default)]
struct Inode {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    /// Written since the last sync, in order; neighbours are merged.
    dirty: Vec<Range<usize>>,
    /// Cut since the last sync.
    shrunk: bool,
}

#[derive(Debug, Clone)]
enum Change {
    Create(PathBuf, usize),
    Rename(PathBuf, PathBuf, usize),
    Remove(PathBuf),
}

impl FaultDisk {
    /// An empty disk without faults.
    pub fn new() -> FaultDisk {
        FaultDisk::default()
    }

    /// The disk after a loss of power. Seed 0 forgets everything that was not synced; every other seed is
    /// one of the many states in between. The disk itself goes on.
    pub fn crash(&self, seed: u64) -> FaultDisk {
        let state = self.state.lock();
        let mut chance = Chance { state: seed, hard: seed == 0 };
        let mut names = state.durable_names.clone();
        let keep = chance.below(4);
        for change in &state.changes {
            if !chance.hard && (keep == 0 || (keep < 3 && chance.below(2) == 0)) {
                change.apply(&mut names);
            }
        }
        let inodes = state.inodes.iter().map(|inode| inode.after_crash(&mut chance)).collect();
        let mut folders = state.durable_folders.clone();
        folders.extend(state.folders.iter().filter(|_| !chance.hard && chance.below(2) == 0).cloned());
        // A folder that was not made durable takes along what is in it.
        let reachable = |path: &Path| path.ancestors().skip(1).all(|up| is_root(up) || folders.contains(up));
        names.retain(|path, _| reachable(path));
        let folders: BTreeSet<_> = folders.iter().filter(|path| reachable(path)).cloned().collect();
        let after = State {
            inodes,
            durable_names: names.clone(),
            names,
            durable_folders: folders.clone(),
            folders,
            ..State::default()
        };
        FaultDisk { state: Arc::new(Mutex::new(after)) }
    }

    /// The `n`-th write from now (1 = the next) takes half of its bytes; then the disk is full.
    pub fn fill_at_write(&self, n: u64) {
        let mut state = self.state.lock();
        state.faults.full_at_write = Some(state.writes + n);
    }

    /// The `n`-th sync of a file from now (1 = the next) fails, and what it should have saved is lost for
    /// good, even if a later sync reports success: so do kernels.
    pub fn break_at_sync(&self, n: u64) {
        let mut state = self.state.lock();
        state.faults.broken_at_sync = Some(state.syncs + n);
    }

    /// The `n`-th copy into reserved space from now (1 = the next) takes half of its bytes and fails; later
    /// ones work.
    pub fn break_at_copy(&self, n: u64) {
        let mut state = self.state.lock();
        state.faults.broken_at_copy = Some(state.copies + n);
    }

    /// The `n`-th sync of a file from now (1 = the next) panics.
    pub fn panic_at_sync(&self, n: u64) {
        let mut state = self.state.lock();
        state.faults.panic_at_sync = Some(state.syncs + n);
    }

    /// Creating the base of a rewrite panics.
    pub fn panic_at_base(&self) {
        self.state.lock().faults.panic_at_base = true;
    }

    /// After `n` more changes nothing works any more.
    pub fn power_off_after(&self, n: u64) {
        let mut state = self.state.lock();
        state.faults.power_until = Some(state.operations + n);
    }

    /// Changes so far: writes, syncs, creations, renames, removals, cuts.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// The files that exist now, synced or not.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.state.lock().names.keys().cloned().collect()
    }

    /// The bytes of a file as a reader sees them, synced or not; `None` if it does not exist.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state.lock();
        state.names.get(path).map(|at| state.inodes[*at].bytes.clone())
    }

    /// Puts other bytes into a file, durably: what a bad sector or a helpful person does.
    pub fn overwrite(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.state.lock();
        let inode = Inode { durable: bytes.clone(), bytes, ..Inode::default() };
        state.inodes.push(inode);
        let at = state.inodes.len() - 1;
        for folder in path.ancestors().skip(1) {
            state.folders.insert(folder.to_owned());
            state.durable_folders.insert(folder.to_owned());
        }
        state.names.insert(path.to_owned(), at);
        state.durable_names.insert(path.to_owned(), at);
    }
}

impl State {
    /// Counts a change, or refuses it for want of power.
    fn operate(&mut self) -> io::Result<()> {
        if self.faults.power_until.is_some_and(|until| self.operations >= until) {
            return Err(io::Error::other("the power is gone"));
        }
        self.operations += 1;
        Ok(())
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.changes.push(change);
    }
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Change::Create(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            Change::Rename(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
            Change::Remove(path) => {
                names.remove(path);
            }
        }
    }

    fn folder(&self) -> Option<&Path> {
        match self {
            Change::Create(path, _) | Change::Rename(_, path, _) | Change::Remove(path) => path.parent(),
        }
    }
}

impl Inode {
    fn after_crash(&self, chance: &mut Chance) -> Inode {
        let bytes = match chance.below(4) {
            _ if chance.hard => self.durable.clone(),
            _ if self.shrunk && chance.below(2) == 0 => self.durable.clone(),
            0 => self.durable.clone(),
            1 => self.bytes.clone(),
            _ => self.torn(chance),
        };
        Inode { durable: bytes.clone(), bytes, ..Inode::default() }
    }

    /// A part of what was not synced, perhaps with a hole: sectors are written in any order.
    fn torn(&self, chance: &mut Chance) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        let (short, long) = (bytes.len().min(self.bytes.len()), bytes.len().max(self.bytes.len()));
        // The new size may be there before the bytes are, or the other way round.
        bytes.resize([short, long, short + chance.below(long - short + 1)][chance.below(3)], 0);
        let first = self.dirty.iter().map(|range| range.start).min().unwrap_or(0);
        let last = self.dirty.iter().map(|range| range.end).max().unwrap_or(first);
        let end = first + chance.below(last - first + 1);
        let mut hole = end..end;
        if chance.below(2) == 0 {
            hole.start = first + chance.below(end - first + 1);
            hole.end = hole.start + chance.below(end - hole.start + 1);
        }
        for at in self.dirty.iter().cloned().flatten().filter(|at| *at < end && !hole.contains(at)) {
            if bytes.len() <= at {
                bytes.resize(at + 1, 0);
            }
            bytes[at] = self.bytes[at];
        }
        bytes
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[at..end].copy_from_slice(bytes);
        match self.dirty.last_mut() {
            Some(range) if range.end == at => range.end = end,
            _ => self.dirty.push(at..end),
        }
    }

    fn truncate(&mut self, bytes: usize) {
        self.shrunk |= bytes < self.bytes.len();
        self.bytes.truncate(bytes);
        self.dirty.retain_mut(|range| {
            range.end = range.end.min(bytes);
            range.start < range.end
        });
    }

    fn sync(&mut self, broken: bool) {
        let dirty = std::mem::take(&mut self.dirty);
        if self.shrunk && !broken {
            self.durable.truncate(self.bytes.len());
        }
        self.durable.resize(self.durable.len().max(self.bytes.len()), 0);
        for range in dirty.into_iter().filter(|_| !broken) {
            self.durable[range.clone()].copy_from_slice(&self.bytes[range]);
        }
        self.shrunk = false;
    }
}

/// SplitMix64: small, and the same on every machine.
struct Chance {
    state: u64,
    hard: bool,
}

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

impl Files for FaultDisk {
    fn create_dir(&self, path: &Path) -> io::Result<bool> {
        let mut state = self.state.lock();
        if state.folders.contains(path) {
            return Ok(false);
        }
        if path.parent().is_some_and(|parent| !is_root(parent) && !state.folders.contains(parent)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.operate()?;
        state.folders.insert(path.to_owned());
        Ok(true)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        let inside = state.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let mut state = self.state.lock();
        let base = path.to_string_lossy().ends_with(".base.aof");
        assert!(!(base && state.faults.panic_at_base), "a base that panics, as asked");
        state.operate()?;
        state.inodes.push(Inode::default());
        let inode = state.inodes.len() - 1;
        state.change(Change::Create(path.to_owned(), inode));
        Ok(Box::new(Handle { state: Arc::clone(&self.state), inode }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let inode = self.state.lock().find(path)?;
        Ok(Box::new(Handle { state: Arc::clone(&self.state), inode }))
    }

    fn open_log(&self, path: &Path) -> io::Result<Arc<dyn LogFile>> {
        let inode = self.state.lock().find(path)?;
        Ok(Arc::new(Handle { state: Arc::clone(&self.state), inode }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.operate()?;
        let inode = state.find(from)?;
        state.change(Change::Rename(from.to_owned(), to.to_owned(), inode));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.operate()?;
        state.find(path)?;
        state.change(Change::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.operate()?;
        let (here, elsewhere) =
            std::mem::take(&mut state.changes).into_iter().partition(|c| c.folder() == Some(dir));
        state.changes = elsewhere;
        let here: Vec<Change> = here;
        here.iter().for_each(|change| change.apply(&mut state.durable_names));
        let folders: Vec<_> =
            state.folders.iter().filter(|path| path.parent() == Some(dir)).cloned().collect();
        state.durable_folders.extend(folders);
        Ok(())
    }

    fn try_lock(&self, path: &Path, note: &str) -> io::Result<TryLock> {
        if !self.state.lock().locks.insert(path.to_owned()) {
            return Ok(TryLock::Busy(note.to_owned()));
        }
        Ok(TryLock::Taken(Box::new(LockGuard { state: Arc::clone(&self.state), path: path.to_owned() })))
    }
}

/// Where a disk begins; it needs no sync.
fn is_root(path: &Path) -> bool {
    path.parent().is_none() || path == Path::new(".")
}

/// A lock that is held.
struct LockGuard {
    state: Arc<Mutex<State>>,
    path: PathBuf,
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.state.lock().locks.remove(&self.path);
    }
}

/// An open file; like a real one it outlives its name.
#[derive(Clone)]
struct Handle {
    state: Arc<Mutex<State>>,
    inode: usize,
}

impl OpenFile for Handle {
    fn size(&self) -> io::Result<u64> {
        Ok(self.state.lock().inodes[self.inode].bytes.len() as u64)
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let state = self.state.lock();
        let bytes = &state.inodes[self.inode].bytes;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = into.len().min(bytes.len() - from);
        into[..count].copy_from_slice(&bytes[from..from + count]);
        Ok(count)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state.lock();
        state.operate()?;
        state.writes += 1;
        let taken = match state.faults.full_at_write {
            Some(at) if state.writes > at => return Err(io::ErrorKind::StorageFull.into()),
            Some(at) if state.writes == at => bytes.len() / 2,
            _ => bytes.len(),
        };
        if taken == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let inode = &mut state.inodes[self.inode];
        inode.write(inode.bytes.len(), &bytes[..taken]);
        Ok(taken)
    }

    fn sync(&mut self) -> io::Result<()> {
        LogFile::sync(self)
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        LogFile::truncate(self, bytes)
    }
}

impl LogFile for Handle {
    fn reserve(&self, from: u64, bytes: usize, _: bool) -> io::Result<Box<dyn Space>> {
        let mut state = self.state.lock();
        state.operate()?;
        state.writes += 1;
        if state.faults.full_at_write.is_some_and(|at| state.writes >= at) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let inode = &mut state.inodes[self.inode];
        let end = inode.bytes.len().max(from + bytes);
        inode.bytes.resize(end, 0);
        Ok(Box::new(HandleSpace { handle: self.clone(), from, bytes }))
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.operate()?;
        state.syncs += 1;
        assert!(state.faults.panic_at_sync != Some(state.syncs), "a sync that panics, as asked");
        let broken = state.faults.broken_at_sync == Some(state.syncs);
        state.inodes[self.inode].sync(broken);
        if broken { Err(io::Error::other("input/output error")) } else { Ok(()) }
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.operate()?;
        state.inodes[self.inode].truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(())
    }
}

/// Reserved space of an open file.
struct HandleSpace {
    handle: Handle,
    from: usize,
    bytes: usize,
}

impl Space for HandleSpace {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.handle.state.lock();
        state.operate()?;
        state.copies += 1;
        let broken = state.faults.broken_at_copy == Some(state.copies);
        let inode = &mut state.inodes[self.handle.inode];
        let at = self.from + at;
        if at + bytes.len() > inode.bytes.len().min(self.from + self.bytes) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let taken = if broken { bytes.len() / 2 } else { bytes.len() };
        inode.write(at, &bytes[..taken]);
        if broken { Err(io::Error::other("input/output error")) } else { Ok(()) }
    }
}
