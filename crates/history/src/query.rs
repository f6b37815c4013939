//! A range of rows, put together by the caller and read page by page.

use crate::contract::{HistoryStore, RangeRequest, RawRow, UnreadableRow};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::limits::{PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX, PARTITIONS_MAX};
use crate::validate;
use emberkeep_schema::{Clustering, Column, Day, Order, Rows, Table, TableDeclaration, Timestamp, Value};
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// A range of a table's rows. Made by [`History::range`](crate::History::range).
pub struct Query<T: Table> {
    store: Arc<dyn HistoryStore>,
    lookup: Option<&'static str>,
    partitions: Vec<Vec<Option<Value>>>,
    /// `None` is refused when the page is read.
    equal: Vec<Option<Value>>,
    low: Bound<Value>,
    high: Bound<Value>,
    reversed: bool,
    rows_max: usize,
    table: PhantomData<fn() -> T>,
}

/// A page of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The rows, possibly fewer than asked for although more follow.
    pub rows: Vec<T>,
    /// Rows that are there and cannot be read, such as one with a text that its enum does not have. They do not hide
    /// the others, and are among those that the page was asked for.
    pub unreadable: Vec<UnreadableRow>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// The rows, if all of the page could be read; otherwise the error of the first that could not.
    pub fn into_rows(self) -> Result<Vec<T>> {
        match self.unreadable.into_iter().next() {
            None => Ok(self.rows),
            Some(first) => Err(first.error),
        }
    }
}

impl<T: Table> Query<T> {
    pub(crate) fn new(store: Arc<dyn HistoryStore>, rows: Rows<T>) -> Query<T> {
        Query {
            store,
            lookup: rows.lookup(),
            partitions: rows.into_partitions(),
            equal: Vec::new(),
            low: Bound::Unbounded,
            high: Bound::Unbounded,
            reversed: false,
            rows_max: PAGE_ROWS_DEFAULT,
            table: PhantomData,
        }
    }

    /// Only rows whose first clustering column lies in these bounds, such as times of a day.
    pub fn between(self, bounds: impl RangeBounds<T::First>) -> Self
    where
        T::First: Clone,
    {
        let value = |bound: Bound<&T::First>| match bound {
            Bound::Included(first) => {
                first.clone().clustering_value().map_or(Bound::Unbounded, Bound::Included)
            }
            Bound::Excluded(first) => {
                first.clone().clustering_value().map_or(Bound::Unbounded, Bound::Excluded)
            }
            Bound::Unbounded => Bound::Unbounded,
        };
        let (low, high) = (value(bounds.start_bound()), value(bounds.end_bound()));
        Query { low, high, ..self }
    }

    /// Only rows whose next clustering column has this value: the first call names the first one, and so on.
    /// A value of another type, and an absent one, are refused when the page is read.
    pub fn equal(mut self, value: impl Column) -> Self {
        self.equal.push(value.into_value());
        self
    }

    /// Against the declared order.
    pub fn reversed(self) -> Self {
        Query { reversed: true, ..self }
    }

    /// Most rows of a page, at most [`PAGE_ROWS_MAX`](crate::limits::PAGE_ROWS_MAX).
    pub fn rows_max(self, rows_max: usize) -> Self {
        Query { rows_max, ..self }
    }

    /// The first page, or the one after a cursor.
    pub async fn page(&self, after: Option<&Cursor>) -> Result<Page<T>> {
        let mut request = self.request()?;
        request.after = after.map(|cursor| cursor.position(&request)).transpose()?;
        let page = self.store.range(request.clone()).await?;
        let (mut rows, mut unreadable) = (Vec::with_capacity(page.rows.len()), page.unreadable);
        let key_places =
            T::DECLARATION.primary_key().into_iter().filter_map(|(name, _)| T::DECLARATION.index(name));
        let key_places: Vec<_> = key_places.collect();
        for row in page.rows {
            match read_or_name(&key_places, row) {
                Ok(row) => rows.push(row),
                Err(found) => unreadable.push(found),
            }
        }
        Ok(Page { rows, unreadable, next: page.next.map(|position| Cursor::new(&request, &position)) })
    }

