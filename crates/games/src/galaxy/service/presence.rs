//! Presence: players with at least one live connection, at any of several gateways.
//!
//! Each gateway has a lease, the score in a sorted set, which it renews every 10 s with the connections that it has. A gateway
//! whose lease ended is swept: its connections are closed. Members of `connections:online` that no gateway of ours ever
//! entered are left alone.

use super::entities::refuse_deleted;
use super::notice::Socket;
use super::{ApiGateway, GalaxyState};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::limits::{
    CONNECTIONS_PER_PLAYER_MAX, ENTITIES_PER_TRANSACTION, GATEWAY_LEASE, GATEWAYS_MAX, KEYS_PER_PAGE,
};
use crate::galaxy::model::PlayerId;
use crate::galaxy::schema::{GATEWAY_SOCKETS, GATEWAYS, Galaxy, ONLINE, PLAYER_SOCKETS};
use emberkeep_hot::command::{Score, ScoreBound, ZSlice};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::store::Member;
use emberkeep_hot::{self as hot, Tx};
use emberkeep_schema::Name;

/// A connection of a player at a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketRequest {
    /// The connection's id at the gateway.
    pub connection: Name,
    /// The player.
    pub player_id: PlayerId,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewaySweep {
    /// Gateways whose lease had ended.
    pub gateways: usize,
    /// Connections of theirs that were closed.
    pub connections: usize,
}

impl ApiGateway {
    /// Opens a connection of a player. The gateway's lease is renewed.
    pub fn connect<'a>(&'a self, gateway: &'a Name, request: SocketRequest) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            let gateway = gateway.clone();
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                renew_lease(tx, &gateway)?;
                open(tx, &gateway, &request)
            };
            self.scope().named("galaxy.connect").transact::<_, Error, _>(transaction).await
        })
    }

    /// Closes a connection. With the last one the player is offline. `false` = it was not open.
    pub fn disconnect<'a>(&'a self, gateway: &'a Name, connection: &'a Name) -> Pending<'a, Result<bool>> {
        Box::pin(async move {
            let socket = Socket { gateway: gateway.clone(), connection: connection.clone() };
            let transaction = move |tx: &mut Tx<'_, Galaxy>| close(tx, &socket);
            Ok(self.scope().named("galaxy.disconnect").transact::<_, hot::Error, _>(transaction).await?)
        })
    }

    /// Renews a gateway's lease, with all connections that it has: those that were lost are opened again, players whom
    /// another program removed are online again, and connections that the gateway does not have are closed. Returned are those
    /// that the gateway closes: of players who were deleted, and too many of one player.
    pub fn renew_gateway<'a>(
        &'a self,
        gateway: &'a Name,
        connections: Vec<SocketRequest>,
    ) -> Pending<'a, Result<Vec<Name>>> {
        Box::pin(async move {
            let scope = self.scope().named("galaxy.renew_gateway");
            let name = gateway.clone();
            let lease = move |tx: &mut Tx<'_, Galaxy>| renew_lease(tx, &name);
            scope.transact::<_, Error, _>(lease).await?;
            let mut refused = Vec::new();
            for some in connections.chunks(ENTITIES_PER_TRANSACTION) {
                let (gateway, some) = (gateway.clone(), some.to_vec());
                let transaction = move |tx: &mut Tx<'_, Galaxy>| reopen(tx, &gateway, &some);
                refused.extend(scope.transact::<_, Error, _>(transaction).await?);
            }
            let known: std::collections::HashSet<Name> =
                connections.into_iter().map(|request| request.connection).collect();
            for socket in self.sockets_of(gateway).await? {
                if !known.contains(&socket.connection) {
                    self.disconnect(gateway, &socket.connection).await?;
                }
            }
            Ok(refused)
        })
    }

    /// Closes the connections of gateways whose lease has ended. Any gateway calls it from time to time.
    pub fn sweep_gateways(&self) -> Pending<'_, Result<GatewaySweep>> {
        Box::pin(async move {
            let mut sweep = GatewaySweep::default();
            let now = self.store().now().await?;
            let before = ScoreBound::Excluded(Score::from_i64(now));
            let ended = ZSlice::Score(ScoreBound::MIN, before, GATEWAYS_MAX);
            for (gateway, _) in self.scope().zrange(&GATEWAYS.key(), ended, false).await? {
                let mut closed = 0;
                for socket in self.sockets_of(&gateway).await? {
                    let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                        let ended = has_ended(tx, &socket.gateway)?;
                        Ok(ended && close(tx, &socket)?)
                    };
                    let scope = self.scope().named("galaxy.sweep_gateway");
                    closed += usize::from(scope.transact::<_, hot::Error, _>(transaction).await?);
                }
                sweep.connections += closed;
                sweep.gateways += usize::from(self.forget(gateway).await?);
            }
            Ok(sweep)
        })
    }

    /// Removes a gateway without lease and without connections.
    async fn forget(&self, gateway: Name) -> Result<bool> {
        let transaction = move |tx: &mut Tx<'_, Galaxy>| {
            let is_empty = tx.hlen(&GATEWAY_SOCKETS.key(&gateway))? == 0;
            let forgets = is_empty && has_ended(tx, &gateway)?;
            if forgets {
                tx.zrem(&GATEWAYS.key(), &gateway)?;
            }
            Ok(forgets)
        };
        Ok(self.scope().named("galaxy.forget_gateway").transact::<_, hot::Error, _>(transaction).await?)
    }

    async fn sockets_of(&self, gateway: &Name) -> Result<Vec<Socket>> {
        let (mut sockets, mut from) = (Vec::new(), None);
        loop {
            let page = self.scope().fields(&GATEWAY_SOCKETS.key(gateway), from, KEYS_PER_PAGE).await?;
            for (connection, _) in page.fields {
                if let Member::Known(connection) = connection {
                    sockets.push(Socket { gateway: gateway.clone(), connection });
                }
            }
            from = page.next;
            if from.is_none() {
                return Ok(sockets);
            }
        }
    }
}

