//! Connections: where an entity's clients are connected.

use super::*;
use crate::darkages::limits::CONNECTIONS_PER_ENTITY_MAX;
use crate::darkages::passage::PassedConnection;
use emberkeep_hot::command::Read;
use emberkeep_hot::engine::Pending;
use emberkeep_primitives::Presence;
use emberkeep_schema::{KeyLayout, Name};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The fields of the document.
const ENTITY_ID: &str = "entity_id";
const CONNECT_TIME: &str = "connect_time";
const IP_ADDRESS: &str = "ip_address";
const CLIENT_VERSION: &str = "client_version";

/// A connection of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The id under which it was opened.
    pub id: Name,
    /// The entity whose client it is.
    pub entity: EntityId,
    /// When it was opened, in milliseconds since 1970.
    pub connect_time: i64,
    /// The client's address, if it is known.
    pub ip_address: Option<IpAddr>,
    /// The version of the client's protocol.
    pub client_version: String,
    /// Fields that other programs wrote.
    pub other: BTreeMap<String, String>,
}

/// A connection to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionRequest {
    /// An id that no connection of another entity has.
    pub id: Name,
    /// The entity, which must be logged in.
    pub entity: EntityId,
    /// The client's address; `None` = unknown.
    pub ip_address: Option<IpAddr>,
    /// The version of the client's protocol, at most 128 bytes.
    pub client_version: String,
}

impl DarkAges {
    /// Notes that a client is connected, for an hour. The id of an entity's own connection opens it again, with the time of
    /// the call. An id is of one connection: where shards are partitions of their own, the others are asked before, so of
    /// two entities that take an id at once in two shards both may have it.
    pub fn open_connection(&self, request: ConnectionRequest) -> Pending<'_, Result<Connection>> {
        Box::pin(async move {
            check_text("client version", &request.client_version)?;
            let entity = request.entity;
            self.check_free(&request).await?;
            let transaction = move |tx: &mut Tx<'_, Shard>| open(tx, &request);
            self.at_home(entity, "darkages.open_connection", transaction).await
        })
    }

    /// A connection; `None` if it is not open.
    pub fn connection(&self, id: Name) -> Pending<'_, Result<Option<Connection>>> {
        Box::pin(async move {
            let scope = self.scope_of_connection(&id).await?;
            let fields = scope.hgetall(&CONNECTION.key(&id)).await?;
            Ok(decoded(self.store.key_layout(), scope.partition(), id, fields)?)
        })
    }

    /// The open connections of an entity; none if it is not logged in.
    pub fn connections(&self, entity: EntityId) -> Pending<'_, Result<Vec<Connection>>> {
        Box::pin(async move {
            let layout = self.store.key_layout().clone();
            let transaction = move |tx: &mut Tx<'_, Shard>| {
                let ids = of_entity(entity).living(tx)?;
                let read = |id: &Name| (tx.raw_name(&CONNECTION.key(id)), Read::HGetAll);
                let reads: Vec<_> = ids.iter().map(read).collect();
                // One round trip for all of them.
                tx.raw_read_many(&reads)?;
                let mut connections = Vec::with_capacity(ids.len());
                for id in ids {
                    let fields = tx.hgetall(&CONNECTION.key(&id))?;
                    connections.extend(decoded(&layout, tx.partition(), id, fields)?);
                }
                Ok(connections)
            };
            match self.at_home(entity, "darkages.connections", transaction).await {
                Err(Error::NotLoggedIn { .. }) => Ok(Vec::new()),
                connections => connections,
            }
        })
    }

    /// Keeps a connection for another hour. `false` = it is not open. It does not count as activity of the session.
    pub fn touch_connection(&self, id: Name) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            let scope = self.scope_of_connection(&id).await?;
            let transaction = move |tx: &mut Tx<'_, Shard>| match entity_of(tx, &id)? {
                Some(entity) => of_entity(entity).renew(tx, &id),
                None => Ok(false),
            };
            Ok(scope.named("darkages.touch_connection").transact(transaction).await?)
        })
    }

    /// Notes that a client is no longer connected. `false` = it was not. The session goes on without any connection.
    pub fn close_connection(&self, id: Name) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            let scope = self.scope_of_connection(&id).await?;
            let transaction = move |tx: &mut Tx<'_, Shard>| {
                let is_open = tx.exists(&CONNECTION.key(&id))?;
                match entity_of(tx, &id) {
                    Ok(Some(entity)) => of_entity(entity).leave(tx, &id)?,
                    // What cannot be read is removed, and its entry when the entity's set is read.
                    Ok(None) => tx.del(&CONNECTION.key(&id))?,
                    Err(error) if error.is_corrupt() => tx.del(&CONNECTION.key(&id))?,
                    Err(error) => return Err(error),
                }
                Ok(is_open)
            };
            Ok(scope.named("darkages.close_connection").transact(transaction).await?)
        })
    }
}

impl DarkAges {
    /// Whether no other entity has this connection in any shard. That of the entity is asked again when it opens it.
    async fn check_free(&self, request: &ConnectionRequest) -> Result<()> {
        if !self.is_split() {
            return Ok(());
        }
        for scope in self.scopes() {
            let id = request.id.clone();
            let read = move |tx: &mut Tx<'_, Shard>| entity_of(tx, &id);
            let found = scope.named("darkages.open_connection").transact(read).await?;
            if let Some(entity) = found.filter(|found| *found != request.entity) {
                return Err(Error::ConnectionInUse { connection: request.id.clone(), entity });
            }
        }
        Ok(())
    }

