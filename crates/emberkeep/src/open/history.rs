//! URLs of history: a folder of this process, or a CQL cluster.

use super::OpenError;
use super::error::HISTORIES;
use super::syntax::{folder, pairs, scheme, unknown};
use emberkeep_history::embedded::{Durability, Options};
use emberkeep_history::{Embedded, History, HistorySchema, Pending};
#[cfg(feature = "cql")]
use emberkeep_history_cql::{ConnectError, CqlOptions, CqlStore, CqlUrl};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// `History::open(url, schema)`: part of the prelude, because [`History`] itself knows no server.
pub trait OpenHistory: Sized {
    /// Opens the history of a URL with the tables that the program uses: `file:DIR` or `cql://…`. [`HistoryUrl`] lists
    /// their options.
    ///
    /// A folder is made if it does not exist, and belongs to one process at a time. A keyspace must have the declared
    /// tables: `emberkeep schema apply` adds them. An error names what was wrong, and never shows a password.
    ///
    /// ```
    /// use emberkeep::history::{History, HistorySchema};
    /// use emberkeep::prelude::*;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = std::env::temp_dir().join(format!("emberkeep-open-history-{}", std::process::id()));
    /// let url = format!("file:{}?durability=always", folder.display()); // or "cql://user:password@host/keyspace"
    /// let history = History::open(&url, HistorySchema::new()).await?;
    /// history.close().await?;
    /// let error = History::open("mysql://ann:secret@db", HistorySchema::new()).await.err().expect("no store of ours");
    /// assert!(error.to_string().contains("cql://") && !error.to_string().contains("secret"));
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok(())
    /// # }
    /// ```
    fn open(url: &str, schema: HistorySchema) -> Pending<'_, Result<Self, OpenError>>;
}

impl OpenHistory for History {
    fn open(url: &str, schema: HistorySchema) -> Pending<'_, Result<History, OpenError>> {
        Box::pin(async move { HistoryUrl::parse(url)?.open(schema).await })
    }
}

/// Where history is, and with which options.
///
/// | URL | store |
/// |---|---|
/// | `file:history`, `file:/var/lib/game/history` | in this process, in this folder |
/// | `file:history?durability=always` | the same; an answer is on disk. `everysec` (the default): within a second |
/// | `cql://user:password@host:9042,host/keyspace` | ScyllaDB or Cassandra, with the feature `cql`; `history::cql::CqlUrl` has the options |
/// | `cqls://…` | the same with TLS, with the feature `cql-tls` |
///
/// Printed, it shows no password.
#[derive(Clone)]
pub struct HistoryUrl(Target);

#[derive(Clone)]
enum Target {
    Folder(PathBuf, Box<Options>),
    /// The text, for the store, and what it was read as.
    #[cfg(feature = "cql")]
    Cql(String, Box<CqlUrl>, CqlOptions),
}

impl HistoryUrl {
    /// Reads a URL, without opening anything.
    pub fn parse(text: &str) -> Result<HistoryUrl, OpenError> {
        let (scheme, rest) = scheme(text, HISTORIES)?;
        match scheme {
            "file" => file(rest),
            "cql" | "cqls" => cluster(scheme, text),
            "memory" => {
                let problem = "is not a place for history, which is kept; write file:DIR";
                Err(OpenError::Place { scheme: "memory", problem })
            }
            _ => Err(OpenError::UnknownScheme { scheme: scheme.to_owned(), understood: HISTORIES }),
        }
    }

    /// History in a folder, with the default options.
    pub fn folder(path: impl Into<PathBuf>) -> HistoryUrl {
        HistoryUrl(Target::Folder(path.into(), Box::default()))
    }

    /// The folder of a store inside this process. `None` for a cluster.
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            Target::Folder(folder, _) => Some(folder),
            #[cfg(feature = "cql")]
            Target::Cql(..) => None,
        }
    }

    /// Whether the store is inside this process: its folder belongs to one process.
    pub fn is_in_process(&self) -> bool {
        matches!(self.0, Target::Folder(..))
    }

    /// The options of a store inside this process, to set what a URL does not say. `None` for a cluster.
    pub fn embedded_options(&mut self) -> Option<&mut Options> {
        match &mut self.0 {
            Target::Folder(_, options) => Some(options),
            #[cfg(feature = "cql")]
            Target::Cql(..) => None,
        }
    }

    /// The options of a cluster, to set what a URL does not say. `None` for a folder.
    #[cfg(feature = "cql")]
    pub fn cql_options(&mut self) -> Option<&mut CqlOptions> {
        match &mut self.0 {
            Target::Cql(_, _, options) => Some(options),
            Target::Folder(..) => None,
        }
    }

    /// Opens history. A folder is loaded on the calling thread.
    pub fn open(self, schema: HistorySchema) -> Pending<'static, Result<History, OpenError>> {
        Box::pin(async move {
            match self.0 {
                Target::Folder(folder, options) => {
                    Ok(History::new(Arc::new(Embedded::open(folder, schema, *options)?)))
                }
                #[cfg(feature = "cql")]
                Target::Cql(text, _, options) => {
                    Ok(History::new(Arc::new(CqlStore::connect(&text, schema, options).await?)))
                }
            }
        })
    }
}

