//! Hot reload of token file, certificate and key.
//!
//! The content of a file is compared with the content in use. A difference is tried at every check until it
//! is usable; until then the old content stays in use. Each error is logged once.

use super::settings::{ListenError, Tls};
use super::tls::TlsConfig;
use crate::auth::{self, Entry, FileError, Tokens};
use crate::limits::FILES_CHECKED_EVERY;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{Mutex, Notify};

/// The outcome of a check.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The content in use, or an error that was reported before.
    Unchanged,
    Replaced,
    /// The content cannot be used, and why.
    Unusable(String),
}

/// The error that was reported last.
#[derive(Default)]
struct LastError(Option<String>);

impl LastError {
    fn report<E: std::fmt::Display>(&mut self, reloaded: Result<bool, E>) -> Outcome {
        let error = match reloaded {
            Ok(replaced) => {
                self.0 = None;
                return if replaced { Outcome::Replaced } else { Outcome::Unchanged };
            }
            Err(error) => error.to_string(),
        };
        if self.0.as_ref() == Some(&error) {
            return Outcome::Unchanged;
        }
        self.0 = Some(error.clone());
        Outcome::Unusable(error)
    }
}

/// The token file.
pub(super) struct TokenFile {
    path: PathBuf,
    tokens: Tokens,
    /// The text of the tokens in use.
    current: String,
    last_error: LastError,
}

impl TokenFile {
    /// Reads the file for the first time.
    pub(super) fn open(path: &Path) -> Result<TokenFile, FileError> {
        let current = auth::read_text(path)?;
        let entries = auth::read_entries(path, &current)?;
        if entries.is_empty() {
            tracing::warn!("the token file {} holds no token: every request is refused", path.display());
        }
        let tokens = Tokens::of(&entries);
        Ok(TokenFile { path: path.to_owned(), tokens, current, last_error: LastError::default() })
    }

    /// The tokens; they change with the file.
    pub(super) fn tokens(&self) -> Tokens {
        self.tokens.clone()
    }

    fn check(&mut self) -> Outcome {
        let reloaded = self.reload();
        self.last_error.report(reloaded)
    }

    fn reload(&mut self) -> Result<bool, FileError> {
        let text = auth::read_text(&self.path)?;
        if text == self.current {
            return Ok(false);
        }
        let entries = auth::read_entries(&self.path, &text)?;
        self.refuse_to_lock_out(&entries)?;
        self.tokens.replace(&entries);
        self.current = text;
        Ok(true)
    }

    /// A file that has become empty is being written, or was emptied by mistake.
    fn refuse_to_lock_out(&self, entries: &[Entry]) -> Result<(), FileError> {
        if !entries.is_empty() || self.tokens.is_empty() {
            return Ok(());
        }
        Err(FileError::unreadable(
            &self.path,
            "it holds no token any more; to refuse all requests, stop the server",
        ))
    }
}

/// Certificate and key.
pub(super) struct CertificateFiles {
    files: Tls,
    config: TlsConfig,
    /// The content in use.
    current: (Vec<u8>, Vec<u8>),
    last_error: LastError,
}

impl CertificateFiles {
    /// Reads the files for the first time.
    pub(super) fn open(files: &Tls) -> Result<CertificateFiles, ListenError> {
        // Fails if the process has already installed a provider, which then stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let unusable = |error| ListenError::Tls {
            certificate: files.certificate.display().to_string(),
            key: files.key.display().to_string(),
            error,
        };
        let current = files.read().map_err(unusable)?;
        let config = TlsConfig::from_pem(&current.0, &current.1).map_err(unusable)?;
        Ok(CertificateFiles { files: files.clone(), config, current, last_error: LastError::default() })
    }

    /// The listener's configuration; it changes with the files.
    pub(super) fn config(&self) -> TlsConfig {
        self.config.clone()
    }

    fn check(&mut self) -> Outcome {
        let reloaded = self.reload();
        self.last_error.report(reloaded)
    }

    fn reload(&mut self) -> io::Result<bool> {
        let found = self.files.read()?;
        if found == self.current {
            return Ok(false);
        }
        self.config.replace(&found.0, &found.1)?;
        self.current = found;
        Ok(true)
    }
}

impl Tls {
    fn read(&self) -> io::Result<(Vec<u8>, Vec<u8>)> {
        Ok((std::fs::read(&self.certificate)?, std::fs::read(&self.key)?))
    }
}

/// All reloadable files. A check that panics leaves them as they were, so that the next one can go on.
pub(super) struct ReloadableFiles {
    pub(super) tokens: Option<TokenFile>,
    pub(super) certificate: Option<CertificateFiles>,
}

