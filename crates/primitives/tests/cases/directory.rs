//! Directories of entities that live in one of several partitions.

use super::Realm;
use emberkeep_hot::{Error, Scope, Store};
use emberkeep_primitives::directory::{
    self, AdmitError, Claim, ClaimError, Directory, DirectoryEntry, Placement, Standing, State,
};
use emberkeep_schema::{Json, Key, Number, Text, family, partition};
use uuid::Uuid;

partition! {
    /// An entity.
    #[derive(Copy)]
    pub struct Hero(Uuid) as "hero";
}
family! {
    /// Where a hero is.
    pub ENTRY = "directory-test:{hero}" {
        kind: Text<Json<DirectoryEntry>>, partition: Hero, parts: (), ttl: refresh(60_000), owner: "test"
    }
}
family! {
    /// The highest number of a hero.
    pub ADMITTED = "directory-test:{realm}:{hero}" {
        kind: Text<Number<i64>>, partition: Realm, parts: (hero: Uuid), ttl: persistent, owner: "test"
    }
}
family! {
    /// What a realm has of a hero: the number under which it came.
    pub STATE = "directory-test:{realm}:state:{hero}" {
        kind: Text<Number<i64>>, partition: Realm, parts: (hero: Uuid), ttl: persistent, owner: "test"
    }
}

pub(super) struct Heroes;

impl Directory for Heroes {
    type Entity = Hero;
    type Home = Realm;
    type Entry = ENTRY;
    type Admitted = ADMITTED;

    fn entry() -> Key<ENTRY> {
        ENTRY.key()
    }
    fn admitted(hero: &Hero) -> Key<ADMITTED> {
        ADMITTED.key(hero.0)
    }
}

/// A hero and three realms.
#[derive(Clone)]
pub(super) struct World {
    store: Store,
    hero: Hero,
    pub(super) realms: [Realm; 3],
}

pub(super) type Found = Placement<Realm>;

impl World {
    pub(super) fn new(store: &Store) -> World {
        World { store: store.clone(), hero: Hero(Uuid::new_v4()), realms: [(); 3].map(|()| Realm::new()) }
    }

    pub(super) fn entry(&self) -> Scope<Hero> {
        self.store.scope(self.hero)
    }

    pub(super) async fn claim(&self, claim: Claim<Realm>) -> Result<Found, ClaimError> {
        self.entry().transact(move |tx| directory::claim::<Heroes>(tx, &claim)).await
    }

    async fn claimed(&self, realm: usize) -> Found {
        self.claim(Claim::new(self.realms[realm], "login")).await.unwrap()
    }

    pub(super) async fn depart(&self, number: i64, to: usize) -> Result<Found, ClaimError> {
        let to = self.realms[to];
        self.entry().transact(move |tx| directory::depart::<Heroes>(tx, number, &to)).await
    }

    pub(super) async fn confirm(&self, realm: usize, number: i64) -> Found {
        let (home, entry) = (self.realms[realm], self.entry());
        let confirmed = entry.transact(move |tx| directory::confirm::<Heroes>(tx, &home, number, "login", 7));
        confirmed.await.unwrap()
    }

    async fn admit(&self, realm: Realm, number: i64) -> Result<(), AdmitError> {
        let hero = self.hero;
        let scope = self.store.scope(realm);
        scope.transact(move |tx| directory::admit::<Heroes>(tx, &hero, number)).await
    }

    pub(super) async fn find(&self) -> Option<Found> {
        self.entry().read(directory::find::<Heroes>).await.unwrap()
    }

    async fn standing(&self, realm: usize, number: i64) -> Standing<Realm> {
        Placement::standing(self.find().await.as_ref(), &self.realms[realm], number)
    }
}

