//! Why a call to a server failed, classified by the one question that matters: can it have been executed?

use emberkeep_hot::Error;
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why a call has no answer.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The server answered that it did not execute the call, and may later.
    NotYet { reason: String },
    /// Another server has the slot.
    Moved { to: (String, u16) },
    /// The slot is moving, and this call must go to its target.
    Ask { to: (String, u16) },
    /// The server does not have the script: send its text.
    NoScript,
    /// The server refuses, and will again. Not executed.
    Refused(Error),
    /// There was no connection to send it on. Not executed.
    Unreachable { reason: String },
    /// A caller cancelled before it was sent. Not executed.
    Cancelled,
    /// The connection broke or the answer did not come: perhaps executed.
    Lost { reason: String },
}

impl Failure {
    /// Classifies an error of the client library.
    pub(crate) fn of(backend: &str, error: RedisError) -> Failure {
        use ServerErrorKind::*;
        let reason = reason(&error);
        // The library gives host and port in one text, then the slot.
        let redirect = error.redirect_node().and_then(|(address, _slot)| host_and_port(address));
        match (error.kind(), redirect) {
            (ErrorKind::Server(Moved), Some(to)) => Failure::Moved { to },
            (ErrorKind::Server(Ask), Some(to)) => Failure::Ask { to },
            (ErrorKind::Server(NoScript), _) => Failure::NoScript,
            (ErrorKind::Server(TryAgain | ClusterDown | MasterDown | BusyLoading | ReadOnly), _) => {
                Failure::NotYet { reason }
            }
            (ErrorKind::Server(NoPerm), _) | (ErrorKind::AuthenticationFailed, _) => {
                Failure::Refused(denied(backend, reason))
            }
            (ErrorKind::Server(_), _) | (ErrorKind::Extension, _) => by_code(backend, error.code(), reason),
            _ => Failure::Lost { reason },
        }
    }

    /// Classifies an error of opening a connection: nothing was sent. Only wrong credentials are final; a
    /// server with too many clients, for example, may accept more later.
    pub(crate) fn of_connecting(backend: &str, error: RedisError) -> Failure {
        match Failure::of(backend, error) {
            Failure::Lost { reason } | Failure::Refused(Error::Unavailable { reason, .. }) => {
                Failure::Unreachable { reason }
            }
            other => other,
        }
    }

    /// Classifies an error that a script returned as text.
    pub(crate) fn of_text(backend: &str, text: &str) -> Failure {
        by_code(backend, text.split_whitespace().next(), text.to_owned())
    }

    /// The error of a call outside of transactions.
    pub(crate) fn into_error(self, backend: &str) -> Error {
        let reason = match self {
            Failure::Refused(error) => return error,
            other => other.reason(),
        };
        if reason.contains("invalid peer certificate") {
            unavailable(backend, reason, "name a private authority in the URL, ?ca=/path/ca.pem")
        } else if reason.contains("cluster support disabled") {
            unavailable(backend, "it is one server and no Cluster".into(), "write redis:// in the URL")
        } else if reason.contains("Parse error") || reason.contains("parse error") {
            unavailable(
                backend,
                "its answer is not one of Redis".into(),
                "check host and port of the URL: something else listens there",
            )
        } else if reason.starts_with("READONLY") {
            unavailable(backend, reason, NAME_THE_PRIMARY)
        } else {
            unavailable(backend, reason, "check that it runs and can be reached")
        }
    }

    /// What happened, for error messages.
    pub(crate) fn reason(&self) -> String {
        match self {
            Failure::NotYet { reason } | Failure::Unreachable { reason } | Failure::Lost { reason } => {
                reason.clone()
            }
            Failure::Moved { to } | Failure::Ask { to } => format!("redirected to {}:{}", to.0, to.1),
            Failure::NoScript => "the script is not loaded".into(),
            Failure::Cancelled => "a transaction of the same commit was given up".into(),
            Failure::Refused(error) => error.to_string(),
        }
    }
}

/// What helps against a server that is a replica.
pub(crate) const NAME_THE_PRIMARY: &str =
    "name its primary in the URL, or a host name that follows the primary";

/// Classifies an error by its code, also where the client library has no name for it.
fn by_code(backend: &str, code: Option<&str>, reason: String) -> Failure {
    match code.unwrap_or_default() {
        "LOADING" | "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "READONLY" | "UNBLOCKED"
        | "NOREPLICAS" => Failure::NotYet { reason },
        "NOSCRIPT" => Failure::NoScript,
        "OOM" => Failure::Refused(Error::OutOfMemory { detail: format!("{backend} says {reason}") }),
        "NOAUTH" | "WRONGPASS" | "NOPERM" => Failure::Refused(denied(backend, reason)),
        "MISCONF" => {
            Failure::Refused(unavailable(backend, reason, "the server cannot persist; mend its disk"))
        }
        _ if reason.contains("OOM command not allowed") => {
            Failure::Refused(Error::OutOfMemory { detail: format!("{backend} says {reason}") })
        }
        _ if reason.contains("NOAUTH") || reason.contains("WRONGPASS") || lacks_rights(&reason) => {
            Failure::Refused(denied(backend, reason))
        }
        _ => Failure::Refused(unavailable(backend, reason, "the server did not understand; see its version")),
    }
}

