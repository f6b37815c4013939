//! Settings among the environment's variables. One that begins like ours and is none is an error, unless we know whose it is.

use super::declared::{SETTINGS, Setting};
use super::source::{SettingTexts, nearest};
use anyhow::{anyhow, bail};
use std::ffi::{OsStr, OsString};

const PREFIX: &str = "EMBERKEEP_";

/// Variables of ours that are not settings: the file's name, which the command line reads, and those of tests.
const NO_SETTINGS: &[&str] = &[
    "EMBERKEEP_CONFIG",
    "EMBERKEEP_CASE",
    "EMBERKEEP_CASSANDRA",
    "EMBERKEEP_CHROMIUM",
    "EMBERKEEP_JAVA",
    "EMBERKEEP_PROGRAMS",
    "EMBERKEEP_REDIS",
    "EMBERKEEP_SCHEMATHESIS",
    "EMBERKEEP_VALKEY",
];
/// What only tests read begins like this, too.
const TEST_PREFIXES: [&str; 3] = ["EMBERKEEP_TEST", "EMBERKEEP_KILL_", "EMBERKEEP_FAIRNESS_"];

/// What is given among them.
pub(super) fn from_variables(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> anyhow::Result<SettingTexts> {
    let mut given = SettingTexts::new();
    for (name, text) in variables {
        let name = name.to_string_lossy();
        if !name.starts_with(PREFIX) {
            continue;
        }
        match SETTINGS.iter().find(|setting| setting.variable() == name) {
            Some(setting) => {
                let text = text.into_string().map_err(|_| anyhow!("the variable {name} is not UTF-8"))?;
                given.insert(setting.name, text);
            }
            None if is_of_tests(&name) || is_of_kubernetes(&name, &text) => {}
            None => bail!("unknown variable {name}{}", nearest(&name, Setting::variable)),
        }
    }
    Ok(given)
}

fn is_of_tests(name: &str) -> bool {
    NO_SETTINGS.contains(&name) || TEST_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Kubernetes names every service of a namespace in the variables of every container. A service named `emberkeep`, or `emberkeep-` and
/// something, appears like this: `…_SERVICE_HOST`, `…_SERVICE_PORT`, `…_SERVICE_PORT_HTTP`, `…_PORT` with a URL,
/// `…_PORT_7777_TCP`, `…_PORT_7777_TCP_ADDR`.
fn is_of_kubernetes(name: &str, text: &OsStr) -> bool {
    if name.ends_with("_SERVICE_HOST") || name.ends_with("_SERVICE_PORT") || name.contains("_SERVICE_PORT_") {
        return true;
    }
    if name.ends_with("_PORT") && text.to_str().is_some_and(|text| text.contains("://")) {
        return true;
    }
    let Some((_, port)) = name.rsplit_once("_PORT_") else { return false };
    let mut parts = port.split('_');
    let (number, protocol, what) = (parts.next(), parts.next(), parts.next());
    number.is_some_and(|number| number.parse::<u16>().is_ok())
        && matches!(protocol, Some("TCP" | "UDP" | "SCTP"))
        && matches!(what, None | Some("PROTO" | "PORT" | "ADDR"))
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> anyhow::Result<SettingTexts> {
        let variables: Vec<_> = variables.iter().map(|(name, text)| (name.into(), text.into())).collect();
        from_variables(variables.into_iter())
    }

    #[test]
    fn an_unknown_variable_is_refused_and_the_nearest_is_named() {
        let error = read(&[("EMBERKEEP_HTPP", "")]).unwrap_err().to_string();
        assert_eq!(error, "unknown variable EMBERKEEP_HTPP; did you mean EMBERKEEP_HTTP?");
    }

    #[test]
    fn variables_of_others_and_of_tests_are_left_alone() {
        let found = read(&[
            ("PATH", "x"),
            ("EMBERKEEP_TEST_LINES", "x"),
            ("EMBERKEEP_TESTKIT_VICTIM", "x"),
            ("EMBERKEEP_CHROMIUM", "x"),
            ("EMBERKEEP_SCHEMATHESIS", "x"),
            ("EMBERKEEP_VALKEY", "x"),
            ("EMBERKEEP_DATA", "d"),
        ]);
        assert_eq!(found.unwrap(), SettingTexts::from([("data", "d".to_owned())]));
    }

    #[test]
    fn what_kubernetes_tells_of_services_is_no_setting_and_what_looks_like_it_is_refused() {
        let url = "tcp://10.96.3.7:7777";
        for name in ["EMBERKEEP", "EMBERKEEP_METRICS", "EMBERKEEP_PORT_1"] {
            for suffix in ["SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_7777_TCP"] {
                assert_eq!(
                    read(&[(&format!("{name}_{suffix}"), url)]).unwrap(),
                    SettingTexts::new(),
                    "{name}_{suffix}"
                );
            }
            for what in ["PROTO", "PORT", "ADDR"] {
                read(&[(&format!("{name}_PORT_53_UDP_{what}"), "53")]).unwrap();
            }
        }
        for name in ["EMBERKEEP_PORT", "EMBERKEEP_PORT_X_TCP", "EMBERKEEP_PORT_7777", "EMBERKEEP_SERVICE"] {
            let error = read(&[(name, "8080")]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("unknown variable {name};")), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_text_that_is_not_utf_8_is_refused_and_not_dropped() {
        use std::os::unix::ffi::OsStringExt as _;
        let broken = || OsString::from_vec(b"/srv/\xff".to_vec());
        let error = from_variables([("EMBERKEEP_TOKENS".into(), broken())].into_iter()).unwrap_err();
        assert_eq!(error.to_string(), "the variable EMBERKEEP_TOKENS is not UTF-8");
        assert_eq!(from_variables([("PATH".into(), broken())].into_iter()).unwrap(), SettingTexts::new());
    }
}
