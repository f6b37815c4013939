//! The cases of reactors, for any store. A case shares its store with others and has its own tenant.

#![allow(unreachable_pub)] // Cases are `pub` so that every runner can name them.

mod cooldowns;
mod creation;
mod destruction;
mod external;
mod fields;
mod hits;
mod ids;
pub mod program;
mod sweeps;
mod teardowns;
mod tenants;
mod updates;

pub use cooldowns::*;
pub use creation::*;
pub use destruction::*;
pub use external::*;
pub use fields::*;
pub use hits::*;
pub use ids::*;
pub use sweeps::*;
pub use teardowns::*;
pub use tenants::*;
pub use updates::*;

use bytes::Bytes;
use emberkeep_games::reactors::{
    CreateRequest, Event, REACTOR, REACTORS_ALL, Reactor, ReactorId, Reactors, Result, Spot, field_key,
};
use emberkeep_games::world::{CharacterId, Field, Tenant};
use emberkeep_hot::command::{Expiry, Read, Reply, Write};
use emberkeep_hot::{self as hot, Scope, Store, Tx};
use emberkeep_schema::{Family, Key};
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::task::JoinSet;
use uuid::Uuid;

/// The kind of reactor that cases use.
pub const BOX: u32 = 2001;
/// The character that hits.
pub const HERO: CharacterId = CharacterId(30_000_001);

/// A tenant of the case's own.
#[derive(Clone)]
pub struct World {
    pub reactors: Reactors,
    pub store: Store,
    pub scope: Scope<Tenant>,
    pub tenant: Tenant,
    pub field: Field,
}

impl World {
    pub fn new(store: &Store) -> World {
        let tenant = Tenant(Uuid::new_v4());
        let field = Field { world: 0, channel: 1, map: 100_000_000, instance: Uuid::nil() };
        let (reactors, scope) = (Reactors::new(store.clone()), store.scope(tenant));
        World { reactors, store: store.clone(), scope, tenant, field }
    }

    /// The same field of another tenant.
    pub fn elsewhere(&self) -> World {
        World::new(&self.store)
    }

    /// The spot on which [`World::request`] puts a box.
    pub fn spot(&self, x: i16) -> Spot {
        Spot { classification: BOX, x, y: -88 }
    }

    /// A box that takes two hits.
    pub fn request(&self, x: i16) -> CreateRequest {
        let mut request = CreateRequest::new(self.field, BOX, x, -88);
        request.data.states = states(2);
        request
    }

    pub async fn create(&self, x: i16) -> Reactor {
        self.reactors.create(self.tenant, self.request(x)).await.unwrap()
    }

    /// A box whose spot cools down after it.
    pub async fn create_with_delay(&self, x: i16, delay_ms: i64) -> Reactor {
        let request = CreateRequest { delay_ms, ..self.request(x) };
        self.reactors.create(self.tenant, request).await.unwrap()
    }

    pub async fn get(&self, id: ReactorId) -> Reactor {
        self.reactors.get(self.tenant, id).await.expect("the reactor is there")
    }

    pub async fn cools_down(&self, x: i16) -> bool {
        let remaining = self.reactors.cooldown_remaining(self.tenant, self.field, self.spot(x)).await;
        remaining.unwrap().is_some()
    }

    /// Ids that the field lists.
    pub async fn listed(&self) -> Vec<ReactorId> {
        ids_of(&self.reactors.in_field(self.tenant, self.field).await.unwrap().living)
    }

    /// Entries of the field's index, living or not.
    pub async fn indexed(&self) -> Vec<ReactorId> {
        self.scope.smembers(&field_key(&self.field)).await.unwrap()
    }

    /// Whether the index of all has an id.
    pub async fn in_all(&self, id: ReactorId) -> bool {
        self.scope.sismember(&REACTORS_ALL.key(), &id).await.unwrap()
    }

