//! A server on a free port, and a client that implements only the HTTP that these tests need.

mod client;
mod examples;

pub(crate) use client::{Answer, Request};
pub(crate) use examples::{Example, examples};

use emberkeep_games::darkages::archive::recorder::Recorder;
use emberkeep_history::History;
use emberkeep_history::spool::SpoolOptions;
use emberkeep_hot::Store;
use emberkeep_hot::embedded::Embedded;
use emberkeep_server::{HistoryTier, RunningServer, Settings, listen, listen_with_history};
use emberkeep_testkit::{Scratch, scratch};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;

/// A tenant, for tests that need one.
pub(crate) const TENANT: &str = "550e8400-e29b-41d4-a716-446655440000";
/// A field of it.
pub(crate) const FIELD: &str = "/v1/tenants/550e8400-e29b-41d4-a716-446655440000/fields/0/1/100000000/00000000-0000-0000-0000-000000000000";

/// A server on a store of its own.
pub(crate) struct Server {
    pub(crate) listening: RunningServer,
    pub(crate) store: Store,
    /// The folder of history and spool, if it has them.
    pub(crate) _folder: Option<Scratch>,
}

impl Server {
    /// A server without tokens.
    pub(crate) async fn open() -> Server {
        Server::with(loopback()).await
    }

    /// A server with these settings.
    pub(crate) async fn with(settings: Settings) -> Server {
        let store = Store::new(Arc::new(Embedded::in_memory()));
        let listening = listen(store.clone(), &settings).await.expect("a free port");
        Server { listening, store, _folder: None }
    }

    /// A server with history and a spool in a folder of its own.
    pub(crate) async fn with_history(settings: Settings) -> Server {
        let store = Store::new(Arc::new(Embedded::in_memory()));
        let folder = scratch();
        let history = embedded_history(&folder);
        let consumers = emberkeep_games::consumers(&store, &history).expect("declared").into_iter().collect();
        let recorder = Recorder::open(folder.join("spool"), SpoolOptions::default()).expect("our folder");
        let tier = HistoryTier::new(history, consumers).with_recorder(recorder, &store);
        let listening = listen_with_history(store.clone(), Some(tier), &settings).await.expect("a free port");
        Server { listening, store, _folder: Some(folder) }
    }

    /// A server whose history is given.
    pub(crate) async fn on_history(history: History) -> Server {
        let store = Store::new(Arc::new(Embedded::in_memory()));
        let consumers = emberkeep_games::consumers(&store, &history).expect("declared").into_iter().collect();
        let tier = Some(HistoryTier::new(history, consumers));
        let listening = listen_with_history(store.clone(), tier, &loopback()).await.expect("a free port");
        Server { listening, store, _folder: None }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// A request to this server.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        Request::new(self.address(), method, path)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.request("GET", path).send().await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.request("DELETE", path).send().await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.request("POST", path).json(&body).send().await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.request("PUT", path).json(&body).send().await
    }
}

fn embedded_history(folder: &Scratch) -> History {
    let options = emberkeep_history::embedded::Options::default();
    let schema = emberkeep_games::history_schema();
    let store = emberkeep_history::Embedded::open(folder.join("history"), schema, options);
    History::new(Arc::new(store.expect("our folder")))
}

/// A free port of loopback, nothing else.
pub(crate) fn loopback() -> Settings {
    Settings::new(SocketAddr::from(([127, 0, 0, 1], 0)))
}
