//! Which error of the store and of the games has which status, code and details.

use super::ApiError;
use crate::duration::ceil_ms;
use crate::limits::STORE_RETRY;
use axum::http::StatusCode;
use emberkeep_games::darkages::archive;
use emberkeep_games::party::{PlayerId, RoomCode};
use emberkeep_games::{darkages, galaxy, monsters, party, reactors};
use emberkeep_history as history;
use emberkeep_hot as hot;
use serde_json::{Value, json};
use std::time::Duration;

impl From<hot::Error> for ApiError {
    fn from(error: hot::Error) -> ApiError {
        use hot::Error as E;
        let (status, code) = match &error {
            E::Conflict { .. } => (StatusCode::CONFLICT, "conflict"),
            E::Invalid { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "invalid"),
            E::TooLarge { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "too_large"),
            E::OutOfMemory { .. } | E::LogFull { .. } => (StatusCode::INSUFFICIENT_STORAGE, "store_full"),
            E::OutcomeUnknown { .. } => (StatusCode::SERVICE_UNAVAILABLE, "outcome_unknown"),
            E::Unavailable { .. } | E::Denied { .. } | E::Closed | E::JournalStopped { .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable")
            }
            E::WrongType { .. } | E::Corrupt { .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, "stored_value_spoiled")
            }
            E::Forbidden { .. } => (StatusCode::FORBIDDEN, "forbidden"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        };
        let api = ApiError::new(status, code, public_text(&error)).with_reason(error.to_string());
        match &error {
            E::WrongType { key, .. } | E::Corrupt { key, .. } => api.with("key", key.as_str()),
            E::Forbidden { service, family, owner, field } => {
                let api = api.with("service", *service).with("family", *family).with("owner", *owner);
                field.iter().fold(api, |api, field| api.with("field", &**field))
            }
            E::Conflict { .. } | E::Unavailable { .. } => api.retry_after(STORE_RETRY),
            _ => api,
        }
    }
}

/// The text of a store error for clients. The backend's address and the system's messages are only logged,
/// because the routes of rooms are public.
pub(crate) fn public_text(error: &hot::Error) -> String {
    use hot::Error as E;
    let text = match error {
        E::Unavailable { .. } => "the store cannot be reached; nothing was written, try again",
        E::OutcomeUnknown { .. } => {
            "the store did not answer: it may or may not have been written; read it before you try again"
        }
        E::Denied { .. } | E::Closed | E::JournalStopped { .. } => {
            "the store takes no writes at the moment; nothing was written, try again later"
        }
        E::OutOfMemory { .. } => "the store is full; nothing was written",
        E::Forbidden { service, family, owner, .. } => {
            return format!(
                "the service {service} may not write {family}, which {owner} owns; nothing was written; use a token of {owner}"
            );
        }
        E::PartialCommit { .. } | E::Panicked { .. } => {
            "the server is at fault; its log has the reason under the X-Request-Id of this answer"
        }
        error => return error.to_string(),
    };
    text.to_owned()
}

impl From<monsters::Error> for ApiError {
    fn from(error: monsters::Error) -> ApiError {
        use monsters::Error as E;
        let detail = error.to_string();
        let conflict = |code| ApiError::new(StatusCode::CONFLICT, code, detail.clone());
        match error {
            E::Store(error) => error.into(),
            E::Invalid { what, .. } => ApiError::invalid(detail).with("what", what),
            E::NotFound { id } => ApiError::not_found(detail).with("monster", id.0),
            E::NoDropTimer { id } => {
                ApiError::new(StatusCode::NOT_FOUND, "no_drop_timer", detail).with("monster", id.0)
            }
            E::AlreadyDead { id } => conflict("already_dead").with("monster", id.0),
            E::TooMany { id, what, max } => {
                conflict("too_many").with("monster", id.0).with("what", what).with("max", max)
            }
            E::Exhausted(_) => conflict("exhausted"),
            _ => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail),
        }
    }
}