    pub fn raw<F: Family<Partition = Tenant>>(&self, key: &Key<F>) -> Bytes {
        Bytes::from(key.to_text(self.store.key_layout(), &self.tenant))
    }

    /// A write as a service in another language does it: no types, no policies.
    pub async fn external<F: Family<Partition = Tenant>>(&self, key: &Key<F>, write: Write) {
        let key = self.raw(key);
        let transaction = move |tx: &mut Tx<'_, Tenant>| tx.raw_write(key.clone(), write.clone());
        self.scope.transact::<(), hot::Error, _>(transaction).await.unwrap();
    }

    pub async fn external_set<F: Family<Partition = Tenant>>(&self, key: &Key<F>, text: &str) {
        self.external(key, Write::Set(Bytes::from(text.to_owned()), Expiry::Never)).await;
    }

    pub async fn external_add<F: Family<Partition = Tenant>>(&self, key: &Key<F>, member: &str) {
        self.external(key, Write::SAdd(vec![Bytes::from(member.to_owned())])).await;
    }

    /// The record of a box as the Go service of the document writes it.
    pub fn external_json(&self, id: ReactorId, x: i16) -> String {
        let (tenant, Field { channel, map, instance, .. }) = (self.tenant, self.field);
        format!(
            concat!(
                r#"{{"tenant":{{"id":"{}","region":"GMS","majorVersion":83,"minorVersion":1}},"id":{},"#,
                r#""worldId":0,"channelId":{},"mapId":{},"instance":"{}","classification":{},"name":"go","#,
                r#""data":{{"name":"","tl":{{"x":-20,"y":-35}},"br":{{"x":20,"y":0}},"#,
                r#""stateInfo":{{"0":[{{"type":0,"activeSkills":{{}},"nextState":1}}],"1":{{}}}},"timeoutInfo":null}},"#,
                r#""state":0,"eventState":0,"delay":5000,"direction":0,"x":{},"y":-88,"#,
                r#""updateTime":"2024-02-29T23:59:59.007123456+02:00","touches":{{"7":[]}}}}"#,
            ),
            tenant, id, channel, map, instance, BOX, x
        )
    }

    /// A box that an external service creates with three plain commands.
    pub async fn external_create(&self, x: i16) -> ReactorId {
        // Far from the counter, so that ids do not collide.
        static NEXT: AtomicU32 = AtomicU32::new(1_700_000_000);
        let id = ReactorId(NEXT.fetch_add(1, Ordering::Relaxed));
        self.external_set(&REACTOR.key(id), &self.external_json(id, x)).await;
        self.external_add(&REACTORS_ALL.key(), &id.to_string()).await;
        self.external_add(&field_key(&self.field), &id.to_string()).await;
        id
    }

    /// The bytes at a key.
    pub async fn stored<F: Family<Partition = Tenant>>(&self, key: &Key<F>) -> Option<String> {
        let replies = self.store.engine().read_many(vec![(self.raw(key), Read::Get)]).await.unwrap();
        match &replies[0] {
            Reply::Blob(bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
            _ => None,
        }
    }

    /// Runs the same call in many concurrent tasks.
    pub async fn at_once<T, F>(&self, tasks: u32, call: impl Fn(World, u32) -> F) -> Vec<Result<T>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let mut running = JoinSet::new();
        for task in 0..tasks {
            running.spawn(call(self.clone(), task));
        }
        running.join_all().await
    }
}

/// Consecutive states from 0, each left by any hit. The last one has no next state.
pub fn states(count: i8) -> emberkeep_games::reactors::PerState<emberkeep_schema::Array<Event>> {
    let event = |next| Event { next, ..Event::default() };
    (0..count)
        .map(|state| (state, if state + 1 < count { vec![event(state + 1)] } else { vec![] }.into()))
        .collect()
}

pub fn ids_of(reactors: &[Reactor]) -> Vec<ReactorId> {
    let mut ids: Vec<ReactorId> = reactors.iter().map(|reactor| reactor.id).collect();
    ids.sort();
    ids
}
