//! The tables and totals that a program uses, with those of history itself.

use crate::error::{Error, Result};
use crate::log_claims::LogClaims;
use crate::log_tables::{ClosedSource, DeadLetter, LogPosition};
use emberkeep_schema::{Table, TableDeclaration, Totals, TotalsDeclaration};

/// The tables and totals that a program uses. A new schema has the tables of history itself: positions of logs,
/// claims of entries under way, dead letters, closed sources.
///
/// ```
/// # emberkeep_schema::totals! {
/// #     /// Sums.
/// #     pub struct Stats = "stats" by "stats_by_source" { key: id: i64, sums: { kills }, owner: "test" }
/// # }
/// use emberkeep_history::HistorySchema;
///
/// let schema = HistorySchema::new().totals::<Stats>();
/// assert!(schema.tables().iter().any(|table| table.name == "ember_dead_letters"));
/// assert_eq!(schema.all_totals()[0].name, "stats");
/// ```
#[derive(Debug, Clone)]
pub struct HistorySchema {
    tables: Vec<&'static TableDeclaration>,
    totals: Vec<&'static TotalsDeclaration>,
}

impl Default for HistorySchema {
    fn default() -> HistorySchema {
        let tables = vec![
            LogPosition::DECLARATION,
            LogClaims::DECLARATION,
            DeadLetter::DECLARATION,
            ClosedSource::DECLARATION,
        ];
        HistorySchema { tables, totals: Vec::new() }
    }
}

impl HistorySchema {
    /// The tables of history itself.
    pub fn new() -> HistorySchema {
        HistorySchema::default()
    }

    /// Adds a table. Its name must differ from all others.
    pub fn table<T: Table>(mut self) -> HistorySchema {
        self.tables.push(T::DECLARATION);
        self
    }

    /// Adds totals with their two tables.
    pub fn totals<T: Totals>(mut self) -> HistorySchema {
        self.totals.push(T::DECLARATION);
        self
    }

    /// All tables: first those of history itself, then the program's in the order in which they were added.
    pub fn tables(&self) -> &[&'static TableDeclaration] {
        &self.tables
    }

    /// All totals, in the order in which they were added.
    pub fn all_totals(&self) -> &[&'static TotalsDeclaration] {
        &self.totals
    }

    /// Refuses two tables of one name, the query tables and indexes of lookups on CQL included. A store calls it when
    /// it is opened.
    pub fn check(&self) -> Result<()> {
        let mut names: Vec<String> = Vec::new();
        for table in &self.tables {
            names.push(table.name.to_owned());
            names.extend(table.lookups.iter().map(|lookup| table.query_table(lookup)));
            names.extend(table.lookups.iter().filter_map(|lookup| lookup.index).map(str::to_owned));
        }
        names
            .extend(self.totals.iter().flat_map(|totals| [totals.name, totals.by_source]).map(str::to_owned));
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Error::invalid("schema", format!("two tables are named {}", pair[0]))),
            None => Ok(()),
        }
    }
}
