//! Maneuvers: at most one for each ship.

use super::rules::existing_ship;
use super::{GalaxyState, TickEngine, set_fields};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::model::{Fields, Pairs, ShipId};
use crate::galaxy::rules::{check_object, check_word};
use crate::galaxy::schema::{Galaxy, HEAD, MANEUVER};
use crate::galaxy::tick::running;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot, ReadTx, Tx};
use serde::{Deserialize, Serialize};

/// The maneuver of a ship.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maneuver {
    /// The ship.
    pub ship_id: ShipId,
    /// What it is, such as `circularize`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its parameters, a JSON object as it was written.
    pub params_json: String,
    /// How far it has come, in the words of the game.
    pub phase: String,
    /// Whether it runs, in the words of the game.
    pub status: String,
    /// The tick in which it was begun.
    pub created_at_tick: i64,
    /// The tick in which it was changed last.
    pub updated_at_tick: i64,
}

/// New values of a maneuver. What is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManeuverChange {
    /// 1 to 64 bytes.
    pub phase: Option<String>,
    /// 1 to 64 bytes.
    pub status: Option<String>,
    /// A JSON object.
    pub params_json: Option<String>,
}

impl TickEngine {
    /// Begins a maneuver of a ship. It replaces the one before.
    pub fn begin_maneuver(
        &self,
        ship: ShipId,
        kind: String,
        params_json: String,
        phase: String,
        status: String,
    ) -> Pending<'_, Result<Maneuver>> {
        Box::pin(async move {
            check_word("maneuver type", &kind)?;
            check_word("maneuver phase", &phase)?;
            check_word("maneuver status", &status)?;
            check_object("maneuver parameters", &params_json)?;
            let new = Maneuver {
                ship_id: ship,
                kind,
                params_json,
                phase,
                status,
                created_at_tick: 0,
                updated_at_tick: 0,
            };
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                running(tx)?;
                existing_ship(tx, ship)?;
                let tick = tx.get(&HEAD.key())?.map_or(0, |head| head.tick);
                let maneuver = Maneuver { created_at_tick: tick, updated_at_tick: tick, ..new.clone() };
                tx.del(&MANEUVER.key(ship))?;
                set_fields(tx, &MANEUVER.key(ship), &pairs(&maneuver))?;
                Ok(maneuver)
            };
            self.scope().named("galaxy.begin_maneuver").transact::<_, Error, _>(transaction).await
        })
    }

    /// Changes the maneuver of a ship.
    pub fn update_maneuver(&self, ship: ShipId, change: ManeuverChange) -> Pending<'_, Result<Maneuver>> {
        Box::pin(async move {
            change.phase.as_ref().map_or(Ok(()), |phase| check_word("maneuver phase", phase))?;
            change.status.as_ref().map_or(Ok(()), |status| check_word("maneuver status", status))?;
            change.params_json.as_ref().map_or(Ok(()), |json| check_object("maneuver parameters", json))?;
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                let found = find(tx, ship)?.ok_or_else(|| Error::not_found("maneuver of ship", ship))?;
                let tick = tx.get(&HEAD.key())?.map_or(0, |head| head.tick);
                let change = change.clone();
                let changed = Maneuver {
                    phase: change.phase.unwrap_or(found.phase),
                    status: change.status.unwrap_or(found.status),
                    params_json: change.params_json.unwrap_or(found.params_json),
                    updated_at_tick: tick,
                    ..found
                };
                set_fields(tx, &MANEUVER.key(ship), &pairs(&changed))?;
                Ok(changed)
            };
            self.scope().named("galaxy.update_maneuver").transact::<_, Error, _>(transaction).await
        })
    }

    /// Ends the maneuver of a ship. `false` = it has none.
    pub fn end_maneuver(&self, ship: ShipId) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                let exists = tx.exists(&MANEUVER.key(ship))?;
                tx.del(&MANEUVER.key(ship))?;
                Ok(exists)
            };
            Ok(self.scope().named("galaxy.end_maneuver").transact::<_, hot::Error, _>(transaction).await?)
        })
    }
}

impl GalaxyState {
    /// The maneuver of a ship; `None` if it has none.
    pub fn maneuver(&self, ship: ShipId) -> Pending<'_, Result<Option<Maneuver>>> {
        Box::pin(async move {
            let transaction = move |tx: &mut ReadTx<'_, Galaxy>| find(tx, ship);
            Ok(self.scope().named("galaxy.maneuver").read::<_, hot::Error, _>(transaction).await?)
        })
    }
}

fn pairs(maneuver: &Maneuver) -> Pairs {
    [
        ("ship_id", maneuver.ship_id.to_string()),
        ("type", maneuver.kind.clone()),
        ("params_json", maneuver.params_json.clone()),
        ("phase", maneuver.phase.clone()),
        ("status", maneuver.status.clone()),
        ("created_at_tick", maneuver.created_at_tick.to_string()),
        ("updated_at_tick", maneuver.updated_at_tick.to_string()),
    ]
    .map(|(field, text)| (field.to_owned(), text))
    .to_vec()
}

fn find(tx: &mut ReadTx<'_, Galaxy>, ship: ShipId) -> hot::Result<Option<Maneuver>> {
    let key = MANEUVER.key(ship);
    let pairs = tx.hgetall(&key)?;
    if pairs.is_empty() {
        return Ok(None);
    }
    let fields = Fields::new(hot::show(&tx.raw_name(&key)), &pairs);
    Ok(Some(Maneuver {
        ship_id: ship,
        kind: fields.text_or("type", ""),
        params_json: fields.text_or("params_json", "{}"),
        phase: fields.text_or("phase", ""),
        status: fields.text_or("status", ""),
        created_at_tick: fields.integer("created_at_tick", 0)?,
        updated_at_tick: fields.integer("updated_at_tick", 0)?,
    }))
}
