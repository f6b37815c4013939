//! URLs of stores: read once, for libraries, tools and servers.

use super::OpenError;
use super::error::STORES;
use super::syntax::{folder, pairs, scheme, unknown};
use emberkeep_hot::Store;
use emberkeep_hot::embedded::Options;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::journal::Durability;
#[cfg(feature = "redis")]
use emberkeep_hot_redis::{RedisEngine, RedisUrl};
use emberkeep_schema::{KeyLayout, Topology};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Where a store is, and with which options.
///
/// | URL | engine |
/// |---|---|
/// | `memory:` | in this process; the data ends with it |
/// | `file:data`, `file:/var/lib/game` | in this process, with a journal in this folder |
/// | `redis://user:password@host:6379/0`, `valkey://…` | one Redis or Valkey, database 0; both schemes mean the same |
/// | `redis+cluster://host1:6379,host2:6379` | a Redis Cluster; some of its nodes |
/// | `rediss://…`, `valkeys://…`, `rediss+cluster://…` | the same with TLS |
///
/// | option | where | meaning |
/// |---|---|---|
/// | `durability=always` | `file:` | an answer is on disk; `everysec` (the default) within a second, `no` within about a minute |
/// | `prefix=eu:` | all | a text before every key and channel |
/// | `wait=1` | servers | an answer waits until so many replicas have the write |
/// | `ca=/path/ca.pem` | TLS | trusts this authority instead of the public ones |
///
/// Options stand behind `?`, with `&` between them: `file:data?durability=always&prefix=eu:`. A folder is taken as it
/// is written; one with a `?` in its name needs [`Embedded::builder`](emberkeep_hot::embedded::Embedded::builder).
///
/// Printed, it shows no password.
#[derive(Clone)]
pub struct StoreUrl(Target);

#[derive(Clone)]
enum Target {
    Embedded(Box<Options>),
    /// The text, for the engine, and what it was read as.
    #[cfg(feature = "redis")]
    Redis(String, RedisUrl),
}

impl StoreUrl {
    /// Reads a URL, without opening anything. Of the URL of a server with `ca=`, the file is read, too.
    pub fn parse(text: &str) -> Result<StoreUrl, OpenError> {
        let (scheme, rest) = scheme(text, STORES)?;
        match scheme {
            "memory" => memory(rest),
            "file" => file(rest),
            "redis" | "rediss" | "valkey" | "valkeys" | "redis+cluster" | "rediss+cluster" => {
                server(scheme, text)
            }
            _ => Err(OpenError::UnknownScheme { scheme: scheme.to_owned(), understood: STORES }),
        }
    }

    /// Whether the store is inside this process, where no other process reaches it.
    pub fn is_in_process(&self) -> bool {
        matches!(self.0, Target::Embedded(_))
    }

    /// The options of a store inside this process, to set what a URL does not say: a clock, a memory limit. `None` for
    /// a server.
    pub fn embedded_options(&mut self) -> Option<&mut Options> {
        match &mut self.0 {
            Target::Embedded(options) => Some(options),
            #[cfg(feature = "redis")]
            Target::Redis(..) => None,
        }
    }

    /// Opens the store. A folder is loaded on the calling thread.
    // Boxed, like `RedisEngine::connect`: a program that awaits the future does not compile its code again.
    pub fn open(self) -> Pending<'static, Result<Store, OpenError>> {
        Box::pin(async move {
            match self.0 {
                Target::Embedded(options) => Ok(Store::new(Arc::new(options.open()?))),
                #[cfg(feature = "redis")]
                Target::Redis(text, _) => Ok(Store::new(RedisEngine::connect(&text).await?)),
            }
        })
    }
}

fn memory(rest: &str) -> Result<StoreUrl, OpenError> {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    if !place.is_empty() {
        let problem = "takes no name; write memory: alone, or file:DIR for a folder";
        return Err(OpenError::Place { scheme: "memory", problem });
    }
    let mut options = Options::default();
    for (name, value) in pairs(query) {
        match name {
            "prefix" => options.layout = layout(value)?,
            _ => return Err(unknown(name, "memory", "prefix=")),
        }
    }
    Ok(StoreUrl(Target::Embedded(Box::new(options))))
}

fn file(rest: &str) -> Result<StoreUrl, OpenError> {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut options = Options::default().data(folder(place)?);
    for (name, value) in pairs(query) {
        match name {
            "prefix" => options.layout = layout(value)?,
            "durability" => options.durability = durability(value)?,
            _ => return Err(unknown(name, "file", "durability= and prefix=")),
        }
    }
    Ok(StoreUrl(Target::Embedded(Box::new(options))))
}

fn layout(prefix: &str) -> Result<KeyLayout, OpenError> {
    KeyLayout::new(prefix, Topology::Single)
        .map_err(|error| OpenError::WrongOption { option: "prefix", problem: error.to_string() })
}

