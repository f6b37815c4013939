//! The state that handlers share.

use crate::auth::{Role, TokenCheck, Tokens, bearer_token};
use crate::history::HistoryTier;
use crate::limit::bodies::PartialBodies;
use crate::limit::login_backoff::LoginBackoff;
use crate::limit::per_ip::PerIpLimiter;
use crate::limit::room_codes::RoomCodeLimiter;
use crate::liveness::Liveness;
use crate::metrics::Metrics;
use crate::security::client_ip::TrustedProxies;
use crate::security::cors::AllowedOrigins;
use crate::streams::Streams;
use crate::ws::Hubs;
use crate::ws::galaxy::{Feeds, GalaxyGateway};
use crate::zone_reporters::ZoneReporters;
use axum::http::HeaderMap;
use bytes::Bytes;
use emberkeep_games::darkages::DarkAges;
use emberkeep_games::darkages::boards::Boards;
use emberkeep_games::galaxy::GalaxyState;
use emberkeep_games::monsters::{self, Monsters, PoisonRule};
use emberkeep_games::party::Rooms;
use emberkeep_games::reactors::{self, HitRules, Reactors};
use emberkeep_hot::Store;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Mutex;

/// Who may call the server, how often, and how long a body may take.
pub(crate) struct AccessPolicy {
    pub(crate) tokens: Tokens,
    /// Web pages that may call the API.
    pub(crate) origins: AllowedOrigins,
    /// Web pages that may open a WebSocket.
    pub(crate) ws_origins: AllowedOrigins,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub(crate) trusted_proxies: TrustedProxies,
    /// Limits room creation and setup without a token.
    pub(crate) room_rate: PerIpLimiter,
    /// Missing rooms that one address may name per minute without a token; 0 = any number.
    pub(crate) missing_rooms_per_minute: u32,
    pub(crate) body_timeout: Duration,
}

impl AccessPolicy {
    /// No token is needed, nothing is limited, and no other origin may call.
    pub(crate) fn open() -> AccessPolicy {
        AccessPolicy {
            tokens: Tokens::open(),
            origins: AllowedOrigins::none(),
            ws_origins: AllowedOrigins::none(),
            trusted_proxies: TrustedProxies::default(),
            room_rate: PerIpLimiter::new(0),
            missing_rooms_per_minute: 0,
            body_timeout: crate::limits::BODY_TIMEOUT,
        }
    }
}

/// Sweeps in progress, one per game: each call of the sweep route continues it. A sweep holds nothing between
/// two calls.
#[derive(Default)]
pub(crate) struct Sweeps {
    pub(crate) monsters: Mutex<Option<monsters::Sweep>>,
    pub(crate) reactors: Mutex<Option<reactors::Sweep>>,
}

/// The state of the server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AppState(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) monsters: Monsters,
    pub(crate) reactors: Reactors,
    pub(crate) rooms: Rooms,
    pub(crate) darkages: DarkAges,
    pub(crate) boards: Boards,
    pub(crate) galaxy: GalaxyState,
    pub(crate) galaxy_feeds: Feeds,
    pub(crate) galaxy_gateway: GalaxyGateway,
    /// Absent if the server runs without history; set when it begins to listen.
    pub(crate) history: OnceLock<HistoryTier>,
    pub(crate) hubs: Hubs,
    pub(crate) login_backoff: Arc<LoginBackoff>,
    pub(crate) room_codes: Arc<RoomCodeLimiter>,
    pub(crate) bodies: PartialBodies,
    pub(crate) liveness: Liveness,
    pub(crate) access: AccessPolicy,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) sweeps: Sweeps,
    pub(crate) streams: Streams,
    pub(crate) zone_reporters: ZoneReporters,
    /// The serialized OpenAPI document; set when the router is built.
    pub(crate) openapi: OnceLock<Bytes>,
    /// Further links of the start page: label and URL.
    pub(crate) home_links: parking_lot::Mutex<Vec<(String, String)>>,
}

impl AppState {
    pub(crate) fn new(
        store: Store,
        access: AccessPolicy,
        (poison, hits): (PoisonRule, HitRules),
        darkages: DarkAges,
    ) -> AppState {
        let (rooms, metrics) = (Rooms::new(store.clone()), Arc::new(Metrics::default()));
        let galaxy = GalaxyState::new(store.clone());
        AppState(Arc::new(Inner {
            monsters: Monsters::new(store.clone()).poison_rule(poison),
            reactors: Reactors::new(store.clone()).hit_rules(hits),
            darkages,
            boards: Boards::new(&store),
            galaxy_feeds: Feeds::new(galaxy.clone(), metrics.clone()),
            galaxy_gateway: GalaxyGateway::new(galaxy.clone(), metrics.clone()),
            galaxy,
            hubs: Hubs::new(rooms.clone(), metrics.clone()),
            rooms,
            history: OnceLock::new(),
            login_backoff: Arc::default(),
            room_codes: Arc::new(RoomCodeLimiter::new(access.missing_rooms_per_minute)),
            bodies: PartialBodies::new(metrics.clone()),
            liveness: Liveness::default(),
            access,
            store,
            metrics,
            sweeps: Sweeps::default(),
            streams: Streams::default(),
            zone_reporters: ZoneReporters::default(),
            openapi: OnceLock::new(),
            home_links: parking_lot::Mutex::default(),
        }))
    }

    /// Whether the headers carry a token of a service. Such callers are not rate-limited.
    pub(crate) fn has_service_token(&self, headers: &HeaderMap) -> bool {
        let shown = self.access.tokens.look_up(bearer_token(headers));
        matches!(shown, TokenCheck::Known(caller) if caller.role >= Role::Service)
    }
}

impl std::ops::Deref for AppState {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
