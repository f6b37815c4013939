//! Texts that may hold a password, as they may be shown.

/// Options of a store's URL whose values are not secret.
const HARMLESS: [&str; 9] =
    ["prefix", "wait", "ca", "durability", "dc", "consistency", "serial", "layout", "timeout"];

/// The URL of a store without what may be a password: what stands before the last `@`, and options that we do not know.
pub(crate) fn masked(text: &str) -> String {
    let (scheme, rest) = match text.find("://") {
        Some(at) => text.split_at(at + "://".len()),
        None => ("", text),
    };
    // The last `@` ends the credentials: a password may hold one itself.
    let Some((credentials, place)) = rest.rsplit_once('@') else {
        return format!("{scheme}{}", without_options(rest));
    };
    if credentials.contains('?') {
        // A password with a `?`, or an option with an `@`: it is unclear where it ends.
        return format!("{scheme}***");
    }
    let user = credentials.split_once(':').map_or("", |(user, _)| user);
    format!("{scheme}{user}:***@{}", without_options(place))
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
            ("rediss://host:6379/0?ca=/a/ca.pem&prefix=eu:", "rediss://host:6379/0?ca=/a/ca.pem&prefix=eu:"),
            ("redis://host:6379", "redis://host:6379"),
            ("embedded", "embedded"),
            ("file:data?durability=always", "file:data?durability=always"),
        ] {
            assert_eq!(masked(text), shown);
        }
    }
}