pub async fn a_claim_names_what_is_behind(store: Store) {
    let world = World::new(&store);
    assert_eq!(world.find().await, None);
    let first = world.claimed(0).await;
    assert_eq!((first.behind.len(), first.state.clone()), (0, State::Here));
    let again = world.claimed(0).await;
    assert!(again.number > first.number && again.since_ms > first.since_ms);
    assert!(again.behind.is_empty(), "its own state replaces the former one");
    let second = world.claimed(1).await;
    assert_eq!(second.behind, [world.realms[0]]);
    let third = world.claimed(2).await;
    assert_eq!(third.behind, [world.realms[0], world.realms[1]], "none is lost before it is settled");
    let entry = world.entry();
    let settle = |number| entry.transact(move |tx| directory::settle::<Heroes>(tx, number));
    assert_eq!(settle(second.number).await, Ok(false), "that claim is over");
    assert_eq!(settle(third.number).await, Ok(true));
    assert_eq!(world.find().await.unwrap().behind, []);
}

pub async fn a_claim_that_compares_is_refused_if_the_entry_changed(store: Store) {
    let world = World::new(&store);
    let compare = |expected| Claim { expected: Some(expected), ..Claim::new(world.realms[0], "login") };
    let first = world.claim(compare(0)).await.unwrap();
    let (found, expected) = (first.number, 0);
    assert_eq!(world.claim(compare(0)).await, Err(ClaimError::Changed { found, expected }));
    let second = world.claim(compare(first.number)).await.unwrap();
    assert_eq!(
        world.depart(first.number, 1).await,
        Err(ClaimError::Changed { found: second.number, expected: first.number })
    );
    let above = second.number + 5_000_000;
    let raised = world.claim(Claim { above, ..Claim::new(world.realms[0], "login") }).await.unwrap();
    assert!(raised.number > above);
    world.entry().put(&ENTRY.key(), DirectoryEntry::new("x".into(), 1, String::new(), 1)).await.unwrap();
    let corrupt = world.entry().read(directory::find::<Heroes>).await;
    assert!(matches!(corrupt, Err(Error::Corrupt { .. })), "{corrupt:?}");
}

pub async fn a_realm_admits_no_lower_number(store: Store) {
    let world = World::new(&store);
    let [first, second] = [world.claimed(0).await.number, world.claimed(1).await.number];
    world.admit(world.realms[0], second).await.unwrap();
    world.admit(world.realms[0], second).await.unwrap();
    let late = world.admit(world.realms[0], first).await;
    assert_eq!(late, Err(AdmitError::Superseded { number: first, highest: second }));
    world.admit(world.realms[1], first).await.unwrap();
}

pub async fn a_move_is_begun_and_confirmed(store: Store) {
    let world = World::new(&store);
    let here = world.claimed(0).await;
    assert_eq!(world.standing(0, here.number).await, Standing::Current);
    let moving = world.depart(here.number, 1).await.unwrap();
    assert_eq!((moving.home, moving.state), (world.realms[1], State::Moving { from: world.realms[0] }));
    assert_eq!(world.standing(0, here.number).await, Standing::Departing { to: world.realms[1] });
    assert_eq!(world.standing(1, moving.number).await, Standing::Unconfirmed, "it arrived");
    assert_eq!(world.standing(2, here.number).await, Standing::Superseded);
    let confirmed = world.confirm(1, moving.number).await;
    assert_eq!((confirmed.state, confirmed.number), (State::Here, moving.number));
    assert_eq!(world.standing(1, moving.number).await, Standing::Current);
    assert_eq!(world.standing(0, here.number).await, Standing::Superseded);
    // One that stayed takes a higher number.
    let back = world.depart(moving.number, 0).await.unwrap();
    let kept = world.confirm(1, back.number + 1).await;
    assert_eq!((kept.home, kept.state), (world.realms[1], State::Here));
    let late = world.confirm(0, back.number).await;
    assert_eq!((late.home, late.number), (world.realms[1], kept.number), "it has another home by now");
}

pub async fn an_entry_that_was_lost_is_confirmed_again(store: Store) {
    let world = World::new(&store);
    let here = world.claimed(0).await;
    world.entry().del(&ENTRY.key()).await.unwrap();
    assert_eq!(world.standing(0, here.number).await, Standing::Unconfirmed);
    let found = world.confirm(0, here.number).await;
    assert_eq!((found.home, found.number, found.owner.as_str()), (world.realms[0], here.number, "login"));
}

