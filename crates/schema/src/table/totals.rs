//! `totals!`: sums by key that stay exact when their events are delivered again.
//!
//! A CQL counter counts a retried increment twice. Therefore a total is stored by source: the sum of all entries
//! of one log up to a position. A row is written with its position, so a replay changes nothing. A reader gets
//! the sum over all sources.

use super::check::{TableProblem, is_name};
use super::column::{ColumnType, Value};
use super::cql::cql_name;
use std::fmt::Write as _;

/// Sums by key, as data. Made by [`totals!`](crate::totals!), never by hand.
#[derive(Debug)]
pub struct TotalsDeclaration {
    /// Name of the type, as in code.
    pub row: &'static str,
    /// Name of the table that readers see: one row per key.
    pub name: &'static str,
    /// Name of the table with one row per key and source.
    pub by_source: &'static str,
    /// The documentation comment of the declaration.
    pub doc: &'static str,
    /// Name and type of the key column.
    pub key: (&'static str, ColumnType),
    /// The sums, in the order of the declaration.
    pub sums: &'static [SumDeclaration],
    /// The service that writes it.
    pub owner: &'static str,
}

/// One sum of totals, as data.
#[derive(Debug, Clone, Copy)]
pub struct SumDeclaration {
    /// Name of its column.
    pub name: &'static str,
    /// Recorded units that count as one for readers; the rest is kept and not shown.
    pub per: i64,
    /// The documentation comment of the sum.
    pub doc: &'static str,
}

/// Declared totals, implemented by [`totals!`](crate::totals!) only. The value is an amount for each sum: what
/// is added, or what was summed up.
pub trait Totals: Sized + Default + Send + Sync + 'static {
    /// Type of the key.
    type Key: super::Column;

    /// Everything declared, as data.
    const DECLARATION: &'static TotalsDeclaration;

    /// The amounts, in the order of the declaration.
    fn amounts(&self) -> Vec<i64>;

    /// Of amounts in the order of the declaration.
    fn from_amounts(amounts: &[i64]) -> Self;
}

/// What is wrong with a declaration, if anything is.
pub const fn diagnose_totals(totals: &TotalsDeclaration) -> Option<TableProblem> {
    use super::check::same;
    if !is_name(totals.name)
        || !is_name(totals.by_source)
        || !is_name(totals.key.0)
        || same(totals.name, totals.by_source)
    {
        return TableProblem::new_totals(
            totals.name,
            ": its names must differ and be lower case letters, digits and `_`",
        );
    }
    let mut at = 0;
    while at < totals.sums.len() {
        let sum = totals.sums[at];
        if !is_name(sum.name)
            || same(sum.name, totals.key.0)
            || same(sum.name, "last_updated")
            || same(sum.name, "position")
            || same(sum.name, "source")
        {
            return TableProblem::new_totals(
                sum.name,
                ": a sum's name must be lower case letters, digits and `_`, and none of the key, `source`, `position` and `last_updated`",
            );
        }
        if sum.per <= 0 {
            return TableProblem::new_totals(sum.name, ": `per` must be at least 1");
        }
        let mut before = 0;
        while before < at {
            if same(totals.sums[before].name, sum.name) {
                return TableProblem::new_totals(sum.name, ": this sum stands twice");
            }
            before += 1;
        }
        at += 1;
    }
    None
}

impl TotalsDeclaration {
    /// The statements that create both tables.
    pub fn to_cql(&self) -> String {
        let (key, of) = (cql_name(self.key.0), self.key.1);
        let mut sums = String::new();
        for sum in self.sums {
            writeln!(sums, "    {} bigint,", cql_name(sum.name)).expect("a String takes it");
        }
        let (name, by_source) = (self.name, self.by_source);
        format!(
            "CREATE TABLE IF NOT EXISTS {name} (\n    {key} {of},\n{sums}    last_updated timestamp,\n    PRIMARY KEY (({key}))\n);\n\n\
             CREATE TABLE IF NOT EXISTS {by_source} (\n    {key} {of},\n    source text,\n    position bigint,\n{sums}    last_updated timestamp,\n    PRIMARY KEY (({key}), source)\n) WITH CLUSTERING ORDER BY (source ASC);\n"
        )
    }

    /// Whether a value is a key of these totals.
    pub fn takes_key(&self, key: &Value) -> bool {
        key.is_of(self.key.1)
    }
}

/// Declares totals.
///
/// ```
/// use emberkeep_schema::{Totals, totals};
///
/// totals! {
///     /// What a player did, ever.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct PlayerStats = "player_stats" by "ember_stats_by_source" {
///         key: player_id: i64,
///         sums: {
///             /// Kills.
///             total_kills,
///             /// Recorded in milliseconds, read in whole minutes.
///             total_playtime_minutes per 60_000,
///         },
///         owner: "combat",
///     }
/// }
/// let one_kill = PlayerStats { total_kills: 1, ..PlayerStats::default() };
/// assert_eq!(one_kill.amounts(), [1, 0]);
/// ```
#[macro_export]
macro_rules! totals {
    ($(#[doc = $doc:expr])* $(#[derive($($derive:tt)*)])* $vis:vis struct $name:ident = $table:literal by $by_source:literal {
        key: $key:ident: $key_type:ty,
        sums: { $($(#[doc = $sum_doc:expr])* $sum:ident $(per $per:literal)?),+ $(,)? },
        owner: $owner:literal $(,)?
    }) => {
        $(#[doc = $doc])* $(#[derive($($derive)*)])* #[derive(Default)]
        $vis struct $name { $($(#[doc = $sum_doc])* pub $sum: i64,)+ }

        const _: () = {
            const DECLARATION: $crate::TotalsDeclaration = $crate::TotalsDeclaration {
                row: stringify!($name),
                name: $table,
                by_source: $by_source,
                doc: concat!("", $($doc, "\n"),*).trim_ascii(),
                key: (stringify!($key), <$key_type as $crate::Column>::TYPE),
                sums: &[$($crate::SumDeclaration {
                    name: stringify!($sum),
                    per: $crate::totals!(@per $($per)?),
                    doc: concat!("", $($sum_doc, "\n"),*).trim_ascii(),
                }),+],
                owner: $owner,
            };
            const _: () = if let ::core::option::Option::Some(problem) = &$crate::macro_support::diagnose_totals(&DECLARATION) {
                ::core::panic!("{}", problem.text());
            };

            impl $crate::Totals for $name {
                type Key = $key_type;

                const DECLARATION: &'static $crate::TotalsDeclaration = &DECLARATION;

                fn amounts(&self) -> ::std::vec::Vec<i64> {
                    ::std::vec![$(self.$sum),+]
                }

                fn from_amounts(amounts: &[i64]) -> Self {
                    let mut amounts = amounts.iter().copied();
                    $name { $($sum: amounts.next().unwrap_or(0)),+ }
                }
            }
        };
    };
    (@per) => { 1 };
    (@per $per:literal) => { $per };
}
