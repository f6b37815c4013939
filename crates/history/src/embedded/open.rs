//! Opening a folder: lock, store, ledger, catalog, windows. Any doubt ends it before a table can be read.

use super::catalog::Entry;
use super::clock::Ticker;
use super::ledger::{Batch, LEDGER_NAME, Ledger, damaged, folder_error};
use super::options::Options;
use super::table::{OpenTable, Window, keyspace_name, lookups_name, open_keyspace};
use super::totals::OpenTotals;
use super::{Shared, folder_lock, format, journal_files, store_error, store_files};
use crate::error::{Error, Result};
use crate::limits::{LOCK_WAIT, STORE_CACHE_BYTES, STORE_JOURNAL_BYTES, STORE_WORKER_THREADS};
use crate::schema::HistorySchema;
use fjall::{Database, Keyspace, PersistMode};
use std::collections::{BTreeSet, HashMap, btree_map};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const STORE_FOLDER: &str = "store";
/// Folder of keyspaces in that of the store, and the one that the store makes for itself.
const STORE_KEYSPACES: &str = "keyspaces";
const STORE_OWN_KEYSPACE: &str = "0";
const CATALOG: &str = "ember_catalog";
const JOURNAL_COPY: &str = "journal-before-recovery";
const UNFINISHED_COPY: &str = "journal-before-recovery.unfinished";
const COPY_BLOCK_BYTES: usize = 64 * 1024;
/// Between two tries to open a store that is still being closed.
const OPEN_POLL: Duration = Duration::from_millis(10);
pub(super) const CLEAN_NAME: &str = "CLEAN";
pub(super) const BATCH_KEY: &str = "batch";

/// Everything that the store is made of.
pub(super) struct Opened {
    pub(super) shared: Shared,
    pub(super) ledger: Ledger,
    pub(super) catalog: Keyspace,
}

pub(super) fn open(folder: &Path, schema: HistorySchema, options: &Options) -> Result<Opened> {
    schema.check()?;
    if schema.tables().iter().any(|table| table.name == CATALOG) {
        return Err(Error::invalid("schema", format!("{CATALOG} is a table of the store itself")));
    }
    if !(1..=u32::MAX as usize).contains(&options.queue_rows_max) {
        let problem = format!("{}, expected 1 to {}", options.queue_rows_max, u32::MAX);
        return Err(Error::invalid("queue_rows_max", problem));
    }
    if !(1..=u32::MAX as usize).contains(&options.queue_bytes_max) {
        let problem = format!("{}, expected 1 to {}", options.queue_bytes_max, u32::MAX);
        return Err(Error::invalid("queue_bytes_max", problem));
    }
    fs::create_dir_all(folder).map_err(|error| folder_error(folder, &error))?;
    let lock = folder_lock::take(folder)?;
    format::check(folder, options.accept_loss)?;
    let store = folder.join(STORE_FOLDER);
    remove_unfinished(folder, &store)?;
    let copy = keep_journal(folder, &store)?;
    store_files::check(&store)?;
    if !options.accept_loss {
        journal_files::check(&store)?;
    }
    let database = open_database(folder, &store)?;
    let catalog = open_keyspace(&database, CATALOG)?;
    let stored = catalog.get(BATCH_KEY).map_err(|error| store_error(CATALOG, &error))?;
    let stored = match stored {
        Some(bytes) => Some(
            Batch::from_bytes(&bytes).ok_or_else(|| damaged(&store, "its batch number is not one".into()))?,
        ),
        None => None,
    };
    // The ledger will say that all of it is on disk. What a killed process wrote may not be there yet.
    database.persist(PersistMode::SyncAll).map_err(|error| store_error("a sync", &error))?;
    let ledger = Ledger::open(folder, stored, options.accept_loss)?;
    let shared = Shared {
        tables: open_tables(&database, &catalog, &schema)?,
        totals: open_totals(&database, &catalog, &schema)?,
        database,
        folder: folder.to_owned(),
        ticker: Ticker::new(options.clock.clone()),
        _lock: lock,
    };
    if let Some(copy) = copy {
        fs::remove_dir_all(&copy).map_err(|error| folder_error(&copy, &error))?;
    }
    let clean = folder.join(CLEAN_NAME);
    if clean.exists() {
        fs::remove_file(&clean).map_err(|error| folder_error(&clean, &error))?;
    }
    Ok(Opened { shared, ledger, catalog })
}

