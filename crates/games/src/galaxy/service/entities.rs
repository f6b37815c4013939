//! What the four kinds of entities have in common: a hash, and an entry in the index of their system.

use super::{GalaxyState, set_fields};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::limits::{ENTITIES_PER_TRANSACTION, KEYS_PER_PAGE};
use crate::galaxy::model::{
    Body, BodyName, Fields, Jumpgate, JumpgateId, Pairs, PlayerId, Ship, ShipId, Station, StationId,
    SystemId, ship_fields,
};
use crate::galaxy::schema::{
    BODY, CHANGES, DELETED, Galaxy, JUMPGATE, SHIP, STATION, SYSTEM_BODIES, SYSTEM_JUMPGATES, SYSTEM_SHIPS,
    SYSTEM_STATIONS,
};
use crate::galaxy::tick::Change;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::store::Member;
use emberkeep_hot::{self as hot, ReadTx, Scope, Tx};
use emberkeep_schema::{Family, Hash, Id, Key, Part, Persistent, Set, Utf8};

/// A kind of entities. Implemented by marker types.
pub(crate) trait Kind: Send + Sync + 'static {
    type Id: Part + Clone + Ord + Send + Sync + ToString + 'static;
    type Entity: Send + 'static;
    type Record: Family<Partition = Galaxy, Kind = Hash<Utf8, Utf8>, Ttl = Persistent>;
    type Index: Family<Partition = Galaxy, Kind = Set<Id<Self::Id>>, Ttl = Persistent>;

    /// What it is called in errors.
    const WHAT: &'static str;

    fn record(id: &Self::Id) -> Key<Self::Record>;
    fn id(key: &Key<Self::Record>) -> Self::Id;
    fn index(system: &SystemId) -> Key<Self::Index>;
    fn read(id: Self::Id, fields: &Fields<'_>) -> hot::Result<Self::Entity>;
    fn removed(id: Self::Id) -> Change;
}

macro_rules! entity_kinds {
    ($($name:ident: $id:ty, $entity:ident, $what:literal, $record:ident, $index:ident, |$removed:ident| $change:expr;)*) => { $(
        pub(crate) struct $name;

        impl Kind for $name {
            type Id = $id;
            type Entity = $entity;
            type Record = $record;
            type Index = $index;

            const WHAT: &'static str = $what;

            fn record(id: &$id) -> Key<$record> {
                $record.key(id)
            }
            fn id(key: &Key<$record>) -> $id {
                $record.parts(key).0
            }
            fn index(system: &SystemId) -> Key<$index> {
                $index.key(system)
            }
            fn read(id: $id, fields: &Fields<'_>) -> hot::Result<$entity> {
                $entity::read(id, fields)
            }
            fn removed($removed: $id) -> Change {
                $change
            }
        }
    )* };
}

entity_kinds! {
    ShipKind: ShipId, Ship, "ship", SHIP, SYSTEM_SHIPS, |ship_id| Change::ShipRemoved { ship_id };
    BodyKind: BodyName, Body, "body", BODY, SYSTEM_BODIES, |name| Change::BodyRemoved { name };
    StationKind: StationId, Station, "station", STATION, SYSTEM_STATIONS,
        |station_id| Change::StationRemoved { station_id };
    JumpgateKind: JumpgateId, Jumpgate, "jump gate", JUMPGATE, SYSTEM_JUMPGATES,
        |jumpgate_id| Change::JumpgateRemoved { jumpgate_id };
}

/// An entity; `None` if there is none.
pub(super) fn find<K: Kind>(tx: &mut ReadTx<'_, Galaxy>, id: &K::Id) -> hot::Result<Option<K::Entity>> {
    let key = K::record(id);
    let pairs = tx.hgetall(&key)?;
    if pairs.is_empty() {
        return Ok(None);
    }
    let name = hot::show(&tx.raw_name(&key));
    K::read(id.clone(), &Fields::new(name, &pairs)).map(Some)
}

/// Adds an entity that does not exist yet: its hash, its entry in the index, and the change that the next tick applies.
pub(super) fn create<K: Kind>(
    tx: &mut Tx<'_, Galaxy>,
    id: &K::Id,
    system: &SystemId,
    pairs: &Pairs,
    change: &Change,
) -> Result<()> {
    crate::galaxy::tick::running(tx)?;
    let key = K::record(id);
    if tx.exists(&key)? {
        return Err(Error::exists(K::WHAT, id.to_string()));
    }
    set_fields(tx, &key, pairs)?;
    tx.sadd(&K::index(system), id)?;
    Ok(tx.append(&CHANGES.key(), change)?)
}

/// Removes an entity with its entry. `false` = there is none.
pub(super) fn remove<K: Kind>(tx: &mut Tx<'_, Galaxy>, id: &K::Id) -> hot::Result<bool> {
    let key = K::record(id);
    let Some(system) = system_of::<K>(tx, id)? else { return Ok(false) };
    tx.del(&key)?;
    tx.srem(&K::index(&system), id)?;
    tx.append(&CHANGES.key(), &K::removed(id.clone()))?;
    Ok(true)
}

