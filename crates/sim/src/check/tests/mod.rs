//! The check must fail for each kind of violation: a sound game, one thing changed, and the violation that is found then.

mod messages;

use super::state::{AuxiliaryIndexes, KeyState, StoreState};
use crate::ledger::{Ledger, Quantity};
use crate::plan::Plan;
use emberkeep::games::monsters::{
    DamageEntries, DamageEntry, DropDue, DropTimer, MONSTER, MONSTER_COOLDOWN, MONSTER_COOLDOWNS, Monster,
    MonsterId, SourceType, StatusEffect, Statuses,
};
use emberkeep::games::reactors::{Reactor, Spot};
use emberkeep::games::world::{CharacterId, Field};
use emberkeep::schema::{Array, Codec, Family, Json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// The first id that is counted out.
const SEVEN: u32 = 1_000_000_000;
const EIGHT: u32 = SEVEN + 1;
const NOW: i64 = 1_700_000_000_000;

/// A game and what it left.
struct Game {
    plan: Plan,
    ledger: Ledger,
    state: StoreState,
}

fn field() -> Field {
    Plan::new(1, Some(1), 1).ground(0).field
}

/// Monster seven, of 10 health and mana, which player 1 hit for 4, was healed by 1, and cast for 3.
fn monster() -> Monster {
    let map = field().map;
    let json = format!(
        "{{\"uniqueId\":{SEVEN},\"worldId\":0,\"channelId\":1,\"mapId\":{map},\"monsterId\":1,\"maxHp\":10,\"hp\":7,\
         \"maxMp\":10,\"mp\":7,\"instance\":\"{}\"}}",
        Uuid::nil()
    );
    let mut monster = Json::<Monster>::decode(json.as_bytes()).unwrap();
    monster.damage = DamageEntries(vec![entry(1, 4)]);
    monster.effects = Array(vec![effect()]);
    monster
}

fn entry(character: u32, damage: u32) -> DamageEntry {
    DamageEntry::new(CharacterId(character), damage)
}

/// An effect that has ticked twice.
fn effect() -> StatusEffect {
    StatusEffect {
        source: SourceType::PLAYER_SKILL,
        source_character: CharacterId(1),
        statuses: Statuses(BTreeMap::from([("POISON".to_owned(), 1)])),
        duration_ms: 1_000,
        tick_interval_ms: 100,
        last_tick_ms: NOW + 200,
        created_at_ms: NOW,
        expires_at_ms: NOW + 1_000,
        ..StatusEffect::new(Uuid::from_u128(1))
    }
}

/// A timer that was registered as number 5 and has dropped once.
fn timer() -> DropTimer {
    DropTimer {
        id: Some(MonsterId(SEVEN)),
        weapon_attack: 5,
        max_hp: 10,
        last_drop_at_ms: NOW + 150,
        ..DropTimer::new(1, field().into(), 100)
    }
}

/// A reactor in its second state.
fn reactor() -> Reactor {
    let json = format!(
        "{{\"tenant\":{{\"id\":\"{}\"}},\"id\":{EIGHT},\"worldId\":0,\"channelId\":1,\"mapId\":{},\"instance\":\"{}\",\
         \"classification\":2001,\"state\":1,\"x\":3,\"y\":4}}",
        Uuid::nil(),
        field().map,
        Uuid::nil()
    );
    Json::<Reactor>::decode(json.as_bytes()).unwrap()
}

fn spot() -> Spot {
    reactor().spot()
}

fn key(text: &str, family: Option<&'static emberkeep::schema::Declaration>, deadline_ms: i64) -> KeyState {
    KeyState { text: text.to_owned(), family, deadline_ms }
}

/// The ledger of a game of which monster seven, a corpse of the same id, and a reactor are left.
fn ledger() -> Ledger {
    let mut ledger = Ledger::default();
    for (of, reported) in [
        (Quantity::Lives(SEVEN), 2),
        (Quantity::Deaths(SEVEN), 1),
        (Quantity::Damage(SEVEN, 1), 9),
        (Quantity::Damage(SEVEN, 2), 5),
        (Quantity::Healing(SEVEN), 1),
        (Quantity::Mana(SEVEN), 3),
        (Quantity::Effects(SEVEN), 1),
        (Quantity::Ticks(SEVEN), 2),
        (Quantity::Reactors(field().map, 3), 2),
        (Quantity::States(field().map, 3), 3),
    ] {
        ledger.report(0, of, reported);
    }
    let corpse = Monster {
        hp: 0,
        mp: 10,
        damage: DamageEntries(vec![entry(2, 5), entry(1, 5)]),
        effects: Array::default(),
        ..monster()
    };
    ledger.monster_over(0, &corpse);
    ledger.reactor_over(0, &Reactor { state: 2, ..reactor() });
    let began = DropTimer { last_drop_at_ms: NOW, ..timer() };
    ledger.timer_began(0, MonsterId(SEVEN), &began);
    ledger.dropped(0, &DropDue { id: MonsterId(SEVEN), timer: timer() });
    ledger
}

fn sound() -> Game {
    let auxiliary = AuxiliaryIndexes {
        effects: vec![(0, SEVEN, NOW + 300)],
        drops: vec![(0, SEVEN, NOW + 250)],
        // One that still cools down, and one that ended and was not tidied away yet.
        cooling: vec![(0, SEVEN, 1, NOW + 50), (0, SEVEN, 2, NOW - 50)],
        spots: vec![(0, field(), EIGHT, spot())],
        cooling_spots: vec![(0, field(), Spot { x: 9, ..spot() }, NOW + 50)],
        resting: vec![],
    };
    let state = StoreState {
        monsters: vec![(0, monster())],
        in_fields: vec![(0, field(), SEVEN)],
        counted: vec![(0, i64::from(EIGHT))],
        free: vec![(0, EIGHT)],
        timers: vec![(0, SEVEN, timer())],
        cooling: vec![(0, SEVEN, 1)],
        reactors: vec![(0, reactor())],
        reactors_in_fields: vec![(0, field(), EIGHT)],
        in_all: vec![(None, EIGHT)],
        cooling_spots: vec![(0, field(), Spot { x: 9, ..spot() })],
        auxiliary,
        keys: vec![
            key("a monster", Some(MONSTER::DECLARATION), -1),
            key("a marker", Some(MONSTER_COOLDOWN::DECLARATION), NOW + 50),
            key("an index of markers", Some(MONSTER_COOLDOWNS::DECLARATION), NOW + 1_000),
            key("a receipt", None, NOW + 60_000),
        ],
        alone: true,
        now_ms: NOW,
        ..StoreState::default()
    };
    Game { plan: Plan::new(1, Some(1), 1), ledger: ledger(), state }
}

/// All violations of a game.
fn violations(game: &Game) -> Vec<String> {
    let mut wrong = super::indexes::violations(&game.state);
    wrong.extend(super::balances::violations(&game.plan, &game.ledger, &game.state));
    wrong.extend(super::drops::violations(&game.ledger, &game.state));
    wrong.extend(super::ids::violations(&game.state));
    wrong.extend(super::deadlines::violations(&game.state));
    wrong.extend(super::auxiliary_indexes::violations(&game.state));
    wrong
}

/// The violations after a change to a sound game.
fn violations_after(change: impl FnOnce(&mut Game)) -> Vec<String> {
    let mut game = sound();
    change(&mut game);
    violations(&game)
}

/// There is exactly one violation, and it says this.
#[track_caller]
fn one(said: &str, change: impl FnOnce(&mut Game)) {
    let wrong = violations_after(change);
    assert!(wrong.len() == 1 && wrong[0].contains(said), "expected {said:?}, found {wrong:#?}");
}

/// One of the violations says this.
#[track_caller]
fn among(said: &str, change: impl FnOnce(&mut Game)) {
    let wrong = violations_after(change);
    assert!(wrong.iter().any(|wrong| wrong.contains(said)), "expected {said:?}, found {wrong:#?}");
}
