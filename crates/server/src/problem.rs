//! What a caller is told when something is wrong: one shape, and the one place that knows which error has which status.

use crate::routes::whole_ms;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header::RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use emberkeep_games::{monsters, party, reactors};
use emberkeep_hot as hot;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::time::Duration;
use utoipa::ToSchema;

/// What went wrong, as it is sent.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct Body {
    /// A stable word for programs.
    #[schema(examples("not_found"))]
    pub error: &'static str,
    /// What was wrong and what to do about it, for people.
    pub message: String,
    /// What belongs to the word, such as ids.
    #[schema(value_type = Object)]
    pub details: Map<String, Value>,
}

/// What went wrong.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    retry_after: Option<Duration>,
    /// What happened, where only the log may have it.
    reason: Option<String>,
    body: Body,
}

impl Problem {
    /// A problem without details.
    pub fn new(status: StatusCode, error: &'static str, message: impl Into<String>) -> Problem {
        let body = Body { error, message: message.into(), details: Map::new() };
        Problem { status, retry_after: None, reason: None, body }
    }

    /// The request itself makes no sense.
    pub fn invalid(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message)
    }

    /// Something that is not there.
    pub fn not_found(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// The same problem with a detail.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Problem {
        self.body.details.insert(name.into(), value.into());
        self
    }

    /// The same problem, worth another try after a while.
    pub fn retry_after(mut self, wait: Duration) -> Problem {
        self.retry_after = Some(wait);
        self
    }

    /// The same problem, with what happened for the log: callers do not learn it.
    pub fn because(mut self, reason: impl Into<String>) -> Problem {
        self.reason = Some(reason.into());
        self
    }

    /// The stable word.
    pub fn error(&self) -> &'static str {
        self.body.error
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What is sent, for an answer that tells of problems without being one.
    pub fn into_body(self) -> Body {
        self.body
    }
}

/// The problem in a response, for whoever counts and logs.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    /// The stable word.
    pub(crate) error: &'static str,
    /// What happened, where the server is at fault.
    pub(crate) reason: Option<String>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let message = || self.body.message.clone();
        let reason = self.status.is_server_error().then(|| self.reason.unwrap_or_else(message));
        let told = Told { error: self.body.error, reason };
        let mut response = (self.status, Json(self.body)).into_response();
        response.extensions_mut().insert(told);
        if let Some(wait) = self.retry_after {
            // Rounded up: who comes then does not come in vain.
            let seconds = wait.as_millis().div_ceil(1_000).clamp(1, u128::from(u32::MAX));
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds as u32));
        }
        response
    }
}

/// A second is enough for a failover to begin, and short for a person who waits.
const STORE_RETRY: Duration = Duration::from_secs(1);

impl From<hot::Error> for Problem {
    fn from(error: hot::Error) -> Problem {
        use hot::Error as E;
        let (status, word) = match &error {
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
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        };
        let problem = Problem::new(status, word, public_text(&error)).because(error.to_string());
        match &error {
            E::WrongType { key, .. } | E::Corrupt { key, .. } => problem.with("key", key.as_str()),
            E::Conflict { .. } | E::Unavailable { .. } => problem.retry_after(STORE_RETRY),
            _ => problem,
        }
    }
}

/// What a caller hears of an error of the store. Where it is, and what its system said, is for the log only: anybody may call the
/// routes of rooms.
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
        E::PartialCommit { .. } | E::Panicked { .. } => {
            "the server is at fault; its log has the reason under the X-Request-Id of this answer"
        }
        error => return error.to_string(),
    };
    text.to_owned()
}

impl From<monsters::Error> for Problem {
    fn from(error: monsters::Error) -> Problem {
        use monsters::Error as E;
        let message = error.to_string();
        let conflict = |word| Problem::new(StatusCode::CONFLICT, word, message.clone());
        match error {
            E::Store(error) => error.into(),
            E::Invalid { what, .. } => Problem::invalid(message).with("what", what),
            E::NotFound { id } => Problem::not_found(message).with("monster", id.0),
            E::NoDropTimer { id } => {
                Problem::new(StatusCode::NOT_FOUND, "no_drop_timer", message).with("monster", id.0)
            }
            E::AlreadyDead { id } => conflict("already_dead").with("monster", id.0),
            E::TooMany { id, what, max } => {
                conflict("too_many").with("monster", id.0).with("what", what).with("max", max)
            }
            E::Exhausted(_) => conflict("exhausted"),
            _ => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message),
        }
    }
}

impl From<reactors::Error> for Problem {
    fn from(error: reactors::Error) -> Problem {
        use reactors::Error as E;
        let message = error.to_string();
        let conflict = |word| Problem::new(StatusCode::CONFLICT, word, message.clone());
        match error {
            E::Store(error) => error.into(),
            E::Invalid { what, .. } => Problem::invalid(message).with("what", what),
            E::NotFound { id } => Problem::not_found(message).with("reactor", id.0),
            E::OnCooldown { remaining } => on_cooldown(message, remaining),
            E::SpotTaken { id } => conflict("spot_taken").with("reactor", id.0),
            E::FieldFull { max } => conflict("field_full").with("max", max),
            E::Exhausted(_) => conflict("exhausted"),
            E::Conflict { current } => conflict("changed").with("current", json!(current)),
            _ => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message),
        }
    }
}

