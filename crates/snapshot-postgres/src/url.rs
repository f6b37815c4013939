//! `postgres://user:password@host:port/database?sslmode=require&ca=/path/ca.pem`

use emberkeep_snapshot::{Error, Result};
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// Time to connect, and to notice that a server is gone.
const NETWORK_WAIT: Duration = Duration::from_secs(5);
/// The name that the server shows in `pg_stat_activity`.
const APPLICATION: &str = "emberkeep";

/// A server, its database and how to connect.
#[derive(Clone)]
pub(crate) struct Url {
    pub(crate) config: Config,
    /// Trusted in place of the public authorities.
    pub(crate) ca: Option<PathBuf>,
    /// The URL without credentials.
    pub(crate) name: String,
}

impl Url {
    /// The error never shows the URL, which may have a password.
    pub(crate) fn parse(text: &str) -> Result<Url> {
        let (start, options) = text.split_once('?').unwrap_or((text, ""));
        let mut ca = None;
        let mut rest = Vec::new();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.strip_prefix("ca=") {
                Some(path) => ca = Some(PathBuf::from(path)),
                None => rest.push(option),
            }
        }
        let cleaned = format!("{start}?{}", rest.join("&"));
        let mut config: Config = cleaned.parse().map_err(|_| invalid("it cannot be read"))?;
        if !rest.iter().any(|option| option.starts_with("sslmode=")) {
            config.ssl_mode(if ca.is_some() { SslMode::Require } else { SslMode::Disable });
        }
        if config.get_ssl_mode() == SslMode::Prefer {
            return Err(invalid("sslmode=prefer would fall back to plain text; write disable or require"));
        }
        if ca.is_some() && config.get_ssl_mode() == SslMode::Disable {
            return Err(invalid("ca= needs TLS; write sslmode=require"));
        }
        let [Host::Tcp(host)] = config.get_hosts() else { return Err(invalid("expected one host")) };
        let database = config.get_dbname().ok_or_else(|| invalid("expected a database after the host"))?;
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let name = format!("postgres://{host}:{port}/{database}");
        config.connect_timeout(NETWORK_WAIT).tcp_user_timeout(NETWORK_WAIT).keepalives_idle(NETWORK_WAIT);
        config.application_name(APPLICATION);
        Ok(Url { config, ca, name })
    }
}

fn invalid(problem: &str) -> Error {
    let expected =
        "expected postgres://user:password@host:port/database, with ?sslmode=require&ca=FILE for TLS";
    Error::Invalid { what: "URL of PostgreSQL", problem: format!("{problem}; {expected}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_and_the_errors_have_no_password() {
        let url = Url::parse("postgres://game:secret@db.example:5433/snaps").expect("a URL");
        assert_eq!(
            (url.name.as_str(), url.config.get_ssl_mode()),
            ("postgres://db.example:5433/snaps", SslMode::Disable)
        );
        let tls = Url::parse("postgres://game@db.example/snaps?ca=/etc/ca.pem").expect("a URL");
        assert_eq!(
            (tls.name.as_str(), tls.config.get_ssl_mode()),
            ("postgres://db.example:5432/snaps", SslMode::Require)
        );
        for wrong in [
            "postgres://game:secret@db.example",
            "postgres://game:secret@db.example:x/snaps",
            "postgres://game:secret@db.example/snaps?sslmode=prefer",
            "postgres://game:secret@db.example/snaps?sslmode=disable&ca=/etc/ca.pem",
            "postgres://game:secret@db.example/snaps?unknown=1",
            "postgres:///snaps",
        ] {
            let error = Url::parse(wrong).err().expect(wrong).to_string();
            assert!(!error.contains("secret") && error.contains("expected postgres://"), "{error}");
        }
    }
}