fn durability(value: &str) -> Result<Durability, OpenError> {
    match value {
        "always" => Ok(Durability::Always),
        "everysec" => Ok(Durability::EverySec),
        "no" => Ok(Durability::No),
        _ => {
            let problem = "expected always, everysec or no".to_owned();
            Err(OpenError::WrongOption { option: "durability", problem })
        }
    }
}

#[cfg(feature = "redis")]
fn server(_: &str, text: &str) -> Result<StoreUrl, OpenError> {
    Ok(StoreUrl(Target::Redis(text.to_owned(), RedisUrl::parse(text)?)))
}

#[cfg(not(feature = "redis"))]
fn server(scheme: &str, _: &str) -> Result<StoreUrl, OpenError> {
    Err(OpenError::WithoutFeature { scheme: scheme.to_owned(), feature: "redis" })
}

impl FromStr for StoreUrl {
    type Err = OpenError;

    fn from_str(text: &str) -> Result<StoreUrl, OpenError> {
        StoreUrl::parse(text)
    }
}

/// Without options and credentials.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Target::Embedded(options) => match &options.data {
                Some(folder) => write!(f, "file:{}", folder.display()),
                None => f.write_str("memory:"),
            },
            #[cfg(feature = "redis")]
            Target::Redis(_, url) => url.fmt(f),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> StoreUrl {
        StoreUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_store_in_process_is_in_memory_or_in_a_folder() {
        let mut memory = read("memory:?prefix=eu:");
        assert!(memory.is_in_process());
        assert_eq!(memory.to_string(), "memory:");
        let options = memory.embedded_options().unwrap();
        assert_eq!((options.layout.prefix(), &options.data), ("eu:", &None));
        for (text, folder) in [
            ("file:data", "data"),
            ("file:./data/", "./data/"),
            ("file:/var/lib/game", "/var/lib/game"),
            ("file:///var/lib/game", "/var/lib/game"),
            ("file:a b%20c:d?", "a b%20c:d"),
        ] {
            let options = read(text).embedded_options().unwrap().clone();
            assert_eq!(options.data, Some(folder.into()), "{text}");
            assert_eq!(options.durability, Durability::EverySec);
        }
        let mut durable = read("file:d?durability=always&prefix=p:");
        let options = durable.embedded_options().unwrap();
        assert_eq!((options.durability, options.layout.prefix()), (Durability::Always, "p:"));
    }

    #[test]
    fn every_mistake_is_named_with_what_is_understood() {
        for (text, expected) in [
            ("", "the URL has no scheme; understood are memory:, file:DIR, redis://"),
            ("embedded", "no scheme"),
            ("s3cret@host:6379", "no scheme"),
            (":s3cret@host", "no scheme"),
            ("redis//:s3cret@host", "no scheme"),
            ("localhost:6379", "begins with localhost:, which is not known; understood are memory:"),
            ("postgres://joe:s3cret@host", "begins with postgres:, which is not known; understood are"),
            ("file:", "names no folder; write file:DIR"),
            ("file:?durability=always", "names no folder"),
            ("file://", "names no folder"),
            ("file://data", "names a host; write file:DIR"),
            ("memory:data", "memory: takes no name"),
            (
                "memory:?durability=always",
                "the option \"durability\", which is not known; memory: understands prefix=",
            ),
            (
                "file:d?durabilty=always",
                "\"durabilty\", which is not known; file: understands durability= and prefix=",
            ),
            ("file:d?durability=often", "expected always, everysec or no"),
            ("file:d?durability", "expected always, everysec or no"),
            ("file:d?prefix={", "the key prefix holds '{'"),
        ] {
            let outcome = StoreUrl::parse(text).expect_err(text).to_string();
            assert!(outcome.contains(expected) && !outcome.contains("s3cret"), "{text}: {outcome}");
        }
    }

    #[test]
    fn a_server_is_read_by_its_engine_and_printed_without_a_password() {
        for text in
            ["redis://joe:s3cret@h:1/0?wait=1", "rediss://h", "redis+cluster://h:1,h:2", "valkey://h:1"]
        {
            let mut url = read(text);
            assert!(!url.is_in_process() && url.embedded_options().is_none(), "{text}");
            let shown = format!("{url} {url:?}");
            assert!(shown.contains("://h") && !shown.contains("s3cret"), "{shown}");
        }
        for (text, expected) in [
            ("redis://joe:s3cret@h:1?wiat=1", "the option wiat is not known; there are prefix, wait and ca"),
            ("redis:s3cret@h", "expected redis://"),
        ] {
            let outcome = StoreUrl::parse(text).expect_err(text).to_string();
            assert!(outcome.contains(expected) && !outcome.contains("s3cret"), "{text}: {outcome}");
        }
    }
}
