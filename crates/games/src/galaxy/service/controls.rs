//! What players ask of their ships, and the names of ships.

use super::entities::{Kind as _, ShipKind};
use super::ships::owned;
use super::{ApiGateway, Physics, set_fields};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::model::{Controls, PlayerId, ShipId, check_name, ship_fields};
use crate::galaxy::schema::{Galaxy, SHIP};
use crate::galaxy::services::RENAME;
use emberkeep_hot::Tx;
use emberkeep_hot::engine::Pending;

impl Physics {
    /// Sets all controls of a ship. A value that the controls do not have is removed.
    pub fn control(&self, ship: ShipId, controls: Controls) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            controls.check()?;
            let (pairs, absent) = (controls.pairs()?, controls.absent());
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                let key = SHIP.key(ship);
                if !tx.exists(&key)? {
                    return Err(Error::not_found(ShipKind::WHAT, ship));
                }
                set_fields(tx, &key, &pairs)?;
                Ok(tx.hdel_many(&key, &absent)?)
            };
            self.scope().named("galaxy.control").transact::<_, Error, _>(transaction).await
        })
    }
}

impl ApiGateway {
    /// Gives a ship of the player another name.
    pub fn rename_ship(&self, player: PlayerId, ship: ShipId, name: String) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            check_name("ship name", &name)?;
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                owned(tx, ship, player)?;
                Ok(tx.hset(&SHIP.key(ship), &ship_fields::NAME.to_owned(), &name)?)
            };
            let scope = self.scope().for_operation(&RENAME).named("galaxy.rename_ship");
            scope.transact::<_, Error, _>(transaction).await
        })
    }
}
