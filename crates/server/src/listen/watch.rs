//! Files that may be replaced while the server runs: tokens, certificate, key.
//!
//! What counts is what a file holds, compared with what was last put in force: whatever differs is tried at every look until
//! it can be used, and leaves the old in force until then. Each trouble is told once.

use super::settings::{ListenError, Tls};
use crate::auth::{self, Entry, FileError, Tokens};
use crate::limits::FILES_CHECKED_EVERY;
use axum_server::tls_rustls::RustlsConfig;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{Mutex, Notify};

/// What a look found.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// What is in force, or a trouble that was told already.
    NothingNew,
    /// Something else, which is in force now.
    Replaced,
    /// Something that cannot be used, and why.
    Unusable(String),
}

/// The trouble that was told last.
#[derive(Default)]
struct Trouble(Option<String>);

impl Trouble {
    fn found<E: std::fmt::Display>(&mut self, outcome: Result<bool, E>) -> Found {
        let trouble = match outcome {
            Ok(replaced) => {
                self.0 = None;
                return if replaced { Found::Replaced } else { Found::NothingNew };
            }
            Err(error) => error.to_string(),
        };
        if self.0.as_ref() == Some(&trouble) {
            return Found::NothingNew;
        }
        self.0 = Some(trouble.clone());
        Found::Unusable(trouble)
    }
}

/// The file of tokens.
pub(super) struct TokenFile {
    path: PathBuf,
    tokens: Tokens,
    /// Its text of which the tokens in force are.
    in_force: String,
    trouble: Trouble,
}

impl TokenFile {
    /// Reads it for the first time.
    pub(super) fn open(path: &Path) -> Result<TokenFile, FileError> {
        let in_force = auth::read_text(path)?;
        let entries = auth::read_entries(path, &in_force)?;
        if entries.is_empty() {
            tracing::warn!("the token file {} holds no token: nobody is let in", path.display());
        }
        let tokens = Tokens::of(&entries);
        Ok(TokenFile { path: path.to_owned(), tokens, in_force, trouble: Trouble::default() })
    }

    /// Its tokens, which are replaced with it.
    pub(super) fn tokens(&self) -> Tokens {
        self.tokens.clone()
    }

    fn look(&mut self) -> Found {
        let outcome = self.reload();
        self.trouble.found(outcome)
    }

    fn reload(&mut self) -> Result<bool, FileError> {
        let text = auth::read_text(&self.path)?;
        if text == self.in_force {
            return Ok(false);
        }
        let entries = auth::read_entries(&self.path, &text)?;
        self.refuse_to_lock_out(&entries)?;
        self.tokens.replace(&entries);
        self.in_force = text;
        Ok(true)
    }

    /// A file that holds no token any more is being written, or was emptied by mistake: nobody could call.
    fn refuse_to_lock_out(&self, entries: &[Entry]) -> Result<(), FileError> {
        if !entries.is_empty() || self.tokens.is_empty() {
            return Ok(());
        }
        Err(FileError::unreadable(&self.path, "it holds no token any more; to let nobody in, end the server"))
    }
}

/// The files of certificate and key.
pub(super) struct CertificateFiles {
    files: Tls,
    config: RustlsConfig,
    /// What they held when they were put in force.
    in_force: (Vec<u8>, Vec<u8>),
    trouble: Trouble,
}

impl CertificateFiles {
    /// Reads them for the first time.
    pub(super) async fn open(files: &Tls) -> Result<CertificateFiles, ListenError> {
        // Somebody else in the process may have chosen a provider already: that one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let unusable = |error| ListenError::Tls {
            certificate: files.certificate.display().to_string(),
            key: files.key.display().to_string(),
            error,
        };
        let in_force = files.read().map_err(unusable)?;
        let (certificate, key) = in_force.clone();
        let config = RustlsConfig::from_pem(certificate, key).await.map_err(unusable)?;
        Ok(CertificateFiles { files: files.clone(), config, in_force, trouble: Trouble::default() })
    }

    /// What the listener uses; it is replaced with the files.
    pub(super) fn config(&self) -> RustlsConfig {
        self.config.clone()
    }

    async fn look(&mut self) -> Found {
        let outcome = self.reload().await;
        self.trouble.found(outcome)
    }

    async fn reload(&mut self) -> io::Result<bool> {
        let found = self.files.read()?;
        if found == self.in_force {
            return Ok(false);
        }
        let (certificate, key) = found.clone();
        self.config.reload_from_pem(certificate, key).await?;
        self.in_force = found;
        Ok(true)
    }
}

impl Tls {
    fn read(&self) -> io::Result<(Vec<u8>, Vec<u8>)> {
        Ok((std::fs::read(&self.certificate)?, std::fs::read(&self.key)?))
    }
}