/// Checks the files every [`FILES_CHECKED_EVERY`], and at once when notified.
pub(super) async fn watch(files: Arc<Mutex<ReloadableFiles>>, now: Arc<Notify>) {
    loop {
        let _ = tokio::time::timeout(FILES_CHECKED_EVERY, now.notified()).await;
        let mut files = files.lock().await;
        if let Some(file) = files.tokens.as_mut() {
            log("tokens", file.check());
        }
        if let Some(certificate) = files.certificate.as_mut() {
            log("certificate", certificate.check());
        }
    }
}

fn log(what: &str, outcome: Outcome) {
    match outcome {
        Outcome::Unchanged => {}
        Outcome::Replaced => tracing::info!("{what} reloaded"),
        Outcome::Unusable(error) => {
            tracing::error!("{what} not reloaded, the old content stays in use: {error}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Role, Token, TokenCheck, write_entry};
    use emberkeep_testkit::{Certificates, require, scratch};

    fn text_with(name: &str, token: &Token) -> String {
        let folder = scratch();
        let entry = Entry { name: name.into(), role: Role::Service, service: None, hash: token.hash() };
        write_entry(&folder.join("t"), &entry).unwrap();
        std::fs::read_to_string(folder.join("t")).unwrap()
    }

    fn is_known(file: &TokenFile, token: &Token) -> bool {
        matches!(file.tokens().look_up(Some(token.reveal())), TokenCheck::Known(_))
    }

    #[test]
    fn tokens_that_cannot_be_read_are_tried_until_they_can() {
        let (folder, old, new) = (scratch(), Token::new().unwrap(), Token::new().unwrap());
        let path = folder.join("tokens.toml");
        std::fs::write(&path, text_with("old", &old)).unwrap();
        let mut file = TokenFile::open(&path).unwrap();
        assert_eq!(file.check(), Outcome::Unchanged);
        // The whole file is there at last, under the very time at which its first half was.
        let whole = text_with("new", &new);
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let half_at = std::fs::metadata(&path).unwrap().modified().unwrap();
        assert!(matches!(file.check(), Outcome::Unusable(_)));
        assert_eq!(file.check(), Outcome::Unchanged, "an error is reported once");
        std::fs::write(&path, whole).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(half_at).unwrap();
        assert!(is_known(&file, &old));
        assert_eq!(file.check(), Outcome::Replaced);
        assert!(is_known(&file, &new) && !is_known(&file, &old));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(file.check(), Outcome::Unusable(_)), "a new error is reported");
        assert!(is_known(&file, &new));
    }

    #[test]
    fn an_emptied_token_file_keeps_the_old_tokens() {
        let (folder, token) = (scratch(), Token::new().unwrap());
        let path = folder.join("tokens.toml");
        std::fs::write(&path, text_with("one", &token)).unwrap();
        let mut file = TokenFile::open(&path).unwrap();
        for empty in ["", "# empty\n"] {
            std::fs::write(&path, text_with("one", &token)).unwrap();
            assert_eq!(file.check(), Outcome::Unchanged);
            std::fs::write(&path, empty).unwrap();
            let Outcome::Unusable(error) = file.check() else { panic!("{empty:?} is in use") };
            assert!(error.contains("holds no token any more"), "{error}");
            assert!(is_known(&file, &token));
        }
    }

    #[test]
    fn a_bad_certificate_leaves_the_old_one() {
        let Some(first) = require(Certificates::make()) else { return };
        let second = Certificates::make().unwrap();
        let files = Tls { certificate: first.path("server.pem"), key: first.path("server.key") };
        let mut watched = CertificateFiles::open(&files).unwrap();
        let old = watched.config().current();
        let is_old = |watched: &CertificateFiles| Arc::ptr_eq(&old, &watched.config().current());
        std::fs::write(&files.certificate, "no certificate").unwrap();
        assert!(matches!(watched.check(), Outcome::Unusable(_)));
        assert_eq!(watched.check(), Outcome::Unchanged, "an error is reported once");
        // A certificate whose key has not arrived yet.
        std::fs::copy(second.path("server.pem"), &files.certificate).unwrap();
        assert!(matches!(watched.check(), Outcome::Unusable(_)));
        assert!(is_old(&watched));
        std::fs::copy(second.path("server.key"), &files.key).unwrap();
        assert_eq!(watched.check(), Outcome::Replaced);
        assert!(!is_old(&watched));
    }
}
