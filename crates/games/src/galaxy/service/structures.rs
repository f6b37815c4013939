//! Stations and jump gates.

use super::Physics;
use super::entities::{self, JumpgateKind, StationKind};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::model::{Jumpgate, JumpgateId, Station, StationId};
use crate::galaxy::schema::Galaxy;
use crate::galaxy::tick::{Change, StructureState};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot, Tx};

macro_rules! structure_operations {
    ($($kind:ident, $entity:ident, $id:ident, $id_field:ident, $placed:ident, $what:literal,
        pub fn $spawn:ident = $spawn_name:literal, pub fn $remove:ident = $remove_name:literal,
        pub fn $clear:ident = $clear_name:literal;)*) => {
        impl Physics {
            $(
                #[doc = concat!("Adds a ", $what, ". It is in the next tick.")]
                pub fn $spawn(&self, new: $entity) -> Pending<'_, Result<()>> {
                    Box::pin(async move {
                        new.check()?;
                        let pairs = new.pairs()?;
                        let $entity { $id_field, position, velocity, system_id, .. } = new;
                        let state = StructureState { system_id, position, velocity };
                        let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                            let change = Change::$placed { $id_field, state: state.clone() };
                            entities::create::<$kind>(tx, &$id_field, &state.system_id, &pairs, &change)
                        };
                        self.scope().named($spawn_name).transact::<_, Error, _>(transaction).await
                    })
                }

                #[doc = concat!("Removes a ", $what, ". `false` = there is none.")]
                pub fn $remove(&self, id: $id) -> Pending<'_, Result<bool>> {
                    Box::pin(async move {
                        let transaction = move |tx: &mut Tx<'_, Galaxy>| entities::remove::<$kind>(tx, &id);
                        Ok(self.scope().named($remove_name).transact::<_, hot::Error, _>(transaction).await?)
                    })
                }

                #[doc = concat!("Removes all ", $what, "s. Returns how many.")]
                pub fn $clear(&self) -> Pending<'_, Result<usize>> {
                    Box::pin(async move {
                        entities::clear::<$kind>(self.scope().named($clear_name), entities::remove::<$kind>).await
                    })
                }
            )*
        }
    };
}

structure_operations! {
    StationKind, Station, StationId, station_id, StationPlaced, "station",
        pub fn spawn_station = "galaxy.spawn_station", pub fn remove_station = "galaxy.remove_station",
        pub fn clear_stations = "galaxy.clear_stations";
    JumpgateKind, Jumpgate, JumpgateId, jumpgate_id, JumpgatePlaced, "jump gate",
        pub fn spawn_jumpgate = "galaxy.spawn_jumpgate", pub fn remove_jumpgate = "galaxy.remove_jumpgate",
        pub fn clear_jumpgates = "galaxy.clear_jumpgates";
}