/// A process that was killed while it made the store leaves half of one, which the store below refuses for ever. Nothing is in
/// it: the ledger comes after the store, and so does every keyspace but its own, the first.
fn remove_unfinished(folder: &Path, store: &Path) -> Result<()> {
    if !store.exists() || folder.join(LEDGER_NAME).exists() {
        return Ok(());
    }
    let failed = |error: std::io::Error| folder_error(store, &error);
    let keyspaces = store.join(STORE_KEYSPACES);
    if keyspaces.exists() {
        for entry in fs::read_dir(&keyspaces).map_err(failed)? {
            if entry.map_err(failed)?.file_name() != STORE_OWN_KEYSPACE {
                return Ok(());
            }
        }
    }
    fs::remove_dir_all(store).map_err(failed)
}

/// After a crash the store below repairs its journal in place, and cuts it off at damage. A copy of its files
/// is kept until the ledger has shown that nothing is missing. A copy of an earlier, failed open stays.
fn keep_journal(folder: &Path, store: &Path) -> Result<Option<PathBuf>> {
    let copy = folder.join(JOURNAL_COPY);
    if copy.exists() {
        return Ok(Some(copy));
    }
    if folder.join(CLEAN_NAME).exists() || !store.exists() {
        return Ok(None);
    }
    let failed = |error: std::io::Error| folder_error(&copy, &error);
    // Under its own name only when it is complete.
    let unfinished = folder.join(UNFINISHED_COPY);
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(failed)?;
    }
    fs::create_dir(&unfinished).map_err(failed)?;
    for entry in fs::read_dir(store).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "jnl")
            && let Some(name) = path.file_name()
        {
            copy_written(&path, &unfinished.join(name)).map_err(failed)?;
        }
    }
    fs::rename(&unfinished, &copy).map_err(failed)?;
    Ok(Some(copy))
}

/// Copies a file without its zeros: a journal has 64 MB reserved and is mostly empty.
fn copy_written(from: &Path, to: &Path) -> std::io::Result<()> {
    let (mut source, target) = (File::open(from)?, File::create(to)?);
    let (mut block, zeros, mut at) = (vec![0; COPY_BLOCK_BYTES], vec![0; COPY_BLOCK_BYTES], 0);
    loop {
        let count = source.read(&mut block)?;
        if count == 0 {
            break;
        }
        if block[..count] != zeros[..count] {
            target.write_all_at(&block[..count], at)?;
        }
        at += count as u64;
    }
    target.set_len(at)?;
    target.sync_all()
}

fn open_database(folder: &Path, store: &Path) -> Result<Database> {
    let open = || {
        Database::builder(store)
            .cache_size(STORE_CACHE_BYTES)
            .max_journaling_size(STORE_JOURNAL_BYTES)
            .worker_threads(STORE_WORKER_THREADS)
            .open()
    };
    let begun = Instant::now();
    // The store below panics on some kinds of damage.
    let mut opened = std::panic::catch_unwind(open);
    // It has a lock of its own, which the kernel may free after ours.
    while matches!(opened, Ok(Err(fjall::Error::Locked))) && begun.elapsed() < LOCK_WAIT {
        std::thread::sleep(OPEN_POLL);
        opened = std::panic::catch_unwind(open);
    }
    match opened {
        Ok(Ok(database)) => Ok(database),
        Ok(Err(fjall::Error::Locked)) => Err(folder_lock::in_use(folder, "another process")),
        Ok(Err(error)) => match store_error(&store.display().to_string(), &error) {
            Error::Stopped { reason } => {
                Err(Error::Folder { path: folder.display().to_string(), problem: reason })
            }
            other => Err(other),
        },
        Err(_) => Err(damaged(store, "its files cannot be read".into())),
    }
}

fn entry(catalog: &Keyspace, name: &str) -> Result<Option<Entry>> {
    let bytes = catalog.get(format!("table/{name}")).map_err(|error| store_error(CATALOG, &error))?;
    let damaged = || damaged(Path::new(CATALOG), format!("the entry of {name} does not have its checksum"));
    bytes.map(|bytes| Entry::from_bytes(&bytes).ok_or_else(damaged)).transpose()
}

