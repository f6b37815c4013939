//! Open streams: how many an address has, and when they end.

use crate::limit::connections::ConnectionLimiter;
use tokio::sync::watch;

/// What all streams share.
pub(crate) struct Streams {
    pub(crate) connections: ConnectionLimiter,
    stop: watch::Sender<bool>,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams { connections: ConnectionLimiter::default(), stop: watch::Sender::new(false) }
    }
}

impl Streams {
    /// Becomes `true` when the server ends.
    pub(crate) fn stopped(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Ends all streams, and those that begin later.
    pub(crate) fn shutdown(&self) {
        self.stop.send_replace(true);
    }
}
