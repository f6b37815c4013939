//! The statements that create a keyspace with its tables, as text.

use super::declared;
use emberkeep_history::HistorySchema;
use emberkeep_schema::CqlLayout;
use std::fmt;
use std::str::FromStr;

/// Where the rows of a keyspace are stored, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replication {
    /// So many nodes of each data centre.
    DataCentres(Vec<(String, u16)>),
    /// So many nodes of any data centre: for development.
    Simple(u16),
}

/// A text that is not a replication.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a replication; write datacenter1:3, several with commas between them, or simple:1 for one node"
)]
pub struct ReplicationError {
    text: String,
}

impl FromStr for Replication {
    type Err = ReplicationError;

    /// Reads `datacenter1:3,datacenter2:3`, or `simple:1`.
    fn from_str(text: &str) -> Result<Replication, ReplicationError> {
        let wrong = || ReplicationError { text: text.chars().take(64).collect() };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let part = |part: &str| {
            let (name, count) = part.split_once(':')?;
            let count = count.parse().ok().filter(|count| *count > 0)?;
            (!name.is_empty() && name.bytes().all(is_name)).then(|| (name.to_owned(), count))
        };
        let parts = text.split(',').map(part).collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
        match parts.as_slice() {
            [(name, count)] if name == "simple" => Ok(Replication::Simple(*count)),
            _ => Ok(Replication::DataCentres(parts)),
        }
    }
}

impl fmt::Display for Replication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Replication::DataCentres(parts) => {
                let parts: String =
                    parts.iter().map(|(name, count)| format!(", '{name}': {count}")).collect();
                write!(f, "{{'class': 'NetworkTopologyStrategy'{parts}}}")
            }
            Replication::Simple(count) => {
                write!(f, "{{'class': 'SimpleStrategy', 'replication_factor': {count}}}")
            }
        }
    }
}

/// The statements that create a keyspace with all tables of a schema, for `cqlsh`.
pub fn script(
    schema: &HistorySchema,
    layout: CqlLayout,
    keyspace: &str,
    replication: &Replication,
) -> String {
    let mut out = format!(
        "CREATE KEYSPACE IF NOT EXISTS {keyspace}\nWITH replication = {replication};\n\nUSE {keyspace};\n"
    );
    for declaration in declared::declarations(schema, layout) {
        out.push('\n');
        declaration.doc.lines().for_each(|line| out += &format!("-- {}\n", line.trim()));
        out += &declaration.to_cql(layout);
    }
    for totals in schema.all_totals() {
        out.push('\n');
        totals.doc.lines().for_each(|line| out += &format!("-- {}\n", line.trim()));
        out += &totals.to_cql();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replications_are_read_and_printed() {
        for (text, cql) in [
            ("datacenter1:3", "{'class': 'NetworkTopologyStrategy', 'datacenter1': 3}"),
            ("eu:3,us:2", "{'class': 'NetworkTopologyStrategy', 'eu': 3, 'us': 2}"),
            ("simple:1", "{'class': 'SimpleStrategy', 'replication_factor': 1}"),
        ] {
            assert_eq!(text.parse::<Replication>().unwrap().to_string(), cql);
        }
        for text in ["", "3", "eu:0", "eu:x", "e'u:3", "eu:3,", "eu"] {
            assert!(text.parse::<Replication>().is_err(), "{text}");
        }
    }
}