impl From<reactors::Error> for ApiError {
    fn from(error: reactors::Error) -> ApiError {
        use reactors::Error as E;
        let detail = error.to_string();
        let conflict = |code| ApiError::new(StatusCode::CONFLICT, code, detail.clone());
        match error {
            E::Store(error) => error.into(),
            E::Invalid { what, .. } => ApiError::invalid(detail).with("what", what),
            E::NotFound { id } => ApiError::not_found(detail).with("reactor", id.0),
            E::OnCooldown { remaining } => on_cooldown(detail, remaining),
            E::SpotTaken { id } => conflict("spot_taken").with("reactor", id.0),
            E::FieldFull { max } => conflict("field_full").with("max", max),
            E::Exhausted(_) => conflict("exhausted"),
            E::Conflict { current } => conflict("changed").with("current", json!(current)),
            _ => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail),
        }
    }
}

impl From<darkages::Error> for ApiError {
    fn from(error: darkages::Error) -> ApiError {
        use darkages::Error as E;
        let detail = error.to_string();
        let new = |status, code| ApiError::new(status, code, detail.clone());
        match error {
            E::Store(error) => error.into(),
            E::Invalid { what, .. } => ApiError::invalid(detail).with("what", what),
            E::NotLoggedIn { entity } => {
                new(StatusCode::NOT_FOUND, "not_logged_in").with("entity_id", entity.0)
            }
            E::AlreadyLoggedIn { entity, since } => new(StatusCode::CONFLICT, "already_logged_in")
                .with("entity_id", entity.0)
                .with("login_time", since),
            E::Dead { entity } => new(StatusCode::CONFLICT, "dead").with("entity_id", entity.0),
            E::ConnectionInUse { entity, .. } => {
                new(StatusCode::CONFLICT, "connection_in_use").with("entity_id", entity.0)
            }
            E::TooManyConnections { entity, max } => {
                new(StatusCode::CONFLICT, "too_many_connections").with("entity_id", entity.0).with("max", max)
            }
            E::InTransit { entity } => {
                new(StatusCode::CONFLICT, "in_transit").with("entity_id", entity.0).retry_after(STORE_RETRY)
            }
            E::NotArrived { entity, zone } => {
                new(StatusCode::NOT_FOUND, "not_arrived").with("entity_id", entity.0).with("zone_id", zone.0)
            }
            E::Replaced { entity } => new(StatusCode::CONFLICT, "replaced").with("entity_id", entity.0),
            E::OtherShard { entity, .. } => {
                new(StatusCode::CONFLICT, "other_shard").with("entity_id", entity.0)
            }
            E::TooManyInTransit { shard } => {
                new(StatusCode::CONFLICT, "too_many_in_transit").with("shard", shard).retry_after(STORE_RETRY)
            }
            _ => new(StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        }
    }
}

impl From<galaxy::Error> for ApiError {
    fn from(error: galaxy::Error) -> ApiError {
        use galaxy::Error as E;
        let detail = error.to_string();
        let conflict = |code| ApiError::new(StatusCode::CONFLICT, code, detail.clone());
        match error {
            E::Store(error) => error.into(),
            E::Invalid { what, .. } => ApiError::invalid(detail).with("what", what),
            E::NotFound { what, id } => ApiError::not_found(detail).with("what", what).with("id", id),
            E::Exists { what, id } => conflict("exists").with("what", what).with("id", id),
            E::NotOwner { ship, player } => {
                conflict("not_owner").with("ship_id", ship.to_string()).with("player_id", player.to_string())
            }
            E::TooMany { what, max } => conflict("too_many").with("what", what).with("max", max),
            E::RuleExists { ship, rule } => {
                conflict("rule_exists").with("ship_id", ship.to_string()).with("rule_id", rule.as_str())
            }
            E::RegistrationClosed => conflict("registration_closed"),
            E::PlayerDeleted { player } => conflict("player_deleted").with("player_id", player.to_string()),
            E::Paused => conflict("paused"),
            E::Busy { phase } => conflict("under_way").with("phase", phase).retry_after(STORE_RETRY),
            E::LeaseHeld { left_ms, .. } => {
                conflict("lease_held").with("left_ms", left_ms).retry_after(Duration::from_millis(left_ms))
            }
            E::StaleStep { .. } => conflict("stale_step"),
            E::TickGone { .. } => conflict("tick_gone").retry_after(STORE_RETRY),
            E::Lease(_) => conflict("lease_lost"),
            _ => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail),
        }
    }
}