/// `127.0.0.1:7000`, `:7000` (the host of the redirecting server), `::1:7000`.
fn host_and_port(address: &str) -> Option<(String, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    // A server that does not know its own name writes a question mark.
    let host = if host == "?" { "" } else { host.trim_start_matches('[').trim_end_matches(']') };
    Some((host.to_owned(), port.parse().ok()?))
}

/// The server's error text, without what the library adds.
fn reason(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) if !detail.starts_with(code) => format!("{code} {detail}"),
        (_, Some(detail)) => detail.to_owned(),
        _ => error.to_string(),
    }
}

pub(crate) fn unavailable(backend: &str, reason: String, advice: &'static str) -> Error {
    Error::Unavailable { backend: backend.to_owned(), reason, advice }
}

/// Whether the text is a refusal by the ACL: a plain one, or what Redis and Valkey return inside a script.
fn lacks_rights(reason: &str) -> bool {
    let words =
        ["NOPERM", "The user executing the script can't", "has no permissions", "ACL failure in script"];
    words.iter().any(|word| reason.contains(word))
}

/// The text without the user's name, which newer servers add: it belongs to the credentials.
fn without_user(reason: String) -> String {
    let around = reason.split_once("User ").and_then(|(before, rest)| {
        let (_name, after) = rest.split_once(" has no permissions")?;
        Some(format!("{before}the user has no permissions{after}"))
    });
    around.unwrap_or(reason)
}

/// The error of a transaction whose command the ACL forbids; found before the first write.
pub(crate) fn forbidden(backend: &str, command: &str) -> Error {
    denied(backend, format!("NOPERM {command} is not allowed"))
}

fn denied(backend: &str, reason: String) -> Error {
    let advice = if lacks_rights(&reason) {
        "grant the user the commands and keys that `emberkeep schema acl` prints; ?wait= needs WAIT and INFO"
    } else {
        "put the right user and password into the URL"
    };
    Error::Denied { backend: backend.to_owned(), reason: without_user(reason), advice }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classified(line: &str) -> Failure {
        let value =
            redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).expect("a line of the protocol");
        Failure::of("here", value.extract_error().expect_err("an error"))
    }

    #[test]
    fn redirects_are_read_from_the_servers_errors() {
        for (line, host, port) in [
            ("MOVED 3999 127.0.0.1:6381", "127.0.0.1", 6381),
            ("MOVED 3999 :6381", "", 6381),
            ("MOVED 3999 ?:6381", "", 6381),
            ("MOVED 3999 ::1:6381", "::1", 6381),
            ("MOVED 3999 redis.example:6381", "redis.example", 6381),
        ] {
            assert!(matches!(classified(line), Failure::Moved { to } if to == (host.into(), port)), "{line}");
        }
        assert!(matches!(classified("ASK 1 h:2"), Failure::Ask { to } if to == ("h".into(), 2)));
    }

    #[test]
    fn only_errors_that_prove_not_executed_are_classified_so() {
        for line in [
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "CLUSTERDOWN The cluster is down",
            "LOADING Redis is loading the dataset in memory",
            "READONLY You can't write against a read only replica.",
            "BUSY Redis is busy running a script.",
            "NOREPLICAS Not enough good replicas to write.",
            "MASTERDOWN Link with MASTER is down",
        ] {
            assert!(matches!(classified(line), Failure::NotYet { .. }), "{line}: {:?}", classified(line));
        }
        assert!(matches!(classified("NOSCRIPT No matching script."), Failure::NoScript));
        for line in
            ["NOAUTH Authentication required.", "NOPERM this user has no permissions", "WRONGPASS invalid"]
        {
            assert!(matches!(classified(line), Failure::Refused(Error::Denied { .. })), "{line}");
        }
        let named = classified("NOPERM User joe has no permissions to run the 'get' command").reason();
        assert!(
            named.contains("the user has no permissions to run the 'get'") && !named.contains("joe"),
            "{named}"
        );
        let oom = classified("OOM command not allowed when used memory > 'maxmemory'.");
        assert!(matches!(oom, Failure::Refused(Error::OutOfMemory { .. })));
        let broken = RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert!(matches!(Failure::of("here", broken), Failure::Lost { .. }));
    }
}