/// The system of an entity that exists. One that cannot be read counts as the default.
pub(super) fn system_of<K: Kind>(tx: &mut ReadTx<'_, Galaxy>, id: &K::Id) -> hot::Result<Option<SystemId>> {
    let key = K::record(id);
    let field = ship_fields::SYSTEM_ID.to_owned();
    let (exists, system) = tx.together(|tx| (tx.exists(&key), tx.hget(&key, &field)))?;
    let system = system.and_then(|text| SystemId::parse(&text)).unwrap_or_default();
    Ok(exists.then_some(system))
}

/// The ids in a system's index whose entities exist and are in the system. The owner of the index removes other entries.
pub(super) async fn members<K: Kind>(scope: Scope<Galaxy>, system: &SystemId) -> Result<Vec<K::Id>> {
    let (index, mut ids, mut from) = (K::index(system), Vec::new(), None);
    loop {
        let page = scope.members(&index, from, KEYS_PER_PAGE).await?;
        for entries in page.members.chunks(ENTITIES_PER_TRANSACTION) {
            let (entries, system) = (entries.to_vec(), system.clone());
            let transaction = move |tx: &mut Tx<'_, Galaxy>| living::<K>(tx, &system, &entries);
            ids.extend(scope.transact::<_, hot::Error, _>(transaction).await?);
        }
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

fn living<K: Kind>(
    tx: &mut Tx<'_, Galaxy>,
    system: &SystemId,
    entries: &[Member<K::Id>],
) -> hot::Result<Vec<K::Id>> {
    let index = K::index(system);
    let prunes = tx.may_write(&index);
    let mut ids = Vec::new();
    for entry in entries {
        match entry {
            Member::Known(id) => match system_of::<K>(tx, id) {
                Ok(Some(home)) if home == *system => ids.push(id.clone()),
                Ok(_) if prunes => tx.srem(&index, id)?,
                Ok(_) => {}
                Err(error) if error.is_corrupt() => {}
                Err(error) => return Err(error),
            },
            Member::External(bytes) if prunes => tx.srem_raw(&index, bytes.clone())?,
            Member::External(_) => {}
        }
    }
    Ok(ids)
}

/// Applies `remove` to every entity of a kind, some in each transaction. Returns how many were removed.
pub(super) async fn clear<K: Kind>(
    scope: Scope<Galaxy>,
    remove: fn(&mut Tx<'_, Galaxy>, &K::Id) -> hot::Result<bool>,
) -> Result<usize> {
    let (mut removed, mut from) = (0, None);
    loop {
        let page = scope.scan::<K::Record>(from, KEYS_PER_PAGE).await?;
        for keys in page.keys.chunks(ENTITIES_PER_TRANSACTION) {
            let ids: Vec<K::Id> = keys.iter().map(K::id).collect();
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                let mut removed = 0;
                for id in &ids {
                    removed += usize::from(remove(tx, id)?);
                }
                Ok(removed)
            };
            removed += scope.transact::<usize, hot::Error, _>(transaction).await?;
        }
        from = page.next;
        if from.is_none() {
            return Ok(removed);
        }
    }
}

/// Declares the reads of a kind.
macro_rules! entity_reads {
    ($(pub fn $one:ident, pub fn $many:ident, $kind:ident, $id:ty, $entity:ident, $what:literal;)*) => {
        impl GalaxyState {
            $(
                #[doc = concat!("A ", $what, " as its hash has it; `None` if there is none.")]
                pub fn $one<'a>(&'a self, id: &'a $id) -> Pending<'a, Result<Option<$entity>>> {
                    Box::pin(async move {
                        let id = id.clone();
                        let transaction = move |tx: &mut ReadTx<'_, Galaxy>| find::<$kind>(tx, &id);
                        Ok(self.scope().named("galaxy.read_entity").read::<_, hot::Error, _>(transaction).await?)
                    })
                }

                #[doc = concat!("The ids of the ", $what, "s in a star system, in order. Stale entries of the index are left out;")]
                #[doc = "the service that owns it removes them."]
                pub fn $many<'a>(&'a self, system: &'a SystemId) -> Pending<'a, Result<Vec<$id>>> {
                    Box::pin(async move {
                        members::<$kind>(self.scope().named("galaxy.members"), system).await
                    })
                }
            )*
        }
    };
}

entity_reads! {
    pub fn ship, pub fn ships_in, ShipKind, ShipId, Ship, "ship";
    pub fn body, pub fn bodies_in, BodyKind, BodyName, Body, "body";
    pub fn station, pub fn stations_in, StationKind, StationId, Station, "station";
    pub fn jumpgate, pub fn jumpgates_in, JumpgateKind, JumpgateId, Jumpgate, "jump gate";
}

/// Refuses a player who was deleted.
pub(super) fn refuse_deleted(tx: &mut ReadTx<'_, Galaxy>, player: PlayerId) -> Result<()> {
    match tx.hget(&DELETED.key(), &player)? {
        Some(_) => Err(Error::PlayerDeleted { player }),
        None => Ok(()),
    }
}