impl From<history::Error> for ApiError {
    fn from(error: history::Error) -> ApiError {
        use history::Error as E;
        let (status, code) = match &error {
            E::Invalid { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "invalid"),
            E::TooLarge { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "too_large"),
            E::InvalidCursor { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_cursor"),
            E::Corrupt { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "stored_value_spoiled"),
            E::DiskFull { .. } | E::SpoolFull { .. } => (StatusCode::INSUFFICIENT_STORAGE, "history_full"),
            E::OutcomeUnknown { .. } => (StatusCode::SERVICE_UNAVAILABLE, "outcome_unknown"),
            E::Busy { .. } | E::Unavailable { .. } | E::Stopped { .. } | E::Closed => {
                (StatusCode::SERVICE_UNAVAILABLE, "history_unavailable")
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        };
        let api = ApiError::new(status, code, public_history_text(&error)).with_reason(error.to_string());
        match &error {
            E::Corrupt { table, column, .. } => api.with("table", *table).with("column", *column),
            E::Busy { .. } | E::SpoolFull { .. } | E::Unavailable { .. } => api.retry_after(STORE_RETRY),
            _ => api,
        }
    }
}

/// What a client reads of an error of history: never where it is.
fn public_history_text(error: &history::Error) -> String {
    use history::Error as E;
    let text = match error {
        E::Unavailable { .. } | E::Stopped { .. } | E::Closed => {
            "history cannot be reached; nothing was written, try again later"
        }
        E::Busy { .. } => "history has too many writes to do; nothing was written, slow down and try again",
        E::DiskFull { .. } | E::SpoolFull { .. } => "history has no place left; nothing was written",
        E::OutcomeUnknown { .. } => {
            "history did not answer: it may or may not have been written; read it before you try again"
        }
        E::Damaged { .. } | E::Folder { .. } | E::SchemaMismatch { .. } | E::Internal { .. } => {
            "the server is at fault; its log has the reason under the X-Request-Id of this answer"
        }
        error => return error.to_string(),
    };
    text.to_owned()
}

impl From<archive::Error> for ApiError {
    fn from(error: archive::Error) -> ApiError {
        use archive::Error as E;
        let detail = error.to_string();
        let new = |status, code| ApiError::new(status, code, detail.clone());
        match error {
            E::History(error) => error.into(),
            E::Invalid { what, .. } => ApiError::invalid(detail).with("what", what),
            E::Taken { kind } => new(StatusCode::CONFLICT, "taken").with("what", kind.text()),
            E::Registered { player_id } => {
                new(StatusCode::CONFLICT, "already_registered").with("player_id", player_id)
            }
            E::NotFound { player_id } => {
                new(StatusCode::NOT_FOUND, "not_registered").with("player_id", player_id)
            }
            E::Conflict { player_id, .. } => {
                new(StatusCode::CONFLICT, "conflict").with("player_id", player_id).retry_after(STORE_RETRY)
            }
            _ => new(StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        }
    }
}

impl From<darkages::RealmError> for ApiError {
    fn from(error: darkages::RealmError) -> ApiError {
        use darkages::RealmError as E;
        let detail = error.to_string();
        match error {
            E::Banned { player_id, ban } => ApiError::new(StatusCode::FORBIDDEN, "player_banned", detail)
                .with("player_id", player_id)
                .with("reason", ban.reason)
                .with("expires", ban.expires.map(|at| at.0)),
            E::Hot(error) => error.into(),
            E::Archive(error) => error.into(),
            _ => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail),
        }
    }
}

impl From<party::Error> for ApiError {
    fn from(error: party::Error) -> ApiError {
        use party::Error as E;
        let (code, detail) = (error.code(), error.to_string());
        let new = |status| ApiError::new(status, code, detail.clone());
        let room = |status, room: RoomCode| new(status).with("room", room.to_string());
        let player = |status, player: PlayerId| new(status).with("player", player.as_str());
        match error {
            E::Store(error) => error.into(),
            E::RoomNotFound(code) => room(StatusCode::NOT_FOUND, code),
            E::RoomExpired(code) => room(StatusCode::GONE, code),
            E::NotMaster(code) | E::MasterOnly(code) | E::Banned(code) | E::RoomLocked(code) => {
                room(StatusCode::FORBIDDEN, code)
            }
            E::PlayerNotFound(id) => player(StatusCode::NOT_FOUND, id),
            E::NotYourPlayer(id) => player(StatusCode::FORBIDDEN, id),
            E::DeviceAlreadyHasPlayer(id) | E::TakenNow(id) | E::Inactive(id) | E::AlreadyVoted(id) => {
                player(StatusCode::CONFLICT, id)
            }
            E::BanNotFound(_) => new(StatusCode::NOT_FOUND),
            E::NotThisDevice => new(StatusCode::FORBIDDEN),
            E::Invalid { what, .. } => new(StatusCode::UNPROCESSABLE_ENTITY).with("what", what),
            E::InvalidSelection { .. } => new(StatusCode::UNPROCESSABLE_ENTITY),
            E::ProtocolVersion { found, expected } => {
                new(StatusCode::UNPROCESSABLE_ENTITY).with("found", found).with("expected", expected)
            }
            E::RoomFull { what, max } => new(StatusCode::CONFLICT).with("what", what).with("max", max),
            E::NotEnoughPlayers { active, needed } => {
                new(StatusCode::CONFLICT).with("active", active).with("needed", needed)
            }
            E::NotInPhase { .. } | E::NotClaimed { .. } | E::Conflict { .. } | E::Late => {
                new(StatusCode::CONFLICT)
            }
            E::NoRandomness(_) => new(StatusCode::SERVICE_UNAVAILABLE),
            _ => new(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

/// A cooldown without an end, which only external services set, has no `Retry-After`.
fn on_cooldown(detail: String, remaining: Duration) -> ApiError {
    let error = ApiError::new(StatusCode::LOCKED, "on_cooldown", detail);
    match ceil_ms(remaining) {
        Some(ms) => error.with("remainingMs", ms).retry_after(remaining),
        None => error.with("remainingMs", Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LoggedError, titles};
    use super::*;
    use axum::http::header::RETRY_AFTER;
    use axum::response::{IntoResponse as _, Response};
    use emberkeep_games::{monsters::MonsterId, reactors::ReactorId};

    #[track_caller]
    fn check(error: impl Into<ApiError>, status: u16, code: &str) -> Response {
        let error = error.into();
        assert!(!error.body.detail.is_empty());
        assert_eq!((error.status().as_u16(), error.code()), (status, code), "{error:?}");
        assert!(titles::title(code).is_some(), "{code} has no title");
        error.into_response()
    }

    #[test]
    fn errors_of_the_store_have_their_status() {
        use hot::Error as E;
        let text = || String::from("x");
        let retried = |response: Response| response.headers().contains_key(RETRY_AFTER);
        assert!(retried(check(
            E::Conflict { waited: Duration::ZERO, attempts: 1, transaction: None },
            409,
            "conflict"
        )));
        let unavailable = E::Unavailable { backend: text(), reason: text(), advice: "x" };
        assert!(retried(check(unavailable, 503, "store_unavailable")));
        check(E::Invalid { what: "x", problem: text() }, 422, "invalid");
        let large = E::TooLarge { key: text(), what: "x", found: 2, unit: "bytes", max: 1 };
        check(large, 422, "too_large");
        check(E::OutOfMemory { detail: text() }, 507, "store_full");
        check(E::LogFull { key: text(), max: 1 }, 507, "store_full");
        check(E::OutcomeUnknown { backend: text(), reason: text() }, 503, "outcome_unknown");
        check(E::Denied { backend: text(), reason: text(), advice: "x" }, 503, "store_unavailable");
        let (service, family, owner) = ("physics", "FLEET", "players");
        let forbidden = E::Forbidden { service, family, owner, field: Some("name".into()) };
        let body = serde_json::to_value(&ApiError::from(forbidden.clone()).body).unwrap();
        let details = json!({"service": service, "family": family, "owner": owner, "field": "name"});
        assert_eq!(body["details"], details);
        check(forbidden, 403, "forbidden");
        check(E::Closed, 503, "store_unavailable");
        check(E::JournalStopped { reason: text() }, 503, "store_unavailable");
        check(E::Corrupt { key: text(), reason: text() }, 500, "stored_value_spoiled");
        check(E::Panicked { message: text() }, 500, "internal");
        check(E::PartialCommit { reason: text(), keys: vec![] }, 500, "internal");
    }

    #[test]
    fn clients_do_not_learn_where_the_store_is() {
        use hot::Error as E;
        let (place, advice) = (|| String::from("redis://10.0.0.9:6379"), "x");
        for error in [
            E::Unavailable { backend: place(), reason: place(), advice },
            E::OutcomeUnknown { backend: place(), reason: place() },
            E::Denied { backend: place(), reason: place(), advice },
            E::JournalStopped { reason: place() },
            E::OutOfMemory { detail: place() },
            E::PartialCommit { reason: place(), keys: vec![] },
            E::Panicked { message: place() },
        ] {
            let reason = error.to_string();
            let error = ApiError::from(error);
            let sent = serde_json::to_string(&error.body).unwrap();
            assert!(!sent.contains("10.0.0.9"), "{sent}");
            let response = error.into_response();
            let logged = response.extensions().get::<LoggedError>().expect("what the log says");
            assert_eq!(logged.reason.as_ref(), Some(&reason), "the log has all of it");
        }
    }

    #[test]
    fn errors_of_monsters_and_reactors_have_their_status() {
        use monsters::Error as M;
        let id = MonsterId(7);
        check(M::Invalid { what: "x", problem: "y".into() }, 422, "invalid");
        check(M::NotFound { id }, 404, "not_found");
        check(M::NoDropTimer { id }, 404, "no_drop_timer");
        check(M::AlreadyDead { id }, 409, "already_dead");
        check(M::TooMany { id, what: "x", max: 1 }, 409, "too_many");
        check(M::Store(hot::Error::Closed), 503, "store_unavailable");
        use reactors::Error as R;
        let id = ReactorId(7);
        check(R::Invalid { what: "x", problem: "y".into() }, 422, "invalid");
        check(R::NotFound { id }, 404, "not_found");
        check(R::SpotTaken { id }, 409, "spot_taken");
        check(R::FieldFull { max: 1 }, 409, "field_full");
        let cooling = check(R::OnCooldown { remaining: Duration::from_millis(1_001) }, 423, "on_cooldown");
        assert_eq!(cooling.headers()[RETRY_AFTER], "2", "rounded up");
        let endless = check(R::OnCooldown { remaining: Duration::MAX }, 423, "on_cooldown");
        assert!(!endless.headers().contains_key(RETRY_AFTER));
        check(R::Store(hot::Error::Closed), 503, "store_unavailable");
    }

    #[test]
    fn errors_of_darkages_have_their_status() {
        use darkages::Error as E;
        let entity = darkages::EntityId(7);
        check(E::Invalid { what: "x", problem: "y".into() }, 422, "invalid");
        check(E::NotLoggedIn { entity }, 404, "not_logged_in");
        check(E::AlreadyLoggedIn { entity, since: 1 }, 409, "already_logged_in");
        check(E::Dead { entity }, 409, "dead");
        check(E::TooManyConnections { entity, max: 1 }, 409, "too_many_connections");
        check(E::InTransit { entity }, 409, "in_transit");
        check(E::NotArrived { entity, zone: darkages::ZoneId(1) }, 404, "not_arrived");
        check(E::Replaced { entity }, 409, "replaced");
        check(E::OtherShard { entity, what: "zone 7".into() }, 409, "other_shard");
        check(E::TooManyInTransit { shard: 1 }, 409, "too_many_in_transit");
        check(E::Store(hot::Error::Closed), 503, "store_unavailable");
    }

    #[test]
    fn errors_of_history_have_their_status() {
        use history::Error as E;
        let text = || String::from("10.0.0.9");
        check(E::Invalid { what: "x".into(), problem: "y".into() }, 422, "invalid");
        check(E::InvalidCursor { problem: "x" }, 422, "invalid_cursor");
        check(E::SpoolFull { used_bytes: 2, bytes_max: 1 }, 507, "history_full");
        check(E::OutcomeUnknown { reason: text() }, 503, "outcome_unknown");
        check(E::Closed, 503, "history_unavailable");
        check(E::Internal { reason: text() }, 500, "internal");
        let away = E::Unavailable { backend: text(), reason: text() };
        let sent = serde_json::to_string(&ApiError::from(away.clone()).body).unwrap();
        assert!(!sent.contains("10.0.0.9"), "{sent}");
        assert!(check(away, 503, "history_unavailable").headers().contains_key(RETRY_AFTER));
        use archive::Error as A;
        check(A::Taken { kind: darkages::history::ClaimKind::Email }, 409, "taken");
        check(A::Registered { player_id: 1 }, 409, "already_registered");
        check(A::NotFound { player_id: 1 }, 404, "not_registered");
        check(A::Conflict { player_id: 1, reason: "x" }, 409, "conflict");
        check(A::History(E::Closed), 503, "history_unavailable");
        use darkages::RealmError as R;
        let ban = archive::profiles::Ban { reason: text(), expires: None };
        check(R::Banned { player_id: 1, ban }, 403, "player_banned");
        check(R::Hot(darkages::Error::Store(hot::Error::Closed)), 503, "store_unavailable");
        check(R::Archive(A::NotFound { player_id: 1 }), 404, "not_registered");
    }

    #[test]
    fn errors_of_rooms_have_their_status() {
        use party::Error as E;
        let (code, player) = (RoomCode::new("AB23CD").unwrap(), PlayerId::new("ann").unwrap());
        let problem = || String::from("x");
        check(E::RoomNotFound(code), 404, "room_not_found");
        check(E::PlayerNotFound(player.clone()), 404, "player_not_found");
        check(E::RoomExpired(code), 410, "room_expired");
        check(E::NotMaster(code), 403, "not_master");
        check(E::MasterOnly(code), 403, "not_master");
        check(E::NotYourPlayer(player.clone()), 403, "not_master");
        check(E::NotThisDevice, 403, "not_this_device");
        check(E::Banned(code), 403, "banned");
        check(E::RoomLocked(code), 403, "room_locked");
        check(E::BanNotFound(problem()), 404, "ban_not_found");
        check(E::ProtocolVersion { found: 2, expected: 1 }, 422, "invalid_protocol_version");
        check(E::Invalid { what: "x", problem: problem() }, 422, "invalid_payload");
        check(E::InvalidSelection { problem: problem() }, 422, "invalid_selection");
        check(E::NotInPhase { problem: problem() }, 409, "not_in_phase");
        check(E::NotClaimed { problem: problem() }, 409, "not_claimed");
        check(E::Conflict { problem: problem() }, 409, "conflict");
        check(E::DeviceAlreadyHasPlayer(player.clone()), 409, "device_already_has_player");
        check(E::TakenNow(player.clone()), 409, "taken_now");
        check(E::Inactive(player.clone()), 409, "inactive");
        check(E::AlreadyVoted(player), 409, "already_voted");
        check(E::Late, 409, "late");
        check(E::RoomFull { what: "players", max: 1 }, 409, "room_full");
        check(E::NotEnoughPlayers { active: 1, needed: 2 }, 409, "not_enough_players");
        check(E::NoRandomness(problem()), 503, "unavailable");
        check(E::Store(hot::Error::Closed), 503, "store_unavailable");
    }
}
