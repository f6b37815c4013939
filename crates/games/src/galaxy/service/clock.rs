//! The settings of the clock.

use super::{GalaxyState, TickEngine};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::model::GameTime;
use crate::galaxy::rules::check_rate;
use crate::galaxy::schema::{
    Galaxy, PAUSED, REGISTRATION_OPEN, TICK, TICK_RATE, TIME, TIME_DRIFT, TIME_SCALE, TIME_SYNC,
};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot, ReadTx, Tx};
use serde::{Deserialize, Serialize};

/// All that is said about the game as a whole, as of one moment. What is absent has its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// The present tick; 0 before the first one.
    pub tick: i64,
    /// Its game time; `None` before a tick engine was started.
    pub time: Option<GameTime>,
    /// Whether ticks are paused.
    pub paused: bool,
    /// Ticks per second.
    pub tick_rate: f64,
    /// Speed of game time.
    pub time_scale: f64,
    /// Whether game time is synchronized with UTC.
    pub time_sync: bool,
    /// Seconds by which game time is behind UTC.
    pub time_drift: f64,
    /// Whether players may register.
    pub registration_open: bool,
}

/// New settings of the clock. What is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockChange {
    /// Pauses or resumes.
    pub paused: Option<bool>,
    /// Ticks per second, 0.1 to 100.
    pub tick_rate: Option<f64>,
    /// Speed of game time, 0.1 to 100.
    pub time_scale: Option<f64>,
    /// Whether game time is synchronized with UTC.
    pub time_sync: Option<bool>,
}

impl GalaxyState {
    /// The settings of the clock, the present tick and its time.
    pub fn clock(&self) -> Pending<'_, Result<Clock>> {
        Box::pin(async move {
            let scope = self.scope().named("galaxy.clock");
            Ok(scope.read::<_, hot::Error, _>(|tx: &mut ReadTx<'_, Galaxy>| read(tx)).await?)
        })
    }
}

impl TickEngine {
    /// Changes settings of the clock, all of them or none.
    pub fn set_clock(&self, change: ClockChange) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            change.tick_rate.map_or(Ok(()), |rate| check_rate("tick rate", rate))?;
            change.time_scale.map_or(Ok(()), |scale| check_rate("time scale", scale))?;
            let transaction = move |tx: &mut Tx<'_, Galaxy>| Ok(write(tx, &change)?);
            self.scope().named("galaxy.set_clock").transact::<_, Error, _>(transaction).await
        })
    }

    /// No tick begins until [`resume`](Self::resume).
    pub fn pause(&self) -> Pending<'_, Result<()>> {
        self.set_clock(ClockChange { paused: Some(true), ..ClockChange::default() })
    }

    /// Ticks go on.
    pub fn resume(&self) -> Pending<'_, Result<()>> {
        self.set_clock(ClockChange { paused: Some(false), ..ClockChange::default() })
    }
}

fn read(tx: &mut ReadTx<'_, Galaxy>) -> hot::Result<Clock> {
    let (tick, time, paused, tick_rate, time_scale, time_sync, time_drift, registration_open) =
        tx.together(|tx| {
            (
                tx.get(&TICK.key()),
                tx.get(&TIME.key()),
                tx.get(&PAUSED.key()),
                tx.get(&TICK_RATE.key()),
                tx.get(&TIME_SCALE.key()),
                tx.get(&TIME_SYNC.key()),
                tx.get(&TIME_DRIFT.key()),
                tx.get(&REGISTRATION_OPEN.key()),
            )
        })?;
    Ok(Clock {
        tick: tick.unwrap_or(0),
        time,
        paused: paused.unwrap_or(false),
        tick_rate: tick_rate.unwrap_or(1.0),
        time_scale: time_scale.unwrap_or(1.0),
        time_sync: time_sync.unwrap_or(true),
        time_drift: time_drift.unwrap_or(0.0),
        registration_open: registration_open.unwrap_or(true),
    })
}

fn write(tx: &mut Tx<'_, Galaxy>, change: &ClockChange) -> hot::Result<()> {
    change.paused.map_or(Ok(()), |paused| tx.put(&PAUSED.key(), &paused))?;
    change.tick_rate.map_or(Ok(()), |rate| tx.put(&TICK_RATE.key(), &rate))?;
    change.time_scale.map_or(Ok(()), |scale| tx.put(&TIME_SCALE.key(), &scale))?;
    change.time_sync.map_or(Ok(()), |sync| tx.put(&TIME_SYNC.key(), &sync))
}
