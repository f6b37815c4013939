//! A scan of one stored partition, from its beginning or after a position.
//!
//! After a position (a, b, c) follow, in this order: rows with a, b and a later c; rows with a and a later b; rows with a
//! later a. Each is one statement, because CQL compares several columns at once only if all have the same order.

use crate::cluster::{Cluster, Mode, Statement};
use crate::plan::{StoredTable, TablePlan};
use crate::values::{self, Cell};
use emberkeep_history::limits::PAGE_BYTES_MAX;
use emberkeep_history::{RangeRequest, RawRow, Result};
use emberkeep_schema::{Order, Value, cql_name};
use std::ops::Bound;

/// A row that was found.
#[derive(Debug)]
pub(crate) struct FoundRow {
    /// Its primary key, if another column cannot be read.
    pub(crate) key: Vec<Value>,
    /// Its values in the order of the range, without the partition's.
    pub(crate) clustering: Vec<Value>,
    /// All its values; or the column that cannot be read, and why.
    pub(crate) values: std::result::Result<RawRow, values::Problem>,
}

/// What a scan found.
#[derive(Debug, Default)]
pub(crate) struct ScanResult {
    pub(crate) rows: Vec<FoundRow>,
    /// There are more rows, because these are large.
    pub(crate) is_cut: bool,
}

/// A scan of a partition.
pub(crate) struct Scan<'s> {
    pub(crate) plan: &'s TablePlan,
    pub(crate) table: &'s StoredTable,
    /// The partition, or the columns of a secondary index.
    pub(crate) fixed: Vec<(&'static str, Value)>,
    pub(crate) request: &'s RangeRequest,
    pub(crate) after: Option<&'s [Value]>,
    pub(crate) wanted: usize,
    /// The places of the clustering columns of the range, if it is one of a secondary index.
    pub(crate) index: Option<&'s [usize]>,
}

impl Scan<'_> {
    /// The rows, at most `wanted`.
    pub(crate) async fn rows(&self, cluster: &Cluster) -> Result<ScanResult> {
        let mut found = ScanResult::default();
        let name = self.plan.declaration.name;
        for statement in self.statements() {
            let left = self.wanted - found.rows.len();
            let (rows, is_cut) =
                cluster.read(name, Mode::Idempotent, &statement, left, PAGE_BYTES_MAX).await?;
            found.rows.extend(rows.into_iter().map(|row| self.found(row)));
            if is_cut || found.rows.len() >= self.wanted {
                found.is_cut = is_cut;
                break;
            }
        }
        Ok(found)
    }

    fn found(&self, row: scylla::value::Row) -> FoundRow {
        let (values, problem) = values::read_values(self.plan.declaration, row);
        let clustering = match self.index {
            Some(places) => places.iter().filter_map(|place| values[*place].clone()).collect(),
            None => self.table.clustering_of(&values),
        };
        match problem {
            None => FoundRow { key: Vec::new(), clustering, values: Ok(values) },
            // The columns of the key are readable even if another one is not.
            Some(problem) => {
                FoundRow { key: self.plan.key_of_row(&values), clustering, values: Err(problem) }
            }
        }
    }

    fn statements(&self) -> Vec<Statement> {
        let (first, columns) = (self.request.equal.len(), self.table.clustering.len());
        match self.after {
            None => vec![self.statement(&self.request.equal, None)],
            Some(after) => (first..columns)
                .rev()
                .map(|place| self.statement(&after[..place], Some(&after[place])))
                .collect(),
        }
    }

    /// The rows whose first clustering columns are equal to `prefix`, and whose next one is beyond `after`.
    fn statement(&self, prefix: &[Value], after: Option<&Value>) -> Statement {
        let fixed = self.fixed.iter().map(|(name, value)| (*name, "=", value));
        let names = self.table.clustering.iter().map(|(_, name, _)| *name);
        let equal = names.zip(prefix).map(|(name, value)| (name, "=", value));
        let mut conditions: Vec<(&str, &str, &Value)> = fixed.chain(equal).collect();
        if let Some((_, name, order)) = self.table.clustering.get(prefix.len()) {
            let is_ascending = (*order == Order::Ascending) != self.request.reversed;
            let is_bounded = prefix.len() == self.request.equal.len();
            // The position replaces the bound that the scan comes from.
            let (has_low, has_high) = (after.is_none() || !is_ascending, after.is_none() || is_ascending);
            match &self.request.low {
                Bound::Included(low) if is_bounded && has_low => conditions.push((name, ">=", low)),
                Bound::Excluded(low) if is_bounded && has_low => conditions.push((name, ">", low)),
                _ => {}
            }
            match &self.request.high {
                Bound::Included(high) if is_bounded && has_high => conditions.push((name, "<=", high)),
                Bound::Excluded(high) if is_bounded && has_high => conditions.push((name, "<", high)),
                _ => {}
            }
            if let Some(after) = after {
                conditions.push((name, if is_ascending { ">" } else { "<" }, after));
            }
        }
        let texts: Vec<_> =
            conditions.iter().map(|(name, sign, _)| format!("{} {sign} ?", cql_name(name))).collect();
        let cells = conditions.iter().map(|(_, _, value)| Cell::Value((*value).clone()));
        let limit = Cell::Value(Value::Int(i32::try_from(self.wanted).unwrap_or(i32::MAX)));
        let text = format!(
            "{} WHERE {}{} LIMIT ?{}",
            self.table.select,
            texts.join(" AND "),
            self.order_by(),
            self.filtering()
        );
        Statement { text: text.into(), cells: cells.chain([limit]).collect() }
    }

    fn order_by(&self) -> String {
        if !self.request.reversed || self.index.is_some() || self.table.clustering.is_empty() {
            return String::new();
        }
        let word = |order: &Order| if *order == Order::Ascending { "DESC" } else { "ASC" };
        let columns = self
            .table
            .clustering
            .iter()
            .map(|(_, name, order)| format!("{} {}", cql_name(name), word(order)));
        format!(" ORDER BY {}", columns.collect::<Vec<_>>().join(", "))
    }

    /// The rows are those of one value inside of one partition, so that little is filtered.
    fn filtering(&self) -> &'static str {
        if self.index.is_some() { " ALLOW FILTERING" } else { "" }
    }
}
