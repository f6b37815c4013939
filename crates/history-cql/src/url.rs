//! URLs of CQL clusters.

use crate::limits::{KEYSPACE_BYTES_MAX, REQUEST_TIMEOUT_DEFAULT};
use emberkeep_schema::CqlLayout;
use scylla::statement::{Consistency, SerialConsistency};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The port of CQL if a URL names none.
const PORT_DEFAULT: u16 = 9042;
const OPTIONS: &str = "dc, consistency, serial, layout, timeout and ca";

/// Where a cluster is, and how it is used:
/// `cql://user:password@host:9042,host/keyspace?dc=eu&consistency=local_quorum&layout=scaled`.
///
/// | option | meaning |
/// |---|---|
/// | `dc=eu` | prefers the nodes of this data centre |
/// | `consistency=local_quorum` | of reads and writes: also `quorum`, `each_quorum`, `all`, `one`, `local_one`, `two`, `three` |
/// | `serial=serial` | of conditional writes: across data centres; `local_serial` only inside one |
/// | `layout=document` | the tables and indexes of the storage document, or `scaled`: slices and query tables |
/// | `timeout=10` | seconds that a call waits for an answer |
/// | `ca=/path/ca.pem` | with `cqls://`: trusts this authority instead of the public ones |
///
/// `cqls://` is the same with TLS. `%40` and the like stand for special characters of a user, password or value.
/// Printed, it shows no password.
#[derive(Clone, PartialEq)]
pub struct CqlUrl {
    pub(crate) user: Option<(String, String)>,
    pub(crate) hosts: Vec<String>,
    pub(crate) keyspace: String,
    pub(crate) data_centre: Option<String>,
    pub(crate) consistency: Consistency,
    pub(crate) serial: SerialConsistency,
    pub(crate) layout: CqlLayout,
    pub(crate) timeout: Duration,
    pub(crate) is_tls: bool,
    pub(crate) authority: Option<String>,
}

/// A mistake in a URL. No text of it shows the password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It is not a URL of this kind.
    #[error("a history URL begins with cql:// or cqls://, as in cql://host:9042/keyspace")]
    Scheme,
    /// No host, or one that is not understood.
    #[error(
        "the host {host:?} is not understood; expected host or host:port, several with commas between them"
    )]
    Host {
        /// The host as it was written.
        host: String,
    },
    /// A user without a password, or one with characters that must be encoded.
    #[error(
        "the user and password are not understood; write user:password@, with %3A for :, %3F for ? and %40 for @"
    )]
    Password,
    /// No keyspace, or not the name of one.
    #[error(
        "the keyspace {keyspace:?} is not understood; expected letters, digits and _ behind the hosts, as in cql://host/darkages"
    )]
    Keyspace {
        /// What stands where the keyspace is expected.
        keyspace: String,
    },
    /// An option that does not exist.
    #[error("the option {option:?} does not exist; there are {OPTIONS}")]
    UnknownOption {
        /// The name of the option, at most 32 characters of it.
        option: String,
    },
    /// An option with a value that it does not take.
    #[error("the option {option}= is {value:?}, expected {expected}")]
    Option {
        /// The name of the option.
        option: &'static str,
        /// The value that was given.
        value: String,
        /// The values that it takes.
        expected: &'static str,
    },
    /// A `%` that is not followed by two hexadecimal digits, or bytes that are not UTF-8.
    #[error("the {part} has a % that is not understood; write %25 for it")]
    Percent {
        /// Which part of the URL.
        part: &'static str,
    },
}