/// The key of a window in the catalog.
pub(super) fn window_key(table: &str, window: i64) -> String {
    format!("window/{table}/{window}")
}

fn open_tables(
    database: &Database,
    catalog: &Keyspace,
    schema: &HistorySchema,
) -> Result<HashMap<&'static str, OpenTable>> {
    let mut tables = HashMap::new();
    for declaration in schema.tables() {
        let stored = entry(catalog, declaration.name)?;
        let (entry, missing) = Entry::with_table(stored.clone(), declaration)?;
        let table = OpenTable::new(declaration, &entry);
        open_windows(database, catalog, &table, stored.as_ref())?;
        for lookup in missing {
            super::retention::build_lookup(database, &table, lookup)?;
        }
        if stored.as_ref() != Some(&entry) {
            put_entry(catalog, declaration.name, &entry)?;
        }
        tables.insert(declaration.name, table);
    }
    Ok(tables)
}

fn put_entry(catalog: &Keyspace, name: &str, entry: &Entry) -> Result<()> {
    let put = catalog.insert(format!("table/{name}"), entry.to_bytes());
    put.map_err(|error| store_error(CATALOG, &error))
}

/// Opens the windows that the catalog names; one that is missing is damage. One that it does not name was created
/// and never written, or its rows have all expired. It is adopted: the store below gives the id of a keyspace
/// that was deleted to the next one, and may then take that for the deleted one.
fn open_windows(
    database: &Database,
    catalog: &Keyspace,
    table: &OpenTable,
    stored: Option<&Entry>,
) -> Result<()> {
    let name = table.declaration.name;
    let mut windows = table.windows.write();
    let prefix = window_key(name, 0).trim_end_matches('0').to_owned();
    for guard in catalog.prefix(&prefix) {
        let key = guard.key().map_err(|error| store_error(CATALOG, &error))?;
        let window = std::str::from_utf8(&key[prefix.len()..]).ok().and_then(|text| text.parse().ok());
        let window: i64 =
            window.ok_or_else(|| damaged(Path::new(CATALOG), format!("a window of {name} has no number")))?;
        let is_missing = |keyspace: String| !database.keyspace_exists(&keyspace);
        let had_lookups = stored.is_some_and(|entry| !entry.lookups.is_empty());
        if is_missing(keyspace_name(name, window)) || had_lookups && is_missing(lookups_name(name, window)) {
            return Err(damaged(
                Path::new(&format!("table {name}")),
                format!("its window {window} is missing"),
            ));
        }
        windows.insert(window, Window::open(database, table.declaration, window)?);
    }
    let prefix = format!("{name}@");
    let number = |keyspace: &str| keyspace.strip_prefix(&prefix)?.split('@').next()?.parse::<i64>().ok();
    let existing: BTreeSet<_> =
        database.list_keyspace_names().iter().filter_map(|name| number(name)).collect();
    for window in existing {
        let btree_map::Entry::Vacant(unnamed) = windows.entry(window) else { continue };
        unnamed.insert(Window::open(database, table.declaration, window)?);
        let put = catalog.insert(window_key(name, window), []);
        put.map_err(|error| store_error(CATALOG, &error))?;
    }
    Ok(())
}

fn open_totals(
    database: &Database,
    catalog: &Keyspace,
    schema: &HistorySchema,
) -> Result<HashMap<&'static str, OpenTotals>> {
    let mut all = HashMap::new();
    for declaration in schema.all_totals() {
        let stored = entry(catalog, declaration.by_source)?;
        let entry = Entry::with_totals(stored.clone(), declaration)?;
        // The catalog's entry is written after the keyspace, so an entry without one is damage.
        if stored.is_some() && !database.keyspace_exists(declaration.by_source) {
            return Err(damaged(
                Path::new(&format!("table {}", declaration.by_source)),
                "it is missing".into(),
            ));
        }
        let keyspace = open_keyspace(database, declaration.by_source)?;
        if stored.as_ref() != Some(&entry) {
            put_entry(catalog, declaration.by_source, &entry)?;
        }
        all.insert(declaration.name, OpenTotals::open(declaration, &entry, keyspace)?);
    }
    Ok(all)
}
