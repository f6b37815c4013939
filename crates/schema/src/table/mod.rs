//! `table!`: declares a history table once; row type, keys, lookups and CQL derive from that.

mod check;
mod column;
mod cql;
mod declaration;
mod time;
mod totals;
mod words;

pub use check::{TableProblem, diagnose_table};
pub use column::{Column, ColumnType, Value};
pub use cql::{CqlLayout, cql_name};
pub use declaration::{
    ColumnDeclaration, Compaction, DeprecatedColumn, Lookup, Order, RowTtl, Slices, TableDeclaration, Writes,
};
pub use time::{Day, InvalidDay, Timestamp};
pub use totals::{SumDeclaration, Totals, TotalsDeclaration, diagnose_totals};
pub use words::{day_of, length_ms, name_number, order_of, writes_of};

use std::marker::PhantomData;
use std::ops::RangeInclusive;

/// A declared history table, implemented for its row type by [`table!`](crate::table!) only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a row of a history table",
    note = "history tables are declared with `table!`"
)]
pub trait Table: Sized + Send + Sync + 'static {
    /// Type of the first clustering column; `()` if there is none.
    type First: Clustering;

    /// Everything declared, as data.
    const DECLARATION: &'static TableDeclaration;

    /// The values of all columns, in the order of the declaration.
    fn into_values(self) -> Vec<Option<Value>>;

    /// Reads a row from the values of all columns. The error names the column and says what is wrong with it.
    fn from_values(values: Vec<Option<Value>>) -> Result<Self, (&'static str, String)>;

    /// The key of this row.
    fn row_key(&self) -> RowKey<Self>;
}

/// The first clustering column of a table, or `()`.
pub trait Clustering {
    /// Its value; `None` for `()`.
    fn clustering_value(self) -> Option<Value>;
}

impl Clustering for () {
    fn clustering_value(self) -> Option<Value> {
        None
    }
}

impl<C: Column> Clustering for C {
    fn clustering_value(self) -> Option<Value> {
        self.into_value()
    }
}

/// The type of a table's column, found by the number of its name. For the macro.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a key or lookup of `{Self}` names a column that is not declared",
    label = "compare the names in `partition:`, `clustering:` and `lookups:` with the columns"
)]
pub trait ColumnNamed<const NUMBER: u64> {
    /// The column's Rust type.
    type Type;
}

/// The type of a bucket column: a day, or several days that follow each other.
#[derive(Debug)]
pub struct DayBucket;

/// A value for one column of a partition key.
#[diagnostic::on_unimplemented(message = "`{Self}` is not a value of this key column, which is `{C}`")]
pub trait PartitionValue<C> {
    /// The values; several only for a range of days.
    fn partition_values(self) -> Vec<Option<Value>>;
}

impl<C: Column> PartitionValue<C> for C {
    fn partition_values(self) -> Vec<Option<Value>> {
        vec![self.into_value()]
    }
}

impl PartitionValue<String> for &str {
    fn partition_values(self) -> Vec<Option<Value>> {
        vec![Some(Value::Text(self.to_owned()))]
    }
}

impl PartitionValue<DayBucket> for Day {
    fn partition_values(self) -> Vec<Option<Value>> {
        vec![self.into_value()]
    }
}

impl PartitionValue<DayBucket> for RangeInclusive<Day> {
    fn partition_values(self) -> Vec<Option<Value>> {
        // One more than any store takes, so that the store can refuse the range.
        let last =
            self.end().number().min(self.start().number().saturating_add(crate::limits::DAYS_MAX as i32));
        (self.start().number()..=last).map(|day| Day::from_number(day).and_then(Day::into_value)).collect()
    }
}

/// The primary key of a row. Made by the function `key` of the row type.
#[derive(Debug, Clone, PartialEq)]
pub struct RowKey<T> {
    values: Vec<Option<Value>>,
    table: PhantomData<fn() -> T>,
}

impl<T: Table> RowKey<T> {
    #[doc(hidden)]
    pub fn new(named: Vec<(&'static str, Option<Value>)>) -> RowKey<T> {
        RowKey { values: T::DECLARATION.key_values(named), table: PhantomData }
    }

    /// The values in the order of the primary key. One is `None` if its time is not valid.
    pub fn into_values(self) -> Vec<Option<Value>> {
        self.values
    }
}

/// One partition of a table or of a lookup, or those of several days. Made by the function `partition` of the
/// row type, or by one of the name of a lookup.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows<T> {
    lookup: Option<&'static str>,
    partitions: Vec<Vec<Option<Value>>>,
    table: PhantomData<fn() -> T>,
}