    fn request(&self) -> Result<RangeRequest> {
        let table = T::DECLARATION;
        let key = match self.lookup.and_then(|name| table.lookup(name)) {
            Some(lookup) => table.lookup_key(lookup),
            None => table.primary_key(),
        };
        let width = self.partitions.first().map_or(0, Vec::len);
        validate::limit(
            format!("a range of {}", table.name),
            self.partitions.len(),
            "partitions",
            PARTITIONS_MAX,
        )?;
        if self.rows_max == 0 || self.rows_max > PAGE_ROWS_MAX {
            let problem = format!("{}, expected 1 to {PAGE_ROWS_MAX}", self.rows_max);
            return Err(Error::invalid("rows of a page", problem));
        }
        let clustering = &key[width..];
        let is_bounded = self.low != Bound::Unbounded || self.high != Bound::Unbounded;
        if self.equal.len() + usize::from(is_bounded) > clustering.len()
            || is_bounded && !self.equal.is_empty()
        {
            let problem = "bounds on more clustering columns than there are, or both `between` and `equal`";
            return Err(Error::invalid(table.name, problem));
        }
        let bounds = [&self.low, &self.high].into_iter().filter_map(bound_value);
        let equal_names = clustering.iter().map(|(name, _)| *name);
        let equal = validate::key(table, equal_names, self.equal.clone())?;
        for value in bounds.clone() {
            validate::column_value(table, clustering[0].0, value)?;
        }
        validate::key_limit(format!("the bounds of a range of {}", table.name), bounds)?;
        let names = || key[..width].iter().map(|(name, _)| *name);
        let partitions = self.partitions.iter().map(|values| validate::key(table, names(), values.clone()));
        let mut partitions = partitions.collect::<Result<Vec<_>>>()?;
        self.drop_days_out_of_bounds(table, names().collect(), &mut partitions);
        let is_descending = clustering.first().is_some_and(|(_, order)| *order == Order::Descending);
        if is_descending != self.reversed {
            partitions.reverse();
        }
        Ok(RangeRequest {
            table,
            lookup: self.lookup,
            partitions,
            equal,
            low: self.low.clone(),
            high: self.high.clone(),
            reversed: self.reversed,
            after: None,
            rows_max: self.rows_max,
        })
    }

    /// Days without a time in the bounds are not asked for.
    fn drop_days_out_of_bounds(
        &self,
        table: &TableDeclaration,
        names: Vec<&str>,
        partitions: &mut Vec<Vec<Value>>,
    ) {
        let Some(place) =
            table.bucket().and_then(|bucket| names.iter().position(|name| *name == bucket.name))
        else {
            return;
        };
        let day_of = |bound: &Bound<Value>| match bound_value(bound) {
            Some(Value::Timestamp(ms)) => Some(Timestamp(*ms).day()),
            _ => None,
        };
        let (first, last) = (day_of(&self.low), day_of(&self.high));
        partitions.retain(|values| {
            let Value::Text(text) = &values[place] else { return true };
            let Ok(day) = text.parse::<Day>() else { return true };
            first.is_none_or(|first| day >= first) && last.is_none_or(|last| day <= last)
        });
    }
}

fn bound_value(bound: &Bound<Value>) -> Option<&Value> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value),
        Bound::Unbounded => None,
    }
}

/// A row of the table's type, or its key and what is wrong with it.
fn read_or_name<T: Table>(key_places: &[usize], row: RawRow) -> std::result::Result<T, UnreadableRow> {
    let key: Vec<_> = key_places.iter().filter_map(|place| row[*place].clone()).collect();
    typed(row).map_err(|error| UnreadableRow { key, error })
}

/// A row of the table's type.
pub(crate) fn typed<T: Table>(row: Vec<Option<Value>>) -> Result<T> {
    T::from_values(row).map_err(|(column, reason)| Error::Corrupt {
        table: T::DECLARATION.name,
        column,
        reason,
    })
}
