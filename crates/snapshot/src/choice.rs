//! Which keys of a snapshot a restore or a comparison is about.

use std::fmt;
use std::sync::Arc;

type Test = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Which keys of a partition are meant, by their names without prefix and tag. Its text stands in the mark of an
/// unfinished restore: two choices of the same text must choose the same keys.
#[derive(Clone)]
pub struct KeyChoice {
    text: String,
    test: Option<Test>,
}

impl KeyChoice {
    /// All keys.
    pub fn all() -> KeyChoice {
        KeyChoice { text: "all keys".into(), test: None }
    }

    /// Keys whose name begins with one of these texts; without any, all keys.
    pub fn prefixes(prefixes: &[String]) -> KeyChoice {
        if prefixes.is_empty() {
            return KeyChoice::all();
        }
        let (mut text, chosen) = (String::from("keys"), prefixes.to_vec());
        prefixes.iter().for_each(|prefix| text.push_str(&format!(" {prefix}*")));
        KeyChoice::by(text, move |name| chosen.iter().any(|prefix| name.starts_with(prefix.as_bytes())))
    }

    /// Keys by a function, with a text that says which.
    pub fn by(text: impl Into<String>, test: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> KeyChoice {
        KeyChoice { text: text.into(), test: Some(Arc::new(test)) }
    }

    /// Whether all keys are meant.
    pub fn is_all(&self) -> bool {
        self.test.is_none()
    }

    /// Whether a key is meant.
    pub fn chooses(&self, name: &[u8]) -> bool {
        self.test.as_ref().is_none_or(|test| test(name))
    }
}

impl fmt::Display for KeyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
