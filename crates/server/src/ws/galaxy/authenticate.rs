//! The first message of a connection, AUTHENTICATE.

use super::gateway::{GalaxyGateway, Pilot};
use super::messages::{self, Authenticate, PilotMessage};
use super::session::{GalaxyClient, error_code, error_text};
use crate::auth::{Caller, Role, TokenCheck};
use crate::limits::{SOCKET_JOIN_ATTEMPTS_MAX, SOCKET_JOIN_TIMEOUT, SOCKET_WRITE_TIMEOUT};
use crate::ws::close::CloseReason;
use crate::ws::connection::{Connection, write};
use crate::ws::server_message;
use axum::extract::ws::{Message, Utf8Bytes};
use emberkeep_games::galaxy::{self, GalaxyState};
use futures_util::StreamExt;
use std::time::Instant;
use tokio::time::timeout_at;

/// Why AUTHENTICATE is refused: code and text.
struct Refusal(&'static str, String);

impl From<galaxy::Error> for Refusal {
    fn from(error: galaxy::Error) -> Refusal {
        Refusal(error_code(&error), error_text(&error))
    }
}

/// Waits for AUTHENTICATE. The player's connection if it named one; the error is the close reason, `None` if the client is
/// gone.
pub(super) async fn authenticate(
    client: &GalaxyClient,
    socket: &mut impl Connection,
) -> Result<Option<Pilot>, Option<CloseReason>> {
    let deadline = tokio::time::Instant::now() + SOCKET_JOIN_TIMEOUT;
    for _ in 0..SOCKET_JOIN_ATTEMPTS_MAX {
        let received = timeout_at(deadline, socket.next()).await;
        let received = received.map_err(|_| Some(CloseReason::NotAuthenticated))?;
        let text = match received.ok_or(None)?.map_err(CloseReason::from_error)? {
            Message::Text(text) => text,
            Message::Binary(_) => return Err(Some(CloseReason::Binary)),
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => return Err(None),
        };
        let answer = match messages::parse(&text) {
            Ok(PilotMessage::Authenticate(first)) => match admit(client, first).await {
                Ok((pilot, welcome)) => {
                    let written = write(socket, Message::Text(welcome), SOCKET_WRITE_TIMEOUT).await;
                    return match (written, pilot) {
                        (Ok(()), pilot) => Ok(pilot),
                        (Err(reason), pilot) => {
                            leave(pilot).await;
                            Err(reason)
                        }
                    };
                }
                Err(Refusal(code, text)) => server_message::error(Some("AUTHENTICATE"), code, &text),
            },
            Ok(other) => {
                let text = "the first message of a connection is AUTHENTICATE";
                server_message::error(Some(other.kind()), "not_authenticated", text)
            }
            Err(answer) => answer,
        };
        write(socket, Message::Text(answer), SOCKET_WRITE_TIMEOUT).await?;
    }
    Err(Some(CloseReason::NotAuthenticated))
}

/// Closes a connection of a player in the store.
pub(super) async fn leave(pilot: Option<Pilot>) {
    if let Some(pilot) = pilot {
        pilot.leave().await;
    }
}

/// The player's connection, and the welcome. Counted as a message.
async fn admit(client: &GalaxyClient, first: Authenticate) -> Result<(Option<Pilot>, Utf8Bytes), Refusal> {
    let started = Instant::now();
    let admitted = admit_caller(client, first).await;
    let code = admitted.as_ref().err().map(|Refusal(code, _)| *code);
    client.feeds.metrics().count_message("AUTHENTICATE", started.elapsed(), code);
    admitted
}

async fn admit_caller(
    client: &GalaxyClient,
    first: Authenticate,
) -> Result<(Option<Pilot>, Utf8Bytes), Refusal> {
    let shown = first.token.as_deref().or(client.token.as_deref());
    let caller = match client.tokens.look_up(shown) {
        TokenCheck::Open => None,
        TokenCheck::Known(caller) => Some(caller),
        TokenCheck::Unknown => {
            let text =
                "this needs a known token; send it as `token`, or in the handshake's Authorization header";
            return Err(Refusal("unauthorized", text.into()));
        }
    };
    let galaxy = client.feeds.galaxy();
    let clock = galaxy.clock().await?;
    let Some(player) = first.player_id else { return Ok((None, messages::welcome(None, None, &clock))) };
    let acting = acting(galaxy, caller.as_ref())?;
    let fleet = galaxy.fleet(player).await?;
    let pilot = GalaxyGateway::join(&client.gateway, acting, player).await?;
    Ok((Some(pilot), messages::welcome(Some(player), Some(fleet), &clock)))
}

/// The galaxy as the service of a token that may bring a player online.
fn acting(galaxy: &GalaxyState, caller: Option<&Caller>) -> Result<GalaxyState, Refusal> {
    let Some(caller) = caller else { return Ok(galaxy.clone()) };
    if caller.role < Role::Service {
        let text = format!("{} may watch; a player's connection needs a token of role service", caller.name);
        return Err(Refusal("forbidden", text));
    }
    let Some(name) = &caller.service else { return Ok(galaxy.clone()) };
    match galaxy::schema().service(name) {
        Some(service) => Ok(galaxy.acting_as(service)),
        None => Err(Refusal(
            "forbidden",
            format!("the token names the service {name}, which is none of this game"),
        )),
    }
}
