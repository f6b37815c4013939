//! The two indexes of reactors: by field, and of all.

use super::model::{Reactor, ReactorId};
use super::schema::{REACTOR, REACTOR_MAP, REACTORS_ALL, field_key};
use crate::world::Tenant;
use emberkeep_primitives::Indexed;
use emberkeep_schema::{Json, Key};
use uuid::Uuid;

/// An arbitrary tenant. On one server, keys without a tenant in their name are the same for every tenant.
pub(super) const ANYWHERE: Tenant = Tenant(Uuid::nil());

/// The index by field.
pub(super) struct FieldIndex;

/// The index of all reactors.
pub(super) struct AllIndex;

macro_rules! indexed {
    ($($index:ident by $family:ident: $home:expr;)*) => { $(
        impl Indexed for $index {
            type Partition = Tenant;
            type Member = ReactorId;
            type Value = Reactor;
            type Codec = Json<Reactor>;
            type Record = REACTOR;
            type Index = $family;

            fn record(id: &ReactorId) -> Key<REACTOR> {
                REACTOR.key(id)
            }

            fn member(record: &Key<REACTOR>) -> ReactorId {
                REACTOR.parts(record).0
            }

            fn home(reactor: &Reactor) -> Key<$family> {
                $home(reactor)
            }

            fn partition(reactor: &Reactor) -> Option<Tenant> {
                Some(Tenant(reactor.tenant.id))
            }

            fn anywhere() -> Option<Tenant> {
                Some(ANYWHERE)
            }
        }
    )* };
}

indexed! {
    FieldIndex by REACTOR_MAP: |reactor: &Reactor| field_key(&reactor.field());
    AllIndex by REACTORS_ALL: |_: &Reactor| REACTORS_ALL.key();
}
