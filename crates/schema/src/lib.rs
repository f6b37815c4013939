//! The declared keys: families, patterns, partitions, TTL policies, owners. Pure data, no I/O.
//!
//! **Responsible for**: declaring key families ([`family!`]), building and parsing their keys
//! ([`Key`], [`Schema`]), laying keys out for one server or for a Cluster ([`KeyLayout`]), the byte
//! form of values ([`Codec`], [`record!`]), declaring services and what they may write ([`service!`]), history tables ([`table!`], [`totals!`]), and printing
//! what is declared ([`Schema::to_markdown`], [`TableDeclaration::to_cql`]).
//!
//! **Not responsible for**: reading or writing any key, enforcing a TTL or an owner, and knowing
//! any game. Engines do the first two with the [`Declaration`]; games are in their own crate.

mod array;
mod codec;
mod declaration;
mod extra;
mod family;
mod identify;
mod kind;
mod layout;
pub mod limits;
mod name;
#[cfg(feature = "openapi")]
pub mod openapi;
#[cfg(not(feature = "openapi"))]
mod openapi_off;
mod part;
mod partition;
mod pattern;
mod quick_json;
mod record;
mod render;
mod schema;
mod service;
mod table;
mod ttl;
mod value_error;

pub use array::{Array, read_list};
pub use codec::{Bool, Codec, Float, Id, Json, Number, Raw, Utf8};
pub use declaration::{Declaration, PartDecl};
pub use extra::Extra;
pub use family::{Family, Key};
pub use identify::KeyIdentity;
pub use kind::{
    Channel, Hash, Keep, Kind, KindName, List, Log, LogBound, Newest, RefuseAbove, Set, SortedSet, Text,
    Unbounded,
};
pub use layout::{InvalidPrefix, KeyLayout, Topology};
pub use name::Name;
pub use part::{InvalidPart, Part, PartValue, Shape, Sink};
pub use partition::Partition;
pub use pattern::Piece;
pub use render::Row;
pub use schema::{Access, Schema, SchemaError};
pub use service::{Coverage, Grant, GrantedFamilies, GrantedFamily, Service};
pub use table::{
    Clustering, Column, ColumnDeclaration, ColumnType, Compaction, CqlLayout, Day, DeprecatedColumn,
    InvalidDay, Lookup, Order, RowKey, RowTtl, Rows, Slices, SumDeclaration, Table, TableDeclaration,
    Timestamp, Totals, TotalsDeclaration, Value, Writes, cql_name,
};
pub use ttl::{Automatic, Fixed, Given, Persistent, Refresh, Ttl, TtlPolicy};
pub use value_error::ValueError;

/// Used by the macros of this crate. Not a public interface.
#[doc(hidden)]
pub mod macro_support {
    pub use crate::declaration::value_of;
    pub use crate::part::is_constant_part;
    pub use crate::pattern::{Problem, diagnose, is_log_name, key_bytes_max, piece_count, pieces};
    pub use crate::quick_json::{NAMES, PlainName};
    pub use crate::table::{
        ColumnNamed, DayBucket, PartitionValue, TableProblem, day_of, diagnose_table, diagnose_totals,
        length_ms, name_number, order_of, writes_of,
    };
    pub use crate::ttl::Milliseconds;
    pub use serde;
    #[cfg(feature = "openapi")]
    pub use {serde_json, utoipa};
}