impl CqlUrl {
    /// Reads a URL. Nothing is opened.
    pub fn parse(text: &str) -> Result<CqlUrl, UrlError> {
        let (is_tls, rest) = match (text.strip_prefix("cqls://"), text.strip_prefix("cql://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(UrlError::Scheme),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        if query.contains('@') {
            // A password with a `?`: nothing of it may be taken for a host, and shown.
            return Err(UrlError::Password);
        }
        // The last one: an @ in a password that was not encoded must not make a part of it a host.
        let (user, place) = match place.rsplit_once('@') {
            Some((user, place)) => (Some(credentials(user)?), place),
            None => (None, place),
        };
        let (hosts, keyspace) = place.split_once('/').unwrap_or((place, ""));
        let mut url = CqlUrl {
            user,
            hosts: hosts.split(',').map(host).collect::<Result<_, _>>()?,
            keyspace: keyspace_name(keyspace)?,
            data_centre: None,
            consistency: Consistency::LocalQuorum,
            serial: SerialConsistency::Serial,
            layout: CqlLayout::Document,
            timeout: REQUEST_TIMEOUT_DEFAULT,
            is_tls,
            authority: None,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            url.set(name, decoded(value, "value of an option")?)?;
        }
        Ok(url)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), UrlError> {
        let wrong = |option, value, expected| Err(UrlError::Option { option, value, expected });
        match name {
            "dc" if value.is_empty() => return wrong("dc", value, "the name of a data centre"),
            "dc" => self.data_centre = Some(value),
            "consistency" => match consistency(&value) {
                Some(consistency) => self.consistency = consistency,
                None => {
                    let expected = "one, two, three, quorum, all, local_one, local_quorum or each_quorum";
                    return wrong("consistency", value, expected);
                }
            },
            "serial" => match value.as_str() {
                "serial" => self.serial = SerialConsistency::Serial,
                "local_serial" => self.serial = SerialConsistency::LocalSerial,
                _ => return wrong("serial", value, "serial or local_serial"),
            },
            "layout" => match value.as_str() {
                "document" => self.layout = CqlLayout::Document,
                "scaled" => self.layout = CqlLayout::Scaled,
                _ => return wrong("layout", value, "document or scaled"),
            },
            "timeout" => match value.parse() {
                Ok(seconds @ 1..=3600) => self.timeout = Duration::from_secs(seconds),
                _ => return wrong("timeout", value, "seconds from 1 to 3600"),
            },
            "ca" if !self.is_tls || value.is_empty() => {
                return wrong("ca", value, "a file, with cqls:// only");
            }
            "ca" => self.authority = Some(value),
            _ => return Err(UrlError::UnknownOption { option: name.chars().take(32).collect() }),
        }
        Ok(())
    }

    /// The keyspace, by its name on the cluster.
    pub fn keyspace(&self) -> &str {
        &self.keyspace
    }

    /// How the tables are laid out.
    pub fn layout(&self) -> CqlLayout {
        self.layout
    }
}

fn credentials(text: &str) -> Result<(String, String), UrlError> {
    let (user, password) = text.split_once(':').ok_or(UrlError::Password)?;
    Ok((decoded(user, "user")?, decoded(password, "password")?))
}

fn host(text: &str) -> Result<String, UrlError> {
    // What stands behind the colon may be the password of a URL without a host.
    let wrong = || UrlError::Host { host: text.split(':').next().unwrap_or("").chars().take(64).collect() };
    // IPv6 addresses stand in brackets.
    let after_name = text.rfind(']').unwrap_or(0);
    let (name, port) = match text[after_name..].rfind(':') {
        Some(at) => (&text[..after_name + at], text[after_name + at + 1..].parse().map_err(|_| wrong())?),
        None => (text, PORT_DEFAULT),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let is_address = name.starts_with('[') && name.ends_with(']');
    if name.is_empty() || !is_address && !name.bytes().all(is_name) {
        return Err(wrong());
    }
    Ok(format!("{name}:{port}"))
}

/// A name that CQL takes without quotes.
fn keyspace_name(text: &str) -> Result<String, UrlError> {
    let is_first = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    let is_rest = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if !is_first || text.len() > KEYSPACE_BYTES_MAX || !text.bytes().all(is_rest) {
        return Err(UrlError::Keyspace { keyspace: text.chars().take(64).collect() });
    }
    Ok(text.to_owned())
}

fn consistency(text: &str) -> Option<Consistency> {
    Some(match text {
        "one" => Consistency::One,
        "two" => Consistency::Two,
        "three" => Consistency::Three,
        "quorum" => Consistency::Quorum,
        "all" => Consistency::All,
        "local_one" => Consistency::LocalOne,
        "local_quorum" => Consistency::LocalQuorum,
        "each_quorum" => Consistency::EachQuorum,
        _ => return None,
    })
}

fn decoded(text: &str, part: &'static str) -> Result<String, UrlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digit = |at: usize| after.get(at).and_then(|byte| (*byte as char).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else { return Err(UrlError::Percent { part }) };
        bytes.push((high * 16 + low) as u8);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| UrlError::Percent { part })
}

impl FromStr for CqlUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<CqlUrl, UrlError> {
        CqlUrl::parse(text)
    }
}

