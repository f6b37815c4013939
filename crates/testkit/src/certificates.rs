//! A private certificate authority and a server certificate, made by openssl.

use crate::scratch::{Scratch, scratch};
use crate::unavailable::Unavailable;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the certificates say; written down, so that the machine's own settings of openssl do not matter.
const SETTINGS: &str = "\
[req]
distinguished_name = name
prompt = no
[name]
CN = emberkeep test
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[server]
basicConstraints = critical, CA:FALSE
subjectAltName = IP:127.0.0.1
extendedKeyUsage = serverAuth, clientAuth
";

/// A private authority and the certificate of a server on 127.0.0.1, in a folder that is removed on drop.
#[derive(Debug)]
pub struct Certificates {
    folder: Scratch,
}

impl Certificates {
    /// New ones: `ca.pem`, `server.pem` and `server.key`.
    pub fn make() -> Result<Self, Unavailable> {
        let folder = scratch();
        std::fs::write(folder.join("settings"), SETTINGS).expect("the folder is ours");
        let new_key = "req -config settings -newkey rsa:2048 -nodes";
        for line in [
            format!("{new_key} -x509 -extensions authority -days 2 -keyout ca.key -out ca.pem"),
            format!("{new_key} -keyout server.key -out server.csr"),
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -set_serial 2 -days 2 \
             -extfile settings -extensions server -out server.pem"
                .to_owned(),
        ] {
            openssl(folder.path(), &line)?;
        }
        Ok(Self { folder })
    }

    /// The server's certificate and key as `server.p12`, the form that Java reads, under this password.
    pub(crate) fn export_pkcs12(&self, password: &str) -> Result<PathBuf, Unavailable> {
        let line = format!(
            "pkcs12 -export -inkey server.key -in server.pem -out server.p12 -passout pass:{password}"
        );
        openssl(self.folder.path(), &line)?;
        Ok(self.path("server.p12"))
    }

    /// Where one of the files is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

fn openssl(folder: &Path, line: &str) -> Result<(), Unavailable> {
    match Command::new("openssl").args(line.split_whitespace()).current_dir(folder).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(Unavailable::Failed(String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(_) => Err(Unavailable::NotFound("openssl not found on PATH (run ./test once)".into())),
    }
}
