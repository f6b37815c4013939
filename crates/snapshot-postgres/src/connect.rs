//! Connections. Each operation has its own: they are few and long.

use crate::failure::failed;
use crate::tls::Tls;
use crate::url::Url;
use emberkeep_snapshot::Result;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, NoTls, Socket};

/// How to connect.
#[derive(Clone)]
pub(crate) struct Connector {
    url: Url,
    /// `None` = plain text.
    tls: Option<Tls>,
}

impl Connector {
    pub(crate) fn new(url: Url) -> Result<Connector> {
        let is_plain = url.config.get_ssl_mode() == SslMode::Disable;
        let tls = if is_plain { None } else { Some(Tls::new(url.ca.as_deref())?) };
        Ok(Connector { url, tls })
    }

    /// The server without credentials.
    pub(crate) fn name(&self) -> &str {
        &self.url.name
    }

    pub(crate) async fn connect(&self) -> Result<Client> {
        let connected = match self.tls.clone() {
            Some(tls) => self.connect_by(tls).await,
            None => self.connect_by(NoTls).await,
        };
        connected.map_err(|error| failed(self.name(), &error))
    }

    async fn connect_by<T>(&self, tls: T) -> Result<Client, tokio_postgres::Error>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let (client, connection) = self.url.config.connect(tls).await?;
        let name = self.url.name.clone();
        // It ends with the client. What broke it is also the error of the call that was running.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(server = %name, %error, "a connection of snapshots broke");
            }
        });
        Ok(client)
    }
}