impl GalaxyState {
    /// Whether a player has a live connection.
    pub fn is_online(&self, player: PlayerId) -> Pending<'_, Result<bool>> {
        Box::pin(async move { Ok(self.scope().sismember(&ONLINE.key(), &player).await?) })
    }

    /// How many players have a live connection.
    pub fn online_count(&self) -> Pending<'_, Result<usize>> {
        Box::pin(async move { Ok(self.scope().scard(&ONLINE.key()).await?) })
    }

    /// All players with a live connection, in order.
    pub fn online(&self) -> Pending<'_, Result<Vec<PlayerId>>> {
        Box::pin(async move {
            let (mut players, mut from) = (Vec::new(), None);
            loop {
                let page = self.scope().members(&ONLINE.key(), from, KEYS_PER_PAGE).await?;
                players.extend(page.members.into_iter().filter_map(Member::known));
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
            players.sort_unstable();
            players.dedup();
            Ok(players)
        })
    }
}

fn renew_lease(tx: &mut Tx<'_, Galaxy>, gateway: &Name) -> Result<()> {
    let key = GATEWAYS.key();
    let (known, count) = tx.together(|tx| (tx.zscore(&key, gateway), tx.zcard(&key)))?;
    if known.is_none() && count >= GATEWAYS_MAX {
        return Err(Error::TooMany { what: "gateways", max: GATEWAYS_MAX });
    }
    let until = tx.now() + GATEWAY_LEASE.as_millis() as i64;
    Ok(tx.zadd(&key, gateway, until as f64)?)
}

fn has_ended(tx: &mut Tx<'_, Galaxy>, gateway: &Name) -> hot::Result<bool> {
    let now = tx.now();
    Ok(tx.zscore(&GATEWAYS.key(), gateway)?.is_none_or(|until| until < now as f64))
}

fn open(tx: &mut Tx<'_, Galaxy>, gateway: &Name, request: &SocketRequest) -> Result<()> {
    let SocketRequest { connection, player_id } = request;
    refuse_deleted(tx, *player_id)?;
    let socket = Socket { gateway: gateway.clone(), connection: connection.clone() };
    let sockets = PLAYER_SOCKETS.key(player_id);
    let former = tx.hget(&GATEWAY_SOCKETS.key(gateway), connection)?;
    if former.is_some_and(|former| former != *player_id) {
        close(tx, &socket)?;
    }
    let (count, is_known) = tx.together(|tx| (tx.scard(&sockets), tx.sismember(&sockets, &socket)))?;
    if count >= CONNECTIONS_PER_PLAYER_MAX && !is_known {
        return Err(Error::TooMany { what: "connections of the player", max: CONNECTIONS_PER_PLAYER_MAX });
    }
    tx.hset(&GATEWAY_SOCKETS.key(gateway), connection, player_id)?;
    tx.sadd(&sockets, &socket)?;
    Ok(tx.sadd(&ONLINE.key(), player_id)?)
}

/// Opens connections again. Returns those that are to be closed: of deleted players, and too many of one player.
fn reopen(tx: &mut Tx<'_, Galaxy>, gateway: &Name, some: &[SocketRequest]) -> Result<Vec<Name>> {
    let mut refused = Vec::new();
    for request in some {
        match open(tx, gateway, request) {
            Err(Error::PlayerDeleted { .. } | Error::TooMany { .. }) => {
                refused.push(request.connection.clone())
            }
            result => result?,
        }
    }
    Ok(refused)
}

/// Closes a connection; the player goes offline with the last one.
fn close(tx: &mut Tx<'_, Galaxy>, socket: &Socket) -> hot::Result<bool> {
    let of_gateway = GATEWAY_SOCKETS.key(&socket.gateway);
    let Some(player) = tx.hget(&of_gateway, &socket.connection)? else { return Ok(false) };
    let of_player = PLAYER_SOCKETS.key(player);
    tx.hdel(&of_gateway, &socket.connection)?;
    tx.srem(&of_player, socket)?;
    if tx.scard(&of_player)? == 0 {
        tx.srem(&ONLINE.key(), &player)?;
    }
    Ok(true)
}
