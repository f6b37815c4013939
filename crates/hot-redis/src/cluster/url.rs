//! URLs: `redis://`, `rediss://` (TLS), `redis+cluster://`, `rediss+cluster://`, with options behind `?`.
//! Credentials are read here and never printed.

use super::tls::{CertificateAuthority, connector};
use emberkeep_hot::Error;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use std::fmt;
use tokio_rustls::TlsConnector;

/// What a URL says: servers, credentials, TLS and options. Its `Debug` shows no password.
#[derive(Clone)]
pub struct RedisUrl {
    pub(crate) servers: Vec<ConnectionInfo>,
    pub(crate) cluster: bool,
    pub(crate) prefix: String,
    /// Replicas that must have a commit before the caller gets its result.
    pub(crate) wait: u32,
    /// Trusted instead of the public authorities.
    ca: Option<CertificateAuthority>,
    /// For the engine's own streams; `None` without TLS.
    pub(crate) tls: Option<TlsConnector>,
}

impl RedisUrl {
    /// Reads a URL. Several cluster nodes are written `redis+cluster://a:1,b:2,c:3`.
    pub fn parse(url: &str) -> Result<RedisUrl, Error> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong(url, "it has no scheme"))?;
        let (tls, cluster) = match scheme {
            "redis" | "valkey" => ("redis", false),
            "rediss" | "valkeys" => ("rediss", false),
            "redis+cluster" => ("redis", true),
            "rediss+cluster" => ("rediss", true),
            other => return Err(wrong(url, &format!("the scheme {other}:// is not known"))),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        if query.contains('@') {
            return Err(wrong(url, "a ? of a user or password is written %3F, an @ behind it %40"));
        }
        let mut parsed =
            RedisUrl { servers: vec![], cluster, prefix: String::new(), wait: 0, ca: None, tls: None };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            parsed.option(url, pair)?;
        }
        if tls == "rediss" {
            parsed.tls = Some(connector(parsed.ca.as_ref()));
        } else if parsed.ca.is_some() {
            return Err(wrong(url, "ca= is for TLS; write rediss:// or rediss+cluster://"));
        }
        let (credentials, hosts) = match place.rsplit_once('@') {
            Some((credentials, hosts)) => (format!("{credentials}@"), hosts),
            None => (String::new(), place),
        };
        let (hosts, path) = hosts.split_once('/').unwrap_or((hosts, ""));
        for host in hosts.split(',') {
            let one = format!("{tls}://{credentials}{host}/{path}");
            let info = one.as_str().into_connection_info().map_err(|e| wrong(url, &e.to_string()))?;
            let tcp = info.tcp_settings().clone().set_nodelay(true);
            let info = info.set_tcp_settings(tcp);
            parsed.servers.push(match &parsed.ca {
                Some(authority) => authority.trusted(info)?,
                None => info,
            });
        }
        Ok(parsed)
    }

    fn option(&mut self, url: &str, pair: &str) -> Result<(), Error> {
        match pair.split_once('=').unwrap_or((pair, "")) {
            ("prefix", prefix) => self.prefix = prefix.to_owned(),
            ("wait", count) => {
                self.wait = count.parse().map_err(|_| wrong(url, "wait= takes a number of replicas"))?;
            }
            ("ca", "") => return Err(wrong(url, "ca= takes the path of a PEM file")),
            ("ca", path) => self.ca = Some(CertificateAuthority::read(path)?),
            (other, _) => {
                return Err(wrong(
                    url,
                    &format!("the option {other} is not known; there are prefix, wait and ca"),
                ));
            }
        }
        Ok(())
    }

    /// The same settings for another server, as a redirect names it.
    pub(crate) fn at(&self, host: &str, port: u16) -> ConnectionInfo {
        let info = self.servers[0].clone();
        let addr = match info.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
                host: host.to_owned(),
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host.to_owned(), port),
        };
        info.set_addr(addr)
    }
}

/// Hosts and ports, no credentials.
impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.cluster { "redis+cluster://" } else { "redis://" })?;
        for (i, server) in self.servers.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}", server.addr())?;
        }
        Ok(())
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({self})")
    }
}

/// The error never repeats the URL: it may contain a password.
fn wrong(url: &str, problem: &str) -> Error {
    // An ellipsis stands for what is left out before the host.
    let (left_out, shown) = url.rsplit_once('@').map_or(("", url), |(_, after)| ("…", after));
    // Nor an option's value: some clients take a password there. With a `?` before the `@` the parts are
    // ambiguous.
    let ambiguous = url.split_once('?').is_some_and(|(_, query)| query.contains('@'));
    let shown = shown.split('?').next().unwrap_or_default();
    let shown = if ambiguous || !is_hosts(shown) { "" } else { shown };
    Error::Invalid {
        what: "URL",
        problem: format!(
            "{problem}: {left_out}{shown}; expected redis://[user:password@]host:port, rediss:// for TLS, redis+cluster:// for a Cluster"
        ),
    }
}

/// Whether all that follows a colon is a port. Otherwise it may be a password without its `@` or its `//`.
fn is_hosts(shown: &str) -> bool {
    let place = shown.split_once("://").map_or(shown, |(_, place)| place);
    let hosts = place.split('/').next().unwrap_or_default();
    hosts.split(',').all(|host| {
        let behind_address = host.rsplit(']').next().unwrap_or_default();
        let port = behind_address.split_once(':').map_or("", |(_, port)| port);
        port.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_credentials_never_printed() {
        let parsed = RedisUrl::parse("redis+cluster://joe:s3cret@127.0.0.1:1,127.0.0.1:2?prefix=eu:&wait=1");
        let parsed = parsed.expect("a good URL");
        assert!(parsed.cluster);
        assert_eq!((parsed.servers.len(), parsed.prefix.as_str(), parsed.wait), (2, "eu:", 1));
        assert_eq!(parsed.servers[1].redis_settings().password(), Some("s3cret"));
        let shown = format!("{parsed} {parsed:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("joe"), "{shown}");
        assert_eq!(parsed.to_string(), "redis+cluster://127.0.0.1:1,127.0.0.1:2");
    }

    #[test]
    fn a_wrong_url_is_explained_without_its_password() {
        for url in [
            "redis//x",
            "http://joe:s3cret@h:1",
            "redis://joe:s3cret@h:1?wiat=1",
            "redis://joe:s3cret@h:no",
            "redis://h:1?password=s3cret",
            "redis://joe:x?s3cret@h:1",
            "redis://h:1?password=x@s3cret",
            "redis://joe:s3cret",
            "redis://joe:s3cret:1/0",
            "redis+cluster://h:1,:s3cret",
            "redis:s3cret",
        ] {
            let error = RedisUrl::parse(url).expect_err(url).to_string();
            assert!(error.contains("expected redis://") && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn an_authority_that_cannot_be_read_is_named() {
        for (url, expected) in [
            ("rediss://h:1?ca=", "ca= takes the path"),
            ("rediss://h:1?ca=/no/such/ca.pem", "/no/such/ca.pem cannot be read"),
            ("rediss+cluster://h:1?ca=/", "/ cannot be read"),
            (&format!("rediss://h:1?ca={}/Cargo.toml", env!("CARGO_MANIFEST_DIR")), "holds no certificate"),
        ] {
            let error = RedisUrl::parse(url).expect_err(url);
            assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn redirects_use_tls_too() {
        let parsed = RedisUrl::parse("rediss+cluster://h:1").expect("a good URL");
        assert!(
            matches!(parsed.at("other", 7).addr(), ConnectionAddr::TcpTls { host, port: 7, .. } if host == "other")
        );
    }
}
