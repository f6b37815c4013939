//! The clock, automation rules and maneuvers.

use super::*;
use emberkeep_games::galaxy::{
    Error, GameTime, ManeuverChange, NewRule, PAUSED, RULES, RuleChange, RuleId, RuleMode, TICK_RATE,
    TIME_SCALE, TIME_SYNC, Trigger,
};

pub fn rule(id: &str) -> NewRule {
    NewRule {
        rule_id: id.to_owned(),
        name: "Low fuel".into(),
        enabled: true,
        mode: RuleMode::Once,
        priority: 10,
        trigger_json: r#"{"conditions":[{"field":"fuel","op":"<","value":1.50}],"logic":"AND"}"#.into(),
        actions_json: r#"[{"action":"alert"}]"#.into(),
    }
}

pub async fn settings_of_the_clock_have_their_defaults_and_texts(store: Store) {
    let space = Space::of(&store).await;
    let (engine, scope) = (space.state.tick_engine(), space.state.scope());
    scope.del(&PAUSED.key()).await.unwrap();
    scope.del(&TICK_RATE.key()).await.unwrap();
    scope.del(&TIME_SCALE.key()).await.unwrap();
    scope.del(&TIME_SYNC.key()).await.unwrap();
    let clock = space.state.clock().await.unwrap();
    assert_eq!((clock.paused, clock.tick_rate, clock.time_scale, clock.time_sync), (false, 1.0, 1.0, true));
    let change = ClockChange { tick_rate: Some(10.0), time_scale: Some(2.5), ..ClockChange::default() };
    engine.set_clock(change).await.unwrap();
    assert_eq!(scope.get(&TIME_SCALE.key()).await, Ok(Some(2.5)));
    engine.pause().await.unwrap();
    assert_eq!(space.run.begin(STEP).await, Err(Error::Paused));
    engine.resume().await.unwrap();
    let before = space.state.head().await.unwrap().time_us;
    space.step(&mut World::default()).await;
    let after = space.state.clock().await.unwrap();
    assert_eq!((after.tick, after.paused), (1, false));
    assert_eq!(after.time.unwrap().micros() - before, 250_000, "2.5 times 100 ms");
    assert_eq!(after.time_drift, space.state.head().await.unwrap().drift);
}

pub async fn game_time_meets_utc_by_at_most_5_percent(store: Store) {
    let space = Space::of(&store).await;
    let now = store.now().await.unwrap();
    space.run.reset(Some(GameTime::from_millis(now - 3_600_000))).await.unwrap();
    let step = space.run.begin(Duration::from_secs(1)).await.unwrap();
    assert_eq!(step.seconds, 1.05, "an hour behind");
    assert!(step.drift > 3_500.0);
    space.run.reset(Some(GameTime::from_millis(now + 3_600_000))).await.unwrap();
    assert_eq!(space.run.begin(Duration::from_secs(1)).await.unwrap().seconds, 0.95, "an hour ahead");
    let off = ClockChange { time_sync: Some(false), ..ClockChange::default() };
    space.state.tick_engine().set_clock(off).await.unwrap();
    assert_eq!(space.run.begin(Duration::from_secs(1)).await.unwrap().seconds, 1.0);
}

pub async fn rules_are_listed_by_priority(store: Store) {
    let space = Space::of(&store).await;
    let (ship, player) = space.spawn(0.0).await;
    let gateway = space.state.api_gateway();
    gateway.create_rule(player, ship, NewRule { priority: 50, ..rule("b") }).await.unwrap();
    gateway.create_rule(player, ship, rule("c")).await.unwrap();
    gateway.create_rule(player, ship, rule("a")).await.unwrap();
    let again = gateway.create_rule(player, ship, rule("a")).await;
    assert_eq!(again, Err(Error::RuleExists { ship, rule: RuleId::new("a").unwrap() }));
    let listed = space.state.rules(ship).await.unwrap();
    let ids: Vec<&str> = listed.iter().map(|rule| rule.rule_id.as_str()).collect();
    assert_eq!(ids, ["a", "c", "b"]);
    assert_eq!(listed[0].trigger_json, rule("a").trigger_json, "JSON as it was written");
    assert_eq!(Trigger::parse(&listed[0].trigger_json).unwrap().conditions[0].value.get(), "1.50");
    let change = RuleChange { priority: Some(0), mode: Some(RuleMode::Continuous), ..RuleChange::default() };
    gateway.update_rule(player, ship, "b", change).await.unwrap();
    let first = space.state.rules(ship).await.unwrap().remove(0);
    assert_eq!(
        (first.rule_id.as_str(), first.mode, first.name.as_str()),
        ("b", RuleMode::Continuous, "Low fuel")
    );
    assert_eq!(space.state.tick_engine().enable_rule(ship, "b", false).await, Ok(true));
    assert!(!space.state.rules(ship).await.unwrap()[0].enabled);
    assert_eq!(gateway.delete_rule(player, ship, "b").await, Ok(true));
    assert_eq!(gateway.delete_rule(player, ship, "b").await, Ok(false));
    assert_eq!(
        space.state.tick_engine().enable_rule(ship, "b", true).await,
        Ok(false),
        "it does not come back"
    );
    let stale = RuleId::new("stale").unwrap();
    space.change(move |tx| tx.sadd(&RULES.key(ship), &stale)).await;
    assert_eq!(space.state.rules(ship).await.unwrap().len(), 2);
}

pub async fn a_ship_has_one_maneuver(store: Store) {
    let space = Space::of(&store).await;
    let (ship, _) = space.spawn(0.0).await;
    let engine = space.state.tick_engine();
    let text = |text: &str| text.to_owned();
    let begin = |kind: &str| {
        engine.begin_maneuver(ship, text(kind), text(r#"{"a":1.0}"#), text("one"), text("active"))
    };
    begin("orbit").await.unwrap();
    begin("dock").await.unwrap();
    space.step(&mut World::default()).await;
    let change = ManeuverChange { phase: Some("two".into()), ..ManeuverChange::default() };
    engine.update_maneuver(ship, change.clone()).await.unwrap();
    let found = space.state.maneuver(ship).await.unwrap().unwrap();
    assert_eq!((found.kind.as_str(), found.phase.as_str()), ("dock", "two"));
    assert_eq!((found.created_at_tick, found.updated_at_tick), (0, 1));
    assert_eq!(found.params_json, r#"{"a":1.0}"#);
    assert_eq!(engine.end_maneuver(ship).await, Ok(true));
    assert!(matches!(engine.update_maneuver(ship, change).await, Err(Error::NotFound { .. })));
}