impl From<party::Error> for Problem {
    fn from(error: party::Error) -> Problem {
        use party::Error as E;
        let (word, message) = (error.code(), error.to_string());
        let status = match &error {
            E::Store(error) => return error.clone().into(),
            E::RoomNotFound(_) | E::PlayerNotFound(_) | E::BanNotFound(_) => StatusCode::NOT_FOUND,
            E::RoomExpired(_) => StatusCode::GONE,
            E::NotMaster(_)
            | E::MasterOnly(_)
            | E::NotYourPlayer(_)
            | E::NotThisDevice
            | E::Banned(_)
            | E::RoomLocked(_) => StatusCode::FORBIDDEN,
            E::Invalid { .. } | E::InvalidSelection { .. } | E::ProtocolVersion { .. } => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            E::NotInPhase { .. }
            | E::NotClaimed { .. }
            | E::Conflict { .. }
            | E::DeviceAlreadyHasPlayer(_)
            | E::TakenNow(_)
            | E::Inactive(_)
            | E::AlreadyVoted(_)
            | E::Late
            | E::RoomFull { .. }
            | E::NotEnoughPlayers { .. } => StatusCode::CONFLICT,
            E::NoRandomness(_) => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let problem = Problem::new(status, word, message);
        match error {
            E::RoomNotFound(code)
            | E::RoomExpired(code)
            | E::NotMaster(code)
            | E::MasterOnly(code)
            | E::Banned(code)
            | E::RoomLocked(code) => problem.with("room", code.to_string()),
            E::PlayerNotFound(player)
            | E::DeviceAlreadyHasPlayer(player)
            | E::TakenNow(player)
            | E::Inactive(player)
            | E::NotYourPlayer(player)
            | E::AlreadyVoted(player) => problem.with("player", player.as_str()),
            E::Invalid { what, .. } => problem.with("what", what),
            E::ProtocolVersion { found, expected } => problem.with("found", found).with("expected", expected),
            E::RoomFull { what, max } => problem.with("what", what).with("max", max),
            E::NotEnoughPlayers { active, needed } => problem.with("active", active).with("needed", needed),
            _ => problem,
        }
    }
}

/// A marker without an end, which only other services set, says nothing about when to come back.
fn on_cooldown(message: String, remaining: Duration) -> Problem {
    let problem = Problem::new(StatusCode::LOCKED, "on_cooldown", message);
    match whole_ms(remaining) {
        Some(ms) => problem.with("remainingMs", ms).retry_after(remaining),
        None => problem.with("remainingMs", Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_games::party::{PlayerId, RoomCode};
    use emberkeep_games::{monsters::MonsterId, reactors::ReactorId};

    #[track_caller]
    fn check(problem: impl Into<Problem>, status: u16, word: &str) -> Response {
        let problem = problem.into();
        assert!(!problem.body.message.is_empty());
        assert_eq!((problem.status().as_u16(), problem.error()), (status, word), "{problem:?}");
        problem.into_response()
    }

    #[test]
    fn errors_of_the_store_have_their_status() {
        use hot::Error as E;
        let text = || String::from("x");
        let retried = |response: Response| response.headers().contains_key(RETRY_AFTER);
        assert!(retried(check(E::Conflict { waited: Duration::ZERO, attempts: 1 }, 409, "conflict")));
        let unavailable = E::Unavailable { backend: text(), reason: text(), advice: "x" };
        assert!(retried(check(unavailable, 503, "store_unavailable")));
        check(E::Invalid { what: "x", problem: text() }, 422, "invalid");
        let large = E::TooLarge { key: text(), what: "x", found: 2, unit: "bytes", max: 1 };
        check(large, 422, "too_large");
        check(E::OutOfMemory { detail: text() }, 507, "store_full");
        check(E::LogFull { partition: text(), max: 1 }, 507, "store_full");
        check(E::OutcomeUnknown { backend: text(), reason: text() }, 503, "outcome_unknown");
        check(E::Denied { backend: text(), reason: text(), advice: "x" }, 503, "store_unavailable");
        check(E::Closed, 503, "store_unavailable");
        check(E::JournalStopped { reason: text() }, 503, "store_unavailable");
        check(E::Corrupt { key: text(), reason: text() }, 500, "stored_value_spoiled");
        check(E::Panicked { message: text() }, 500, "internal");
        check(E::PartialCommit { reason: text(), keys: vec![] }, 500, "internal");
    }

    #[test]
    fn callers_do_not_learn_where_the_store_is() {
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
            let problem = Problem::from(error);
            let sent = serde_json::to_string(&problem.body).unwrap();
            assert!(!sent.contains("10.0.0.9"), "{sent}");
            let response = problem.into_response();
            let told = response.extensions().get::<Told>().expect("what the log says");
            assert_eq!(told.reason.as_ref(), Some(&reason), "the log has all of it");
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
        assert_eq!(cooling.headers()[RETRY_AFTER], "2", "who comes then does not come in vain");
        let endless = check(R::OnCooldown { remaining: Duration::MAX }, 423, "on_cooldown");
        assert!(!endless.headers().contains_key(RETRY_AFTER));
        check(R::Store(hot::Error::Closed), 503, "store_unavailable");
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