    /// The partition that has a connection. Without a zone that the caller named, the shards are asked one by one.
    async fn scope_of_connection(&self, id: &Name) -> Result<Scope<Shard>> {
        let scopes = if self.home.is_some() { vec![] } else { self.scopes() };
        if scopes.len() > 1 {
            for scope in scopes {
                if scope.exists(&CONNECTION.key(id)).await? {
                    return Ok(scope);
                }
            }
        }
        Ok(self.scope())
    }
}

/// The connections of an entity.
pub(super) fn of_entity(entity: EntityId) -> Presence<CONNECTIONS, CONNECTION, Name> {
    Presence::new(CONNECTIONS.key(entity), |id| CONNECTION.key(id)).owned_by(ENTITY_ID, entity.0.to_string())
}

/// The connections that a player takes along to another shard. One that cannot be read stays behind, and ends.
pub(super) fn taken_along(tx: &mut Tx<'_, Shard>, entity: EntityId) -> hot::Result<Vec<PassedConnection>> {
    let ids = of_entity(entity).living(tx)?;
    let reads: Vec<_> = ids.iter().map(|id| (tx.raw_name(&CONNECTION.key(id)), Read::HGetAll)).collect();
    tx.raw_read_many(&reads)?;
    let mut taken = Vec::with_capacity(ids.len());
    for id in ids {
        match tx.hgetall(&CONNECTION.key(&id)) {
            Ok(fields) => taken.push(PassedConnection::new(id.to_string(), fields)),
            Err(error) if error.is_corrupt() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}

/// Opens the connections that a player brought along, for an hour from now on. An id that another entity took meanwhile is
/// that entity's.
pub(super) fn brought_along(
    tx: &mut Tx<'_, Shard>,
    entity: EntityId,
    connections: &[PassedConnection],
) -> hot::Result<()> {
    for PassedConnection { id, fields, .. } in connections {
        let Some(id) = Name::new(id.as_str()).ok() else { continue };
        match entity_of(tx, &id) {
            Ok(Some(other)) if other != entity => continue,
            Ok(_) => {}
            Err(error) if error.is_corrupt() => continue,
            Err(error) => return Err(error),
        }
        let key = CONNECTION.key(&id);
        tx.del(&key)?;
        fields.iter().try_for_each(|(field, value)| tx.hset(&key, field, value))?;
        of_entity(entity).join(tx, &id)?;
    }
    Ok(())
}

fn open(tx: &mut Tx<'_, Shard>, request: &ConnectionRequest) -> Result<Connection> {
    let ConnectionRequest { id, entity, ip_address, client_version } = request;
    let is_logged_in = tx.exists(&SESSION.key(entity))?;
    if !is_logged_in {
        return Err(Error::NotLoggedIn { entity: *entity });
    }
    if let Some(other) = entity_of(tx, id)?.filter(|other| other != entity) {
        return Err(Error::ConnectionInUse { connection: id.clone(), entity: other });
    }
    let connections = of_entity(*entity);
    let living = connections.living(tx)?;
    if living.len() >= CONNECTIONS_PER_ENTITY_MAX && !living.contains(id) {
        return Err(Error::TooManyConnections { entity: *entity, max: CONNECTIONS_PER_ENTITY_MAX });
    }
    let connect_time = tx.now();
    let fields = [
        (ENTITY_ID, Some(entity.0.to_string())),
        (CONNECT_TIME, Some(connect_time.to_string())),
        (IP_ADDRESS, ip_address.map(|address| address.to_string())),
        (CLIENT_VERSION, Some(client_version.clone())),
    ];
    let key = CONNECTION.key(id);
    // Of an earlier connection with this id nothing is left.
    tx.del(&key)?;
    for (field, value) in fields {
        if let Some(value) = value {
            tx.hset(&key, &field.to_owned(), &value)?;
        }
    }
    connections.join(tx, id)?;
    Ok(Connection {
        id: id.clone(),
        entity: *entity,
        connect_time,
        ip_address: *ip_address,
        client_version: client_version.clone(),
        other: BTreeMap::new(),
    })
}

/// The entity of a connection; `None` if it is not open.
fn entity_of(tx: &mut Tx<'_, Shard>, id: &Name) -> hot::Result<Option<EntityId>> {
    let key = CONNECTION.key(id);
    let Some(text) = tx.hget(&key, &ENTITY_ID.to_owned())? else { return Ok(None) };
    let name = tx.raw_name(&key);
    text.parse().map(|id| Some(EntityId(id))).map_err(|_| corrupt(&name, ENTITY_ID, "an integer"))
}

/// A connection from its fields; `None` if there are none.
fn decoded(
    layout: &KeyLayout,
    shard: &Shard,
    id: Name,
    fields: Vec<(String, String)>,
) -> hot::Result<Option<Connection>> {
    if fields.is_empty() {
        return Ok(None);
    }
    let mut other: BTreeMap<String, String> = fields.into_iter().collect();
    let key = CONNECTION.key(&id).to_text(layout, shard);
    let wrong = |field, expected| corrupt(key.as_bytes(), field, expected);
    let number = |text: Option<String>, field| {
        text.and_then(|text| text.parse::<i64>().ok()).ok_or_else(|| wrong(field, "an integer"))
    };
    let entity = EntityId(number(other.remove(ENTITY_ID), ENTITY_ID)?);
    let connect_time = number(other.remove(CONNECT_TIME), CONNECT_TIME)?;
    let ip_address = match other.remove(IP_ADDRESS) {
        Some(text) => Some(text.parse().map_err(|_| wrong(IP_ADDRESS, "an IP address"))?),
        None => None,
    };
    let client_version = other.remove(CLIENT_VERSION).unwrap_or_default();
    Ok(Some(Connection { id, entity, connect_time, ip_address, client_version, other }))
}

fn corrupt(key: &[u8], field: &str, expected: &str) -> hot::Error {
    hot::Error::Corrupt { key: hot::show(key), reason: format!("its field {field} is not {expected}") }
}
