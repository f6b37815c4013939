//! Directories of entities that live in one of several partitions.

use super::Realm;
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_hot::{Error, Scope, Store};
use emberkeep_primitives::directory::{
    self, AdmitError, Claim, ClaimError, Directory, DirectoryEntry, Placement, Standing, State,
};
use emberkeep_schema::{Json, Key, Number, Text, family, partition};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
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

struct Heroes;

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
struct World {
    store: Store,
    hero: Hero,
    realms: [Realm; 3],
}

type Found = Placement<Realm>;

impl World {
    fn new(store: &Store) -> World {
        World { store: store.clone(), hero: Hero(Uuid::new_v4()), realms: [(); 3].map(|()| Realm::new()) }
    }

    fn entry(&self) -> Scope<Hero> {
        self.store.scope(self.hero)
    }

    async fn claim(&self, claim: Claim<Realm>) -> Result<Found, ClaimError> {
        self.entry().transact(move |tx| directory::claim::<Heroes>(tx, &claim)).await
    }

    async fn claimed(&self, realm: usize) -> Found {
        self.claim(Claim::new(self.realms[realm], "login")).await.unwrap()
    }

    async fn depart(&self, number: i64, to: usize) -> Result<Found, ClaimError> {
        let to = self.realms[to];
        self.entry().transact(move |tx| directory::depart::<Heroes>(tx, number, &to)).await
    }

    async fn confirm(&self, realm: usize, number: i64) -> Found {
        let (home, entry) = (self.realms[realm], self.entry());
        let confirmed = entry.transact(move |tx| directory::confirm::<Heroes>(tx, &home, number, "login", 7));
        confirmed.await.unwrap()
    }

    async fn admit(&self, realm: Realm, number: i64) -> Result<(), AdmitError> {
        let hero = self.hero;
        let scope = self.store.scope(realm);
        scope.transact(move |tx| directory::admit::<Heroes>(tx, &hero, number)).await
    }

    async fn find(&self) -> Option<Found> {
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
    assert_eq!((late.home, late.number), (world.realms[1], kept.number), "it is somewhere else by now");
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

/// What is known of the entity: it must be there, must not, or a process ended in the middle.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Lives,
    Gone,
    Open,
}

/// A departure, or a decision to stay, whose process was paused.
#[derive(Debug, Clone, Copy)]
enum Paused {
    Leave { realm: usize, from: i64, number: i64, to: usize },
    Stay { realm: usize, from: i64, above: i64 },
    Confirm { realm: usize, number: i64 },
    End { number: i64 },
}

/// Realms in memory below a directory: what its callers do, in any order, each of them paused or ended anywhere.
struct Model {
    world: World,
    runtime: tokio::runtime::Handle,
    states: HashMap<usize, i64>,
    admitted: [i64; 3],
    letters: Vec<(usize, i64)>,
    paused: Vec<Paused>,
    fate: Fate,
}

impl Model {
    fn entry(&self) -> Option<Found> {
        self.runtime.block_on(self.world.find())
    }

    fn index(&self, realm: Realm) -> usize {
        self.world.realms.iter().position(|one| *one == realm).unwrap()
    }

    fn admit(&mut self, realm: usize, number: i64) -> Result<(), i64> {
        let highest = self.admitted[realm].max(number);
        self.admitted[realm] = highest;
        if highest > number { Err(highest) } else { Ok(()) }
    }

    /// A login, or a logout. Its process ends after `steps`.
    fn claim(&mut self, realm: usize, ends: bool, steps: u8) {
        let mut above = 0;
        loop {
            let claim = Claim { above, ends, ..Claim::new(self.world.realms[realm], "login") };
            let placed = self.runtime.block_on(self.world.claim(claim)).unwrap();
            self.fate = Fate::Open;
            if steps == 0 {
                return;
            }
            let mut places: Vec<usize> = placed.behind.iter().map(|place| self.index(*place)).collect();
            if !ends {
                places.push(realm);
            }
            let highest = places.into_iter().find_map(|place| {
                let highest = self.admit(place, placed.number).err();
                if highest.is_none() {
                    self.states.remove(&place);
                }
                highest
            });
            if let Some(highest) = highest {
                above = highest;
                continue;
            }
            if !ends {
                self.states.insert(realm, placed.number);
            }
            self.fate = if ends { Fate::Gone } else { Fate::Lives };
            if steps > 1 {
                let (entry, number) = (self.world.entry(), placed.number);
                let settle = entry.transact(move |tx| directory::settle::<Heroes>(tx, number));
                self.runtime.block_on(settle).unwrap();
            }
            return;
        }
    }

    fn depart(&mut self, to: usize) {
        let Some(found) = self.entry().filter(|found| found.state == State::Here) else { return };
        let realm = self.index(found.home);
        if let Ok(moving) = self.runtime.block_on(self.world.depart(found.number, to)) {
            let (from, number) = (found.number, moving.number);
            self.paused.push(Paused::Leave { realm, from, number, to });
        }
    }