/// Without options and credentials.
impl fmt::Display for CqlUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "cqls" } else { "cql" };
        write!(f, "{scheme}://{}/{}", self.hosts.join(","), self.keyspace)
    }
}

impl fmt::Debug for CqlUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CqlUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_with_everything_it_says() {
        let text = "cql://an%40n:p%3A%25@h1:9142,h2,[::1]:7/darkages?dc=eu&consistency=each_quorum&serial=local_serial&layout=scaled&timeout=3";
        let url = CqlUrl::parse(text).unwrap();
        assert_eq!(url.user, Some(("an@n".into(), "p:%".into())));
        assert_eq!(url.hosts, ["h1:9142", "h2:9042", "[::1]:7"]);
        assert_eq!((url.keyspace(), url.data_centre.as_deref()), ("darkages", Some("eu")));
        assert_eq!((url.consistency, url.serial), (Consistency::EachQuorum, SerialConsistency::LocalSerial));
        assert_eq!(
            (url.layout(), url.timeout, url.is_tls),
            (CqlLayout::Scaled, Duration::from_secs(3), false)
        );
        let plain = CqlUrl::parse("cqls://db/k?ca=/etc/ca.pem").unwrap();
        assert_eq!((plain.consistency, plain.layout()), (Consistency::LocalQuorum, CqlLayout::Document));
        assert_eq!((plain.is_tls, plain.authority.as_deref()), (true, Some("/etc/ca.pem")));
    }

    #[test]
    fn mistakes_are_named_and_passwords_are_not() {
        for (text, expected) in [
            ("redis://pa55word@h/k", "begins with cql://"),
            ("cql://u:pa55word@/k", "host \"\""),
            ("cql://u:pa55word@h:port/k", "host \"h\""),
            ("cql://u:pa55word/k", "host \"u\""),
            ("cql://u:pa55?word@h/k", "%3F for ?"),
            ("cql://u:pa55word@h", "keyspace \"\""),
            ("cql://u:pa55word@h/Ke-y", "keyspace \"Ke-y\""),
            ("cql://u@h/k", "user and password are not understood"),
            ("cql://u:pa55%word@h/k", "password has a %"),
            ("cql://u:pa55word@h/k?color=red", "\"color\" does not exist"),
            ("cql://u:pa55word@h/k?consistency=any", "consistency= is \"any\""),
            ("cql://u:pa55word@h/k?layout=wide", "document or scaled"),
            ("cql://u:pa55word@h/k?timeout=0", "seconds from 1 to 3600"),
            ("cql://u:pa55word@h/k?ca=x", "with cqls:// only"),
        ] {
            let error = CqlUrl::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("pa55"), "{error}");
        }
        let url = CqlUrl::parse("cql://user:s@cret@h/k").unwrap();
        assert_eq!(format!("{url} {url:?}"), "cql://h:9042/k CqlUrl(cql://h:9042/k)");
    }
}
