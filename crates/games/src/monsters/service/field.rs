//! The monsters of a field, and moving within and between fields.

use super::*;
use crate::monsters::rules::{self, Position};
use crate::monsters::schema::ByField;
use crate::world::Field;
use emberkeep_hot::engine::MemberCursor;
use emberkeep_hot::engine::Pending;
use emberkeep_primitives::index::{self, IndexPage, Listing};

impl Monsters {
    /// A page of about `count` monsters of a field. All pages together contain every monster that was there
    /// throughout. Stale index entries are handled as by [`in_field`](Monsters::in_field).
    pub fn field_page(
        &self,
        tenant: Tenant,
        field: Field,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Pending<'_, Result<IndexPage<Monster>>> {
        Box::pin(async move {
            let scope = self.scope(tenant, "monsters.field_page");
            Ok(index::page::<ByField>(&scope, &field_key(&field), from, count).await?)
        })
    }

    /// The monsters of a field, dead or alive. Stale index entries are left out and removed. A corrupt record
    /// is reported and does not hide the others.
    pub fn in_field(&self, tenant: Tenant, field: Field) -> Pending<'_, Result<Listing<Monster>>> {
        Box::pin(async move {
            Ok(index::list::<ByField>(&self.scope(tenant, "monsters.in_field"), &field_key(&field)).await?)
        })
    }

    /// Moves a living monster within its field.
    pub fn move_to(&self, tenant: Tenant, id: MonsterId, to: Position) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            self.update("monsters.move_to", tenant, id, move |monster| {
                rules::walk(monster, to).map(Change::Put)
            })
            .await
        })
    }

    /// Moves a living monster to another field: record, both indexes and drop timer in one transaction. Its
    /// control ends, see [`rules::relocate`].
    pub fn move_to_field(
        &self,
        tenant: Tenant,
        id: MonsterId,
        field: Field,
        to: Position,
    ) -> Pending<'_, Result<Monster>> {
        Box::pin(async move {
            let scope = self
                .scope(tenant, "monsters.move_to_field")
                .prefetch_get(&MONSTER.key(id))
                .prefetch_get(&DROP_TIMER.key(id));
            scope
                .transact(move |tx| {
                    let mut monster = existing(tx, id)?;
                    index::leave::<ByField>(tx, &id, &monster)?;
                    rules::relocate(&mut monster, field, to)?;
                    index::enter::<ByField>(tx, &id, &monster)?;
                    put(tx, id, &mut monster)?;
                    let tenant = *tx.partition();
                    let timer = tx.update(&DROP_TIMER.key(id), |timer| {
                        timer.field.set(field);
                        timer.complete(tenant, id, &monster);
                    });
                    match timer {
                        // A corrupt timer must not prevent the move.
                        Err(error) if !error.is_corrupt() => Err(error.into()),
                        _ => Ok(monster),
                    }
                })
                .await
        })
    }
}