fn file(rest: &str) -> Result<HistoryUrl, OpenError> {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (path, mut options) = (folder(place)?, Options::default());
    for (name, value) in pairs(query) {
        match (name, value) {
            ("durability", "always") => options.durability = Durability::Always,
            ("durability", "everysec") => options.durability = Durability::EverySec,
            ("durability", _) => {
                let problem = "expected always or everysec".to_owned();
                return Err(OpenError::WrongOption { option: "durability", problem });
            }
            _ => return Err(unknown(name, "file", "durability=")),
        }
    }
    Ok(HistoryUrl(Target::Folder(path, Box::new(options))))
}

#[cfg(feature = "cql")]
fn cluster(_: &str, text: &str) -> Result<HistoryUrl, OpenError> {
    let url = CqlUrl::parse(text).map_err(ConnectError::Url)?;
    Ok(HistoryUrl(Target::Cql(text.to_owned(), Box::new(url), CqlOptions::default())))
}

#[cfg(not(feature = "cql"))]
fn cluster(scheme: &str, _: &str) -> Result<HistoryUrl, OpenError> {
    Err(OpenError::WithoutFeature { scheme: scheme.to_owned(), feature: "cql" })
}

impl FromStr for HistoryUrl {
    type Err = OpenError;

    fn from_str(text: &str) -> Result<HistoryUrl, OpenError> {
        HistoryUrl::parse(text)
    }
}

/// Without options and credentials.
impl fmt::Display for HistoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Target::Folder(folder, _) => write!(f, "file:{}", folder.display()),
            #[cfg(feature = "cql")]
            Target::Cql(_, url, _) => url.fmt(f),
        }
    }
}

impl fmt::Debug for HistoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HistoryUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_with_its_durability() {
        let mut url = HistoryUrl::parse("file:data/history?durability=always").unwrap();
        assert_eq!((url.to_string().as_str(), url.is_in_process()), ("file:data/history", true));
        assert_eq!(url.embedded_options().unwrap().durability, Durability::Always);
        let mut plain = HistoryUrl::parse("file:///var/lib/history").unwrap();
        assert_eq!(plain.to_string(), "file:/var/lib/history");
        assert_eq!(plain.embedded_options().unwrap().durability, Durability::EverySec);
    }

    #[test]
    fn every_mistake_is_named_and_no_password() {
        for (text, expected) in [
            ("", "no scheme; understood are file:DIR, cql://"),
            ("s3cret@host/keyspace", "no scheme"),
            ("redis://:s3cret@h", "begins with redis:, which is not known; understood are file:DIR, cql://"),
            ("memory:", "not a place for history"),
            ("file:", "names no folder"),
            ("file://history", "names a host"),
            ("file:d?durability=no", "expected always or everysec"),
            ("file:d?prefix=eu:", "\"prefix\", which is not known; file: understands durability="),
        ] {
            let outcome = HistoryUrl::parse(text).expect_err(text).to_string();
            assert!(outcome.contains(expected) && !outcome.contains("s3cret"), "{text}: {outcome}");
        }
    }

    #[cfg(feature = "cql")]
    #[test]
    fn a_cluster_is_read_by_its_store() {
        let mut url = HistoryUrl::parse("cql://joe:s3cret@h/k?layout=scaled").unwrap();
        assert!(!url.is_in_process() && url.embedded_options().is_none() && url.cql_options().is_some());
        assert_eq!(format!("{url} {url:?}"), "cql://h:9042/k HistoryUrl(cql://h:9042/k)");
        let mistake = HistoryUrl::parse("cql://joe:s3cret@h/k?colour=red").unwrap_err().to_string();
        assert!(mistake.contains("colour") && !mistake.contains("s3cret"), "{mistake}");
    }

    #[cfg(not(feature = "cql"))]
    #[test]
    fn a_program_without_cql_names_the_feature() {
        let mistake = HistoryUrl::parse("cql://joe:s3cret@h/k").unwrap_err().to_string();
        assert!(mistake.contains("the feature `cql`") && !mistake.contains("s3cret"), "{mistake}");
    }
}
