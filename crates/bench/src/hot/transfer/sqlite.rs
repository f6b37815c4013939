//! The same transfers in SQLite: bundled, write-ahead log, prepared statements, a connection for each thread.

use super::{ACCOUNTS, Events, GOLD_EACH, LOOK_EVERY, by_threads, pairs};
use anyhow::{Result, ensure};
use rusqlite::{Connection, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::time::Duration;

const TABLES: &str = "
    CREATE TABLE wallet (account INTEGER PRIMARY KEY, gold INTEGER NOT NULL, held INTEGER NOT NULL, transfers INTEGER NOT NULL);
    CREATE TABLE transferred (sequence INTEGER PRIMARY KEY, payer INTEGER, payee INTEGER, gold INTEGER);
";
const READ: &str = "SELECT gold, transfers FROM wallet WHERE account = ?1";
const WRITE: &str = "UPDATE wallet SET gold = ?2, transfers = ?3 WHERE account = ?1";
const EVENT: &str = "INSERT INTO transferred (payer, payee, gold) VALUES (?1, ?2, ?3)";

/// A database with full wallets.
pub(super) struct Sqlite {
    file: PathBuf,
    events: Events,
}

impl Sqlite {
    pub(super) fn new(folder: &Path, events: Events) -> Result<Sqlite> {
        let sqlite = Sqlite { file: folder.join("wallets.sqlite"), events };
        let mut connection = sqlite.connect()?;
        connection.execute_batch(TABLES)?;
        let transaction = connection.transaction()?;
        for account in 0..ACCOUNTS {
            transaction.execute("INSERT INTO wallet VALUES (?1, ?2, 0, 0)", params![account, GOLD_EACH])?;
        }
        transaction.commit()?;
        Ok(sqlite)
    }

    fn connect(&self) -> Result<Connection> {
        let connection = Connection::open(&self.file)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        Ok(connection)
    }

    /// Transfers per second by so many threads together.
    pub(super) fn rate(&self, threads: usize, time: Duration) -> Result<f64> {
        let rate = by_threads(threads, time, |thread, done| {
            let mut connection = self.connect()?;
            for batch in pairs(thread).chunks(LOOK_EVERY).cycle() {
                for (from, to) in batch {
                    transfer(&mut connection, *from, *to, self.events)?;
                }
                if done(batch.len() as u64) {
                    break;
                }
            }
            Ok(())
        })?;
        let total: i64 = self.connect()?.query_row("SELECT SUM(gold) FROM wallet", [], |row| row.get(0))?;
        ensure!(total == i64::from(ACCOUNTS) * GOLD_EACH, "gold was lost or made in SQLite");
        Ok(rate)
    }
}

fn transfer(connection: &mut Connection, from: u32, to: u32, events: Events) -> Result<bool> {
    // Immediate: a transaction that first reads and then writes would fail beside another writer.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let read = |account: u32| {
        let mut statement = transaction.prepare_cached(READ)?;
        statement.query_row([account], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
    };
    let ((payer, paid), (payee, received)) = (read(from)?, read(to)?);
    if payer < 1 {
        return Ok(false);
    }
    transaction.prepare_cached(WRITE)?.execute(params![from, payer - 1, paid + 1])?;
    transaction.prepare_cached(WRITE)?.execute(params![to, payee + 1, received + 1])?;
    if events == Events::Yes {
        transaction.prepare_cached(EVENT)?.execute(params![from, to, 1])?;
    }
    transaction.commit()?;
    Ok(true)
}
