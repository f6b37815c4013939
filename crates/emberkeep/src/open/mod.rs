//! Opening a store by its URL: the one place that knows which engines exist.

mod error;
#[cfg(feature = "history")]
mod history;
#[cfg(feature = "snapshot")]
mod snapshot;
mod syntax;
mod url;

pub use error::OpenError;
#[cfg(feature = "history")]
pub use history::{HistoryUrl, OpenHistory};
#[cfg(feature = "snapshot")]
pub use snapshot::SnapshotUrl;
pub use url::StoreUrl;

use emberkeep_hot::Store;
use emberkeep_hot::engine::Pending;

/// `Store::open(url)`: part of the prelude, because [`Store`] itself knows no server.
pub trait OpenStore: Sized {
    /// Opens the store of a URL: `memory:`, `file:DIR`, `redis://…`, `valkey://…` or `redis+cluster://…`. [`StoreUrl`] lists all of
    /// them with their options.
    ///
    /// A folder is loaded, and made if it does not exist. A server must answer and must be one on which the engine can
    /// keep its promises. An error names what was wrong, and never shows a password.
    ///
    /// ```
    /// use emberkeep::prelude::*;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let url = std::env::var("GAME_STORE").unwrap_or_else(|_| "memory:".into());
    /// let store = Store::open(&url).await?;
    /// assert_eq!(store.name(), "the embedded engine");
    /// let error = Store::open("postgres://ann:secret@db").await.err().expect("no engine of ours").to_string();
    /// assert!(error.contains("postgres:") && error.contains("redis://") && !error.contains("secret"));
    /// # Ok(())
    /// # }
    /// ```
    fn open(url: &str) -> Pending<'_, Result<Self, OpenError>>;
}

impl OpenStore for Store {
    fn open(url: &str) -> Pending<'_, Result<Store, OpenError>> {
        Box::pin(async move { StoreUrl::parse(url)?.open().await })
    }
}
