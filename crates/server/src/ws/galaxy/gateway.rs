//! This process as a gateway: the players who are connected here, the lease that says so, and notices to close connections.
//!
//! Budget: every 10 s one transaction for the lease and one per 50 connections, and a look for gateways whose lease has ended.

use crate::limits::TICK_RETRY;
use crate::metrics::Metrics;
use crate::ws::close::CloseReason;
use emberkeep_games::galaxy::limits::GATEWAY_RENEW_EVERY;
use emberkeep_games::galaxy::{GalaxyState, GatewayNotice, PlayerId, Result, SocketRequest};
use emberkeep_hot::pubsub::{Event, Subscription};
use emberkeep_schema::Name;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::sync::{RwLock, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};
use uuid::Uuid;

/// A gateway. Cheap to clone.
#[derive(Clone)]
pub(crate) struct GalaxyGateway(Arc<Inner>);

struct Inner {
    galaxy: GalaxyState,
    metrics: Arc<Metrics>,
    name: Name,
    open: Mutex<HashMap<Name, OpenPilot>>,
    /// Whether there was ever a connection: a server without players writes no lease.
    was_used: AtomicBool,
    /// Held for a renewal, and shared by openings and closings: a renewal closes what it does not know.
    renewal: RwLock<()>,
}

/// A connection of a player.
struct OpenPilot {
    player: PlayerId,
    /// Why it is to be closed.
    close: watch::Sender<Option<CloseReason>>,
}

/// A player's connection to this gateway. Dropping it forgets it here; the next renewal closes it in the store.
pub(super) struct Pilot {
    gateway: GalaxyGateway,
    galaxy: GalaxyState,
    pub(super) connection: Name,
    closed: watch::Receiver<Option<CloseReason>>,
}

fn new_name(what: &str) -> Name {
    Name::new(format!("{what}-{}", Uuid::new_v4().simple())).expect("letters, digits and `-`")
}

impl GalaxyGateway {
    pub(crate) fn new(galaxy: GalaxyState, metrics: Arc<Metrics>) -> GalaxyGateway {
        GalaxyGateway(Arc::new(Inner {
            galaxy,
            metrics,
            name: new_name("gateway"),
            open: Mutex::default(),
            was_used: AtomicBool::new(false),
            renewal: RwLock::default(),
        }))
    }

    /// Its name in the store.
    pub(crate) fn name(&self) -> &Name {
        &self.0.name
    }

    /// The connections of a player.
    pub(crate) fn connections_of(&self, player: PlayerId) -> Vec<Name> {
        let open = self.0.open.lock();
        open.iter().filter(|(_, pilot)| pilot.player == player).map(|(name, _)| name.clone()).collect()
    }

    /// Closes a connection. `false` = it is gone.
    pub(crate) fn close(&self, connection: &Name, reason: CloseReason) -> bool {
        let open = self.0.open.lock();
        open.get(connection).map(|pilot| pilot.close.send_replace(Some(reason))).is_some()
    }

    fn close_deleted(&self, player: PlayerId) {
        for connection in self.connections_of(player) {
            self.close(&connection, CloseReason::PlayerDeleted);
        }
    }

    /// Opens a connection of a player, as the service that `galaxy` acts as.
    pub(super) async fn join(&self, galaxy: GalaxyState, player: PlayerId) -> Result<Pilot> {
        let (close, closed) = watch::channel(None);
        let connection = new_name("ws");
        let pilot = Pilot { gateway: self.clone(), galaxy, connection: connection.clone(), closed };
        let _shared = self.0.renewal.read().await;
        self.0.was_used.store(true, Relaxed);
        // Before it is in the store, so that a deletion in between finds it here.
        self.0.open.lock().insert(connection.clone(), OpenPilot { player, close });
        let request = SocketRequest { connection, player_id: player };
        pilot.galaxy.api_gateway().connect(&self.0.name, request).await?;
        Ok(pilot)
    }

    /// Renews the lease and closes the connections of players who were deleted; then looks for gateways that are gone.
    async fn renew(&self) -> Result<()> {
        let api = self.0.galaxy.api_gateway();
        if self.0.was_used.load(Relaxed) {
            let _alone = self.0.renewal.write().await;
            let requests = {
                let open = self.0.open.lock();
                let request = |(connection, pilot): (&Name, &OpenPilot)| SocketRequest {
                    connection: connection.clone(),
                    player_id: pilot.player,
                };
                open.iter().map(request).collect()
            };
            for connection in api.renew_gateway(&self.0.name, requests).await? {
                self.close(&connection, CloseReason::PlayerDeleted);
            }
        }
        let swept = api.sweep_gateways().await?;
        self.0.metrics.galaxy.connections_swept.fetch_add(swept.connections as u64, Relaxed);
        Ok(())
    }

    /// Renews the lease and follows notices, until it is dropped or the store ends.
    pub(crate) async fn run(self) {
        let mut notices = self.subscribe().await;
        let mut renewal = interval(GATEWAY_RENEW_EVERY);
        renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = notices.next() => match event {
                    Some(Event::Message { payload, .. }) => self.follow(&payload),
                    // What a lost notice was about is stored, and a renewal finds it.
                    Some(Event::Missed { .. }) => renewal.reset_immediately(),
                    None => return,
                },
                _ = renewal.tick() => {
                    if let Err(error) = self.renew().await {
                        self.0.metrics.galaxy.presence_errors.fetch_add(1, Relaxed);
                        tracing::warn!("the presence of players cannot be renewed: {error}");
                    }
                }
            }
        }
    }

    async fn subscribe(&self) -> Subscription {
        loop {
            match self.0.galaxy.api_gateway().notices().await {
                Ok(notices) => return notices,
                Err(error) => {
                    tracing::warn!("cannot subscribe to notices for gateways: {error}");
                    sleep(TICK_RETRY).await;
                }
            }
        }
    }

    /// Does what a notice says. Those of later versions are passed over.
    fn follow(&self, payload: &[u8]) {
        if let Ok(GatewayNotice::PlayerDeleted { player_id }) = serde_json::from_slice(payload) {
            self.close_deleted(player_id);
        }
    }
}

impl Pilot {
    /// Waits until the connection is to be closed.
    pub(super) async fn closed(&mut self) -> CloseReason {
        let found = self.closed.wait_for(Option::is_some).await;
        // The sender lives as long as `self` is in the gateway's table.
        found.ok().and_then(|reason| *reason).unwrap_or(CloseReason::Removed)
    }

    /// Closes it in the store, too.
    pub(super) async fn leave(self) {
        let gateway = self.gateway.0.clone();
        let _shared = gateway.renewal.read().await;
        gateway.open.lock().remove(&self.connection);
        // The server's own right: a token that was replaced meanwhile must not keep the player online.
        if let Err(error) = gateway.galaxy.api_gateway().disconnect(&gateway.name, &self.connection).await {
            gateway.metrics.galaxy.presence_errors.fetch_add(1, Relaxed);
            tracing::warn!("a connection cannot be closed now, the next renewal does it: {error}");
        }
    }
}

impl Drop for Pilot {
    fn drop(&mut self) {
        self.gateway.0.open.lock().remove(&self.connection);
    }
}
