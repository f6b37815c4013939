//! Texts that may hold a password, as they may be shown.

/// Options of a store's URL whose values are not secret.
const HARMLESS: [&str; 10] =
    ["sslmode", "prefix", "wait", "ca", "durability", "dc", "consistency", "serial", "layout", "timeout"];

/// What the URL of a server begins with, before `://`.
const SERVER_SCHEMES: [&str; 10] = [
    "postgres",
    "postgresql",
    "redis",
    "rediss",
    "valkey",
    "valkeys",
    "redis+cluster",
    "rediss+cluster",
    "cql",
    "cqls",
];

/// The URL of a store without what may be a password: what stands before the last `@`, and options that we do not know.
pub(crate) fn masked(text: &str) -> String {
    let (scheme, rest) = match text.find("://") {
        Some(at) => text.split_at(at + "://".len()),
        None => ("", text),
    };
    // The last `@` ends the credentials: a password may hold one itself.
    let Some((credentials, place)) = rest.rsplit_once('@') else {
        return match scheme.is_empty() {
            true => without_password(rest),
            false if is_hosts(rest) => format!("{scheme}{}", without_options(rest)),
            false => format!("{scheme}***"),
        };
    };
    if credentials.contains('?') {
        // A password with a `?`, or an option with an `@`: it is unclear where it ends.
        return format!("{scheme}***");
    }
    let user = credentials.split_once(':').map_or("", |(user, _)| user);
    format!("{scheme}{user}:***@{}", without_options(place))
}

/// Whether all that follows a colon is a port. Otherwise it may be a password without its `@`.
fn is_hosts(place: &str) -> bool {
    let hosts = place.split(['/', '?']).next().unwrap_or_default();
    hosts.split(',').all(|host| {
        let behind_address = host.rsplit(']').next().unwrap_or_default();
        let port = behind_address.split_once(':').map_or("", |(_, port)| port);
        port.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A text without `://`. Behind the scheme of a server it may be a password.
fn without_password(text: &str) -> String {
    match text.split_once(':') {
        Some((scheme, _)) if SERVER_SCHEMES.contains(&scheme) => format!("{scheme}:***"),
        _ => without_options(text),
    }
}

/// A place with its options, of which only the harmless ones keep their value.
fn without_options(place: &str) -> String {
    let Some((place, options)) = place.split_once('?') else { return place.to_owned() };
    let shown = options.split('&').map(|option| match option.split_once('=') {
        Some((name, _)) if HARMLESS.contains(&name) => option.to_owned(),
        Some((name, _)) => format!("{name}=***"),
        None => "***".to_owned(),
    });
    format!("{place}?{}", shown.collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (text, shown) in [
            ("redis://ann:s3cr@t@host:1/0", "redis://ann:***@host:1/0"),
            ("redis://:s3cret@host", "redis://:***@host"),
            ("redis://s3cret@host", "redis://:***@host"),
            (":s3cret@host", ":***@host"),
            ("s3cret@host:1", ":***@host:1"),
            ("redis://host?password=s3cret&wait=1", "redis://host?password=***&wait=1"),
            ("host?s3cret", "host?***"),
            ("redis://:s3?cret@host", "redis://***"),
            ("redis://host?password=s3@cret", "redis://***"),
            ("redis://ann:s3cret", "redis://***"),
            ("redis://ann:s3cret:6379/0", "redis://***"),
            ("redis+cluster://a:1,:s3cret", "redis+cluster://***"),
            ("redis:s3cret", "redis:***"),
            ("cql://[::1]:9042,host/game?dc=eu", "cql://[::1]:9042,host/game?dc=eu"),
            ("127.0.0.1:7777", "127.0.0.1:7777"),
            ("rediss://host:6379/0?ca=/a/ca.pem&prefix=eu:", "rediss://host:6379/0?ca=/a/ca.pem&prefix=eu:"),
            ("redis://host:6379", "redis://host:6379"),
            ("embedded", "embedded"),
            ("file:data?durability=always", "file:data?durability=always"),
        ] {
            assert_eq!(masked(text), shown);
        }
    }
}