/// The files that may be replaced. A look that panics leaves them as they were, so that the next one can go on.
pub(super) struct Watched {
    pub(super) tokens: Option<TokenFile>,
    pub(super) certificate: Option<CertificateFiles>,
}

/// Looks every now and then whether they were replaced, and at once when told to. Ends when the server ends.
pub(super) async fn watch(files: Arc<Mutex<Watched>>, now: Arc<Notify>) {
    loop {
        let _ = tokio::time::timeout(FILES_CHECKED_EVERY, now.notified()).await;
        let mut files = files.lock().await;
        if let Some(file) = files.tokens.as_mut() {
            tell("tokens", file.look());
        }
        if let Some(certificate) = files.certificate.as_mut() {
            tell("certificate", certificate.look().await);
        }
    }
}

fn tell(what: &str, found: Found) {
    match found {
        Found::NothingNew => {}
        Found::Replaced => tracing::info!("{what} replaced: what the file holds now is in force"),
        Found::Unusable(trouble) => tracing::error!("{what} not replaced, the old stays in force: {trouble}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Role, Shown, Token, write_entry};
    use emberkeep_testkit::{Certificates, require, scratch};

    fn text_with(name: &str, token: &Token) -> String {
        let folder = scratch();
        let entry = Entry { name: name.into(), role: Role::Service, hash: token.hash() };
        write_entry(&folder.join("t"), &entry).unwrap();
        std::fs::read_to_string(folder.join("t")).unwrap()
    }

    fn is_known(file: &TokenFile, token: &Token) -> bool {
        matches!(file.tokens().look_up(Some(token.reveal())), Shown::Known(_))
    }

    #[test]
    fn tokens_that_cannot_be_read_are_tried_until_they_can() {
        let (folder, old, new) = (scratch(), Token::new().unwrap(), Token::new().unwrap());
        let path = folder.join("tokens.toml");
        std::fs::write(&path, text_with("old", &old)).unwrap();
        let mut file = TokenFile::open(&path).unwrap();
        assert_eq!(file.look(), Found::NothingNew);
        // The whole file is there at last, under the very time at which its first half was.
        let whole = text_with("new", &new);
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let half_at = std::fs::metadata(&path).unwrap().modified().unwrap();
        assert!(matches!(file.look(), Found::Unusable(_)));
        assert_eq!(file.look(), Found::NothingNew, "a trouble is told once");
        std::fs::write(&path, whole).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(half_at).unwrap();
        assert!(is_known(&file, &old));
        assert_eq!(file.look(), Found::Replaced);
        assert!(is_known(&file, &new) && !is_known(&file, &old));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(file.look(), Found::Unusable(_)), "a new trouble is told");
        assert!(is_known(&file, &new));
    }

    #[test]
    fn an_emptied_file_of_tokens_locks_nobody_out() {
        let (folder, token) = (scratch(), Token::new().unwrap());
        let path = folder.join("tokens.toml");
        std::fs::write(&path, text_with("one", &token)).unwrap();
        let mut file = TokenFile::open(&path).unwrap();
        for empty in ["", "# nobody\n"] {
            std::fs::write(&path, text_with("one", &token)).unwrap();
            assert_eq!(file.look(), Found::NothingNew);
            std::fs::write(&path, empty).unwrap();
            let Found::Unusable(trouble) = file.look() else { panic!("{empty:?} is in force") };
            assert!(trouble.contains("holds no token any more"), "{trouble}");
            assert!(is_known(&file, &token));
        }
    }

    #[tokio::test]
    async fn a_bad_certificate_leaves_the_old_one() {
        let Some(first) = require(Certificates::make()) else { return };
        let second = Certificates::make().unwrap();
        let files = Tls { certificate: first.path("server.pem"), key: first.path("server.key") };
        let mut watched = CertificateFiles::open(&files).await.unwrap();
        let old = watched.config().get_inner();
        let is_old = |watched: &CertificateFiles| Arc::ptr_eq(&old, &watched.config().get_inner());
        std::fs::write(&files.certificate, "no certificate").unwrap();
        assert!(matches!(watched.look().await, Found::Unusable(_)));
        assert_eq!(watched.look().await, Found::NothingNew, "a trouble is told once");
        // A certificate whose key has not arrived yet.
        std::fs::copy(second.path("server.pem"), &files.certificate).unwrap();
        assert!(matches!(watched.look().await, Found::Unusable(_)));
        assert!(is_old(&watched));
        std::fs::copy(second.path("server.key"), &files.key).unwrap();
        assert_eq!(watched.look().await, Found::Replaced);
        assert!(!is_old(&watched));
    }
}