pub async fn what_has_ended_is_nowhere(store: Store) {
    let world = World::new(&store);
    let here = world.claimed(0).await;
    let ends = Claim { ends: true, ..Claim::new(here.home, "logout") };
    let ended = world.claim(ends).await.unwrap();
    assert_eq!((ended.state.clone(), ended.behind.clone()), (State::Ended, vec![world.realms[0]]));
    assert_eq!(world.standing(0, here.number).await, Standing::Superseded);
    assert!(world.depart(ended.number, 1).await.is_err());
    let number = ended.number;
    assert_eq!(world.entry().transact(move |tx| directory::end::<Heroes>(tx, number)).await, Ok(true));
    let next = world.claimed(1).await;
    assert!(next.behind.is_empty() && next.number > number, "{next:?}");
    assert_eq!(world.entry().transact(move |tx| directory::end::<Heroes>(tx, number)).await, Ok(false));
}

/// Claims a hero for realm after realm, ends what is behind, and writes its state.
async fn log_in(world: World, realm: usize) -> Option<i64> {
    let placed = world.claimed(realm).await;
    let (hero, number) = (world.hero, placed.number);
    for behind in &placed.behind {
        let scope = world.store.scope(*behind);
        let ended = scope.transact(move |tx| match directory::admit::<Heroes>(tx, &hero, number) {
            Ok(()) => tx.del(&STATE.key(hero.0)),
            Err(AdmitError::Superseded { .. }) => Ok(()),
            Err(AdmitError::Store(error)) => Err(error),
        });
        ended.await.unwrap();
    }
    let scope = world.store.scope(placed.home);
    let begun = scope.transact(move |tx| {
        directory::admit::<Heroes>(tx, &hero, number)?;
        Ok::<_, AdmitError>(tx.put(&STATE.key(hero.0), &number)?)
    });
    begun.await.is_ok().then_some(number)
}

async fn states(world: &World) -> Vec<i64> {
    let mut found = Vec::new();
    for realm in world.realms {
        found.extend(world.store.scope(realm).get(&STATE.key(world.hero.0)).await.unwrap());
    }
    found
}

pub async fn of_64_claims_one_state_is_left(store: Store) {
    let world = World::new(&store);
    let logins = (0..64).map(|number| tokio::spawn(log_in(world.clone(), number % 3)));
    let logins: Vec<_> = logins.collect();
    let mut begun = Vec::new();
    for login in logins {
        begun.extend(login.await.unwrap());
    }
    let left = states(&world).await;
    assert_eq!(left, [*begun.iter().max().unwrap()], "one state, of the last claim that began");
    assert_eq!(world.find().await.unwrap().number, left[0]);
}

pub async fn claims_of_two_processes_leave_one_state(one: Store, other: Store) {
    let world = World::new(&one);
    let logins = (0..32).map(|number| {
        let store = if number % 2 == 0 { one.clone() } else { other.clone() };
        tokio::spawn(log_in(World { store, ..world.clone() }, number % 3))
    });
    for login in logins.collect::<Vec<_>>() {
        login.await.unwrap();
    }
    assert_eq!(states(&world).await, [world.find().await.unwrap().number]);
}

/// A state that was kept is the entity, also if the departure that it escaped was ended meanwhile.
pub async fn a_kept_state_outlives_the_end_of_its_departure(store: Store) {
    let world = World::new(&store);
    let here = world.claimed(0).await;
    let moving = world.depart(here.number, 1).await.unwrap();
    let number = moving.number;
    assert_eq!(world.entry().transact(move |tx| directory::end::<Heroes>(tx, number)).await, Ok(true));
    assert_eq!(world.confirm(1, number).await.state, State::Ended, "what ended under a number stays ended");
    let kept = world.confirm(0, number + 1).await;
    assert!(kept.is_at(&world.realms[0], number + 1), "{kept:?}");
    assert!(!kept.is_at(&world.realms[1], number + 1) && !kept.is_at(&world.realms[0], number));
    assert_eq!(world.standing(0, number + 1).await, Standing::Current);
}