impl<T: Table> Rows<T> {
    #[doc(hidden)]
    pub fn new(lookup: Option<&'static str>, columns: Vec<Vec<Option<Value>>>) -> Rows<T> {
        let mut partitions = vec![Vec::new()];
        for values in columns {
            let extended = |value: &Option<Value>| {
                let value = value.clone();
                partitions.iter().map(move |partition: &Vec<Option<Value>>| {
                    partition.iter().cloned().chain([value.clone()]).collect()
                })
            };
            partitions = values.iter().flat_map(extended).collect();
        }
        Rows { lookup, partitions, table: PhantomData }
    }

    /// The lookup, if these are not in the table's own order.
    pub fn lookup(&self) -> Option<&'static str> {
        self.lookup
    }

    /// The partition keys, days ascending.
    pub fn into_partitions(self) -> Vec<Vec<Option<Value>>> {
        self.partitions
    }
}

/// Declares a history table: the type of its rows, with its keys and lookups.
///
/// ```
/// use emberkeep_schema::{Day, Table, Timestamp, table};
/// use uuid::Uuid;
///
/// table! {
///     /// Who was where.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct Visit = "visits" {
///         /// When.
///         pub timestamp: Timestamp,
///         /// Decides ties.
///         pub visit_id: Uuid,
///         /// The visitor.
///         pub player_id: i64,
///         /// Where from, if known.
///         pub origin: Option<String>,
///     }
///     partition: (day_bucket = day(timestamp)),           // derived, so the row has no such field
///     clustering: (timestamp desc, visit_id asc),
///     ttl: days(30) of timestamp,                         // or days(30) after the last write, or persistent
///     compaction: time_window(days(1)),                   // or leveled; may be left out
///     slices: (minutes(1), 16),                           // for the layout `scaled`; may be left out
///     lookups: (by_player(player_id, day_bucket)),        // may be left out
///     writes: events,                                     // or rows, versioned, conditional
///     deprecated: (device(String, since "2026-11-19")),   // a former column; may be left out
///     owner: "world",
/// }
/// let day: Day = "2024-01-01".parse().unwrap();
/// let one_day = Visit::partition(day);
/// let a_week_of_one_player = Visit::by_player(7, day..=Day::from_number(day.number() + 6).unwrap());
/// assert_eq!(a_week_of_one_player.into_partitions().len(), 7);
/// assert_eq!(Visit::DECLARATION.columns[0].name, "day_bucket");
/// # let _ = one_day;
/// ```
///
/// The lines may stand in any order. A mistake in any of it is a compile error.
///
/// `writes:` says how rows change, and with it which calls the table has; see [`Writes`](crate::Writes).
///
/// On CQL a lookup is a query table `ember_{table}_{lookup}`. `by_player(player_id) table "name"` gives it another
/// name, and `by_player(player_id) index "name"` makes it a secondary index in the layout `document`.
///
/// `deprecated: (origin(String, since "2026-11-19"))` names a column that the row has no more: nothing writes it, its values stay
/// in rows that have it, and 30 days later `schema apply --drop` may remove it from a cluster. The line may be removed then.
///
/// Besides the [`Table`](crate::Table) implementation, the row type has `key(columns…)`, the primary key
/// without the bucket; `partition(columns…)`; and a function for each lookup. A bucket takes a
/// [`Day`](crate::Day) or a range of days.
#[macro_export]
macro_rules! table {
    ($(#[doc = $doc:expr])* $(#[derive($($derive:tt)*)])* $vis:vis struct $name:ident = $table:literal {
        $($(#[doc = $field_doc:expr])* $field_vis:vis $field:ident: $type:ty),* $(,)?
    } $($lines:tt)*) => {
        $(#[doc = $doc])* $(#[derive($($derive)*)])*
        $vis struct $name { $($(#[doc = $field_doc])* $field_vis $field: $type,)* }

        $crate::table! { @read
            [[$($doc)*] [$vis] $name $table [$({ [$($field_doc)*] $field $type })*]]
            partition[] clustering[] ttl[] compaction[] slices[] lookups[] owner[] writes[] deprecated[]
            $($lines)* }
    };

    (@read $head:tt partition[] clustering $b:tt ttl $c:tt compaction $d:tt slices $e:tt lookups $f:tt owner $g:tt writes $h:tt deprecated $i:tt
        partition: ($($partition:tt)+) $(, $($rest:tt)*)?) => {
        $crate::table! { @read $head partition[$($partition)+] clustering $b ttl $c compaction $d slices $e lookups $f owner $g writes $h deprecated $i $($($rest)*)? }
    };
    (@read $head:tt partition $a:tt clustering[] ttl $c:tt compaction $d:tt slices $e:tt lookups $f:tt owner $g:tt writes $h:tt deprecated $i:tt
        clustering: ($($column:ident $order:ident),* $(,)?) $(, $($rest:tt)*)?) => {
        $crate::table! { @read $head partition $a clustering[($($column $order)*)] ttl $c compaction $d slices $e lookups $f owner $g writes $h deprecated $i $($($rest)*)? }
    };
    (@read $head:tt partition $a:tt clustering $b:tt ttl[] compaction $d:tt slices $e:tt lookups $f:tt owner $g:tt writes $h:tt deprecated $i:tt
        ttl: persistent $(, $($rest:tt)*)?) => {
        $crate::table! { @read $head partition $a clustering $b ttl[Persistent {}] compaction $d slices $e lookups $f owner $g writes $h deprecated $i $($($rest)*)? }
    };
    (@read $head:tt partition $a:tt clustering $b:tt ttl[] compaction $d:tt slices $e:tt lookups $f:tt owner $g:tt writes $h:tt deprecated $i:tt
        ttl: $unit:ident($count:expr) of $column:ident $(, $($rest:tt)*)?) => {
        $crate::table! { @read $head partition $a clustering $b
            ttl[Since { ms: $crate::macro_support::length_ms(stringify!($unit), $count), column: stringify!($column) }]
            compaction $d slices $e lookups $f owner $g writes $h deprecated $i $($($rest)*)? }
    };
    (@read $head:tt partition $a:tt clustering $b:tt ttl[] compaction $d:tt slices $e:tt lookups $f:tt owner $g:tt writes $h:tt deprecated $i:tt
        ttl: $unit:ident($count:expr) $(, $($rest:tt)*)?) => {
        $crate::table! { @read $head partition $a clustering $b
            ttl[Written { ms: $crate::macro_support::length_ms(stringify!($unit), $count) }]
            compaction $d slices $e lookups $f owner $g writes $h deprecated $i $($($rest)*)? }
    };
    (@read $head:tt partition $a:tt clustering $b:tt ttl $c:tt compaction[] slices $e:tt lookups $f:tt owner $g:tt writes $h:tt deprecated $i:tt
        compaction: leveled $(, $($rest:tt)*)?) => {
        $crate::table! { @read $head partition $a clustering $b ttl $c compaction[Leveled {}] slices $e lookups $f owner $g writes $h deprecated $i $($($rest)*)? }
    };
    (@read $head:tt partition $a:tt clustering $b:tt ttl $c:tt compaction[] slices $e:tt lookups $f:tt owner $g:tt writes $h:tt deprecated $i:tt
        compaction: time_window($unit:ident($count:expr)) $(, $($rest:tt)*)?) => {
        $crate::table! { @read $head partition $a clustering $b ttl $c
            compaction[TimeWindow { ms: $crate::macro_support::length_ms(stringify!($unit), $count) }]
            slices $e lookups $f owner $g writes $h deprecated $i $($($rest)*)? }
    };
    (@read $head:tt partition $a:tt clustering $b:tt ttl $c:tt compaction $d:tt slices[] lookups $f:tt owner $g:tt writes $h:tt deprecated $i:tt
        slices: ($unit:ident($length:expr), $count:expr) $(, $($rest:tt)*)?) => {
        $crate::table! { @read $head partition $a clustering $b ttl $c compaction $d
            slices[::core::option::Option::Some($crate::Slices {
                bucket_ms: $crate::macro_support::length_ms(stringify!($unit), $length), count: $count })]
            lookups $f owner $g writes $h deprecated $i $($($rest)*)? }
    };
    (@read $head:tt partition $a:tt clustering $b:tt ttl $c:tt compaction $d:tt slices $e:tt lookups[] owner $g:tt writes $h:tt deprecated $i:tt
        lookups: ($($lookup:ident($($column:ident),+ $(,)?) $(index $index:literal)? $(table $query_table:literal)?),* $(,)?)
        $(, $($rest:tt)*)?) => {
        $crate::table! { @read $head partition $a clustering $b ttl $c compaction $d slices $e
            lookups[$($lookup($($column)+) [$($index)?] [$($query_table)?])*] owner $g writes $h deprecated $i $($($rest)*)? }
    };
    (@read $head:tt partition $a:tt clustering $b:tt ttl $c:tt compaction $d:tt slices $e:tt lookups $f:tt owner[] writes $h:tt deprecated $i:tt
        owner: $owner:literal $(, $($rest:tt)*)?) => {
        $crate::table! { @read $head partition $a clustering $b ttl $c compaction $d slices $e lookups $f owner[$owner] writes $h deprecated $i $($($rest)*)? }
    };
    (@read $head:tt partition $a:tt clustering $b:tt ttl $c:tt compaction $d:tt slices $e:tt lookups $f:tt owner $g:tt writes[] deprecated $i:tt
        writes: $writes:ident $(, $($rest:tt)*)?) => {
        $crate::table! { @read $head partition $a clustering $b ttl $c compaction $d slices $e lookups $f owner $g writes[$writes] deprecated $i $($($rest)*)? }
    };

    (@read $head:tt partition $a:tt clustering $b:tt ttl $c:tt compaction $d:tt slices $e:tt lookups $f:tt owner $g:tt writes $h:tt deprecated[]
        deprecated: ($($column:ident($kind:ty, since $day:literal)),* $(,)?) $(, $($rest:tt)*)?) => {
        $crate::table! { @read $head partition $a clustering $b ttl $c compaction $d slices $e lookups $f owner $g writes $h
            deprecated[$({ $column $kind, $day })*] $($($rest)*)? }
    };

    // All lines are read: build, or say what is wrong.
    (@read $head:tt partition[$($partition:tt)+] clustering[$clustering:tt] ttl[$($ttl:tt)+] compaction[$($compaction:tt)*]
        slices[$($slices:tt)*] lookups[$($lookups:tt)*] owner[$owner:literal] writes[$writes:ident]
        deprecated[$($deprecated:tt)*]) => {
        $crate::table! { @split $head [$($partition)+] [] []
            $clustering [$($ttl)+] [$($compaction)*] [$($slices)*] [$($lookups)*] [$($deprecated)*] $owner $writes }
    };
    (@read [$doc:tt $vis:tt $name:ident $($head:tt)*] partition $a:tt clustering $b:tt ttl $c:tt compaction $d:tt slices $e:tt
        lookups $f:tt owner $g:tt writes $h:tt deprecated $i:tt $line:ident $($rest:tt)*) => {
        ::core::compile_error!(concat!("table ", stringify!($name), ": the line `", stringify!($line),
            ":` is given twice, is not of the expected form, or is none of partition, clustering, ttl, compaction, slices, lookups, owner, writes, deprecated"));
    };
    (@read [$doc:tt $vis:tt $name:ident $($head:tt)*] partition[] $($rest:tt)*) => {
        ::core::compile_error!(concat!("table ", stringify!($name),
            " has no partition key; add `partition: (column)` or `partition: (day_bucket = day(timestamp))`"));
    };
    (@read [$doc:tt $vis:tt $name:ident $($head:tt)*] partition $a:tt clustering[] $($rest:tt)*) => {
        ::core::compile_error!(concat!("table ", stringify!($name),
            " does not say how the rows of a partition are ordered; add `clustering: (column desc, …)`, or `clustering: ()` for one row each"));
    };
    (@read [$doc:tt $vis:tt $name:ident $($head:tt)*] partition $a:tt clustering $b:tt ttl[] $($rest:tt)*) => {
        ::core::compile_error!(concat!("table ", stringify!($name),
            " has no TTL; add `ttl: days(30) of timestamp`, `ttl: days(30)` or `ttl: persistent`"));
    };
    (@read [$doc:tt $vis:tt $name:ident $($head:tt)*] partition $a:tt clustering $b:tt ttl $c:tt compaction $d:tt slices $e:tt
        lookups $f:tt owner[] $($rest:tt)*) => {
        ::core::compile_error!(concat!("table ", stringify!($name),
            " has no owner; add `owner: \"service\"`, the one service that writes it"));
    };
    (@read [$doc:tt $vis:tt $name:ident $($head:tt)*] $($rest:tt)*) => {
        ::core::compile_error!(concat!("table ", stringify!($name),
            " does not say how its rows change; add `writes: events`, `writes: rows`, `writes: versioned` or `writes: conditional`"));
    };

    // The partition's own columns, and the bucket, which is the last one.
    (@split $head:tt [$column:ident, $($rest:tt)+] [$($plain:ident)*] [] $($more:tt)*) => {
        $crate::table! { @split $head [$($rest)+] [$($plain)* $column] [] $($more)* }
    };
    (@split $head:tt [$column:ident $(,)?] [$($plain:ident)*] [] $($more:tt)*) => {
        $crate::table! { @build $head [$($plain)* $column] [] $($more)* }
    };
    (@split $head:tt [$bucket:ident = day($source:ident) $(,)?] [$($plain:ident)*] [] $($more:tt)*) => {
        $crate::table! { @build $head [$($plain)*] [$bucket $source] $($more)* }
    };
    (@split [$doc:tt $vis:tt $name:ident $($head:tt)*] $($rest:tt)*) => {
        ::core::compile_error!(concat!("table ", stringify!($name),
            ": a partition key is columns and, as the last one, at most one bucket: `(realm, day_bucket = day(timestamp))`"));
    };

    (@build [[$($doc:expr)*] [$vis:vis] $name:ident $table:literal [$({ [$($field_doc:expr)*] $field:ident $type:ty })*]]
        [$($plain:ident)*] [$($bucket:ident $source:ident)?] ($($cluster:ident $order:ident)*) [$ttl:ident $ttl_fields:tt]
        [$($compaction:ident $compaction_fields:tt)?] [$($slices:expr)?] [$($lookup:ident($($column:ident)+) [$($index:literal)?] [$($query_table:literal)?])*]
        [$({ $deprecated:ident $deprecated_type:ty, $since:literal })*] $owner:literal $writes:ident) => {
        $(impl $crate::macro_support::ColumnNamed<{ $crate::macro_support::name_number(stringify!($field)) }> for $name {
            type Type = $type;
        })*
        $(impl $crate::macro_support::ColumnNamed<{ $crate::macro_support::name_number(stringify!($bucket)) }> for $name {
            type Type = $crate::macro_support::DayBucket;
        })?

        const _: () = {
            const DECLARATION: $crate::TableDeclaration = $crate::TableDeclaration {
                row: stringify!($name),
                name: $table,
                doc: concat!("", $($doc, "\n"),*).trim_ascii(),
                columns: &[
                    $($crate::ColumnDeclaration {
                        name: stringify!($bucket),
                        kind: $crate::ColumnType::Text,
                        optional: false,
                        day_of: ::core::option::Option::Some(stringify!($source)),
                        doc: concat!("The UTC day of `", stringify!($source), "`."),
                    },)?
                    $($crate::ColumnDeclaration {
                        name: stringify!($field),
                        kind: <$type as $crate::Column>::TYPE,
                        optional: <$type as $crate::Column>::OPTIONAL,
                        day_of: ::core::option::Option::None,
                        doc: concat!("", $($field_doc, "\n"),*).trim_ascii(),
                    },)*
                ],
                partition: &[$(stringify!($plain),)* $(stringify!($bucket))?],
                clustering: &[$((stringify!($cluster), $crate::macro_support::order_of(stringify!($order)))),*],
                ttl: $crate::RowTtl::$ttl $ttl_fields,
                compaction: $crate::table!(@compaction $($compaction $compaction_fields)?),
                slices: $crate::table!(@slices $($slices)?),
                lookups: &[$($crate::Lookup {
                    name: stringify!($lookup),
                    partition: &[$(stringify!($column)),+],
                    index: $crate::table!(@name $($index)?),
                    table: $crate::table!(@name $($query_table)?),
                }),*],
                deprecated: &[$($crate::DeprecatedColumn {
                    name: stringify!($deprecated),
                    kind: <$deprecated_type as $crate::Column>::TYPE,
                    since: $crate::macro_support::day_of($since),
                }),*],
                owner: $owner,
                writes: $crate::macro_support::writes_of(stringify!($writes)),
            };
            const _: () = if let ::core::option::Option::Some(problem) = &$crate::macro_support::diagnose_table(&DECLARATION) {
                ::core::panic!("{}", problem.text());
            };

            impl $crate::Table for $name {
                type First = $crate::table!(@first $name $($cluster)*);

                const DECLARATION: &'static $crate::TableDeclaration = &DECLARATION;

                fn into_values(self) -> ::std::vec::Vec<::core::option::Option<$crate::Value>> {
                    DECLARATION.with_bucket(::std::vec![$($crate::Column::into_value(self.$field)),*])
                }

                fn from_values(
                    values: ::std::vec::Vec<::core::option::Option<$crate::Value>>,
                ) -> ::core::result::Result<Self, (&'static str, ::std::string::String)> {
                    let buckets = DECLARATION.bucket().is_some() as usize;
                    let mut values = values.into_iter().skip(buckets);
                    ::core::result::Result::Ok($name { $(
                        $field: <$type as $crate::Column>::from_value(values.next().flatten())
                            .map_err(|problem| (stringify!($field), problem))?,
                    )* })
                }

                fn row_key(&self) -> $crate::RowKey<$name> {
                    $name::key($(::core::clone::Clone::clone(&self.$plain),)* $(::core::clone::Clone::clone(&self.$cluster)),*)
                }
            }
        };

        #[allow(dead_code)]
        impl $name {
            /// The key of one row.
            $vis fn key(
                $($plain: <$name as $crate::macro_support::ColumnNamed<{ $crate::macro_support::name_number(stringify!($plain)) }>>::Type,)*
                $($cluster: <$name as $crate::macro_support::ColumnNamed<{ $crate::macro_support::name_number(stringify!($cluster)) }>>::Type,)*
            ) -> $crate::RowKey<$name> {
                $crate::RowKey::new(::std::vec![
                    $((stringify!($plain), $crate::Column::into_value($plain)),)*
                    $((stringify!($cluster), $crate::Column::into_value($cluster)),)*
                ])
            }

            /// The rows of one partition, in the table's order.
            $vis fn partition(
                $($plain: impl $crate::macro_support::PartitionValue<<$name as $crate::macro_support::ColumnNamed<{ $crate::macro_support::name_number(stringify!($plain)) }>>::Type>,)*
                $($bucket: impl $crate::macro_support::PartitionValue<$crate::macro_support::DayBucket>,)?
            ) -> $crate::Rows<$name> {
                $crate::Rows::new(::core::option::Option::None, ::std::vec![
                    $($crate::macro_support::PartitionValue::partition_values($plain),)*
                    $($crate::macro_support::PartitionValue::partition_values($bucket),)?
                ])
            }

            $(
                #[doc = concat!("The rows of the lookup `", stringify!($lookup), "`.")]
                $vis fn $lookup(
                    $($column: impl $crate::macro_support::PartitionValue<<$name as $crate::macro_support::ColumnNamed<{ $crate::macro_support::name_number(stringify!($column)) }>>::Type>,)+
                ) -> $crate::Rows<$name> {
                    $crate::Rows::new(::core::option::Option::Some(stringify!($lookup)), ::std::vec![
                        $($crate::macro_support::PartitionValue::partition_values($column),)+
                    ])
                }
            )*
        }
    };

    (@compaction) => { $crate::Compaction::SizeTiered };
    (@compaction $compaction:ident $fields:tt) => { $crate::Compaction::$compaction $fields };
    (@name) => { ::core::option::Option::None };
    (@name $name:literal) => { ::core::option::Option::Some($name) };
    (@slices) => { ::core::option::Option::None };
    (@slices $slices:expr) => { $slices };
    (@first $name:ident) => { () };
    (@first $name:ident $first:ident $($rest:ident)*) => {
        <$name as $crate::macro_support::ColumnNamed<{ $crate::macro_support::name_number(stringify!($first)) }>>::Type
    };
}
