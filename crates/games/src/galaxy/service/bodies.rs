//! Celestial bodies. The galaxy's initializer creates them; physics moves and removes them.

use super::entities::{self, BodyKind};
use super::{Initializer, Physics};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::model::{Body, BodyName};
use crate::galaxy::schema::Galaxy;
use crate::galaxy::services::CREATE_BODY;
use crate::galaxy::tick::{BodyState, Change};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot, Tx};

impl Initializer {
    /// Creates a body. It is in the next tick.
    pub fn create_body(&self, body: Body) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            body.check()?;
            let pairs = body.pairs()?;
            let Body { name, position, velocity, system_id } = body;
            let state = BodyState { system_id, position, velocity };
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                let change = Change::BodyPlaced { name: name.clone(), state: state.clone() };
                entities::create::<BodyKind>(tx, &name, &state.system_id, &pairs, &change)
            };
            let scope = self.scope().for_operation(&CREATE_BODY).named("galaxy.create_body");
            scope.transact::<_, Error, _>(transaction).await
        })
    }
}

impl Physics {
    /// Removes a body. `false` = there is none.
    pub fn remove_body<'a>(&'a self, name: &'a BodyName) -> Pending<'a, Result<bool>> {
        Box::pin(async move {
            let name = name.clone();
            let transaction = move |tx: &mut Tx<'_, Galaxy>| entities::remove::<BodyKind>(tx, &name);
            Ok(self.scope().named("galaxy.remove_body").transact::<_, hot::Error, _>(transaction).await?)
        })
    }

    /// Removes all bodies. Returns how many.
    pub fn clear_bodies(&self) -> Pending<'_, Result<usize>> {
        Box::pin(async move {
            entities::clear::<BodyKind>(
                self.scope().named("galaxy.clear_bodies"),
                entities::remove::<BodyKind>,
            )
            .await
        })
    }
}