    fn go_on(&mut self, paused: Paused) {
        match paused {
            Paused::Leave { realm, from, number, to } => match self.states.get(&realm) {
                Some(state) if *state == from => {
                    if self.admit(realm, number).is_ok() {
                        self.states.remove(&realm);
                        self.letters.push((to, number));
                    }
                }
                Some(_) => {}
                None => {
                    let _ = self.admit(realm, number);
                    self.paused.push(Paused::End { number });
                }
            },
            Paused::Stay { realm, from, above } => {
                if self.states.get(&realm) == Some(&from) {
                    let number = above.max(from) + 1;
                    if self.admit(realm, number).is_ok() {
                        self.states.insert(realm, number);
                        self.paused.push(Paused::Confirm { realm, number });
                    }
                }
            }
            Paused::Confirm { realm, number } => {
                drop(self.runtime.block_on(self.world.confirm(realm, number)))
            }
            Paused::End { number } => {
                let entry = self.world.entry();
                let end = entry.transact(move |tx| directory::end::<Heroes>(tx, number));
                self.runtime.block_on(end).unwrap();
            }
        }
    }

    fn deliver(&mut self) {
        if self.letters.is_empty() {
            return;
        }
        let (to, number) = self.letters.remove(0);
        if self.admit(to, number).is_ok() {
            self.states.insert(to, number);
        }
    }

    fn sweep(&mut self, realm: usize) {
        let Some(number) = self.states.get(&realm).copied() else { return };
        let found = self.entry();
        match Placement::standing(found.as_ref(), &self.world.realms[realm], number) {
            Standing::Superseded => drop(self.states.remove(&realm)),
            Standing::Departing { .. } => {
                let above = found.map_or(0, |found| found.number);
                self.paused.push(Paused::Stay { realm, from: number, above });
            }
            Standing::Current | Standing::Unconfirmed => {
                self.paused.push(Paused::Confirm { realm, number });
            }
        }
    }

    fn act(&mut self, action: u8, realm: usize) {
        match action {
            0..3 => self.claim(realm, false, action),
            3..6 => self.claim(realm, true, action - 3),
            6 | 7 => self.depart(realm),
            8 => self.deliver(),
            9 | 10 => self.sweep(realm),
            // The oldest or the latest goes on.
            _ if self.paused.is_empty() => {}
            11 | 12 => {
                let paused = self.paused.remove(0);
                self.go_on(paused);
            }
            13 => {
                let paused = self.paused.pop().unwrap();
                self.go_on(paused);
            }
            // The process ended.
            14 => drop(self.paused.remove(0)),
            _ => {
                // The session expires.
                if let Some(number) = self.states.remove(&realm) {
                    let is_current =
                        self.entry().is_some_and(|found| found.is_at(&self.world.realms[realm], number));
                    self.fate = if is_current { Fate::Gone } else { self.fate };
                    self.paused.push(Paused::End { number });
                }
            }
        }
    }

    /// Letters arrive and the sweep passes, until nothing changes.
    fn settle_down(&mut self) {
        for _ in 0..4 {
            while !self.letters.is_empty() {
                self.deliver();
            }
            for realm in 0..3 {
                self.sweep(realm);
            }
            while let Some(paused) = self.paused.pop() {
                self.go_on(paused);
            }
        }
    }

    fn current(&self) -> usize {
        let found = self.entry();
        let is_current = |(realm, number): &(&usize, &i64)| {
            let standing = Placement::standing(found.as_ref(), &self.world.realms[**realm], **number);
            standing != Standing::Superseded
        };
        self.states.iter().filter(is_current).count()
    }
}

/// Any sequence of logins, logouts, departures, sweeps and expiries, each paused or ended anywhere, with a clock that jumps:
/// numbers grow, of all states at most one is the entity's, and one that nothing ended is not lost.
pub async fn random_moves_leave_at_most_one_current_state() {
    let clock = ManualClock::at(1_000_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
    let store = Store::new(Arc::new(engine));
    let runtime = tokio::runtime::Handle::current();
    let actions = proptest::collection::vec((0u8..16, 0usize..3, 0i64..4), 1..40);
    tokio::task::spawn_blocking(move || {
        proptest!(ProptestConfig::with_cases(512), |(actions in actions)| {
            let mut model = Model {
                world: World::new(&store), runtime: runtime.clone(), states: HashMap::new(), admitted: [0; 3],
                letters: Vec::new(), paused: Vec::new(), fate: Fate::Gone,
            };
            let mut last = 0;
            for (action, realm, jump) in actions {
                clock.set(1_000_000_000 + jump);
                model.act(action, realm);
                let number = model.entry().map_or(0, |found| found.number);
                prop_assert!(number >= last);
                last = number;
                prop_assert!(model.current() <= 1, "{:?} of {:?}", model.states, model.entry());
            }
            // Who is still paused goes on now.
            model.settle_down();
            let (found, states) = (model.entry(), model.states.clone());
            match model.fate {
                Fate::Lives => prop_assert!(model.current() == 1 && states.len() == 1, "lost: {states:?} of {found:?}"),
                Fate::Gone => prop_assert!(states.is_empty(), "came back: {states:?} of {found:?}"),
                Fate::Open => prop_assert!(states.len() <= 1, "twice: {states:?} of {found:?}"),
            }
        });
    })
    .await
    .unwrap();
}
