//! The rules of the reactors: pure functions on the record.

use super::error::{Error, Result};
use super::limits::{COOLDOWN_MAX, DATA_BYTES_MAX, DELAY_MS_MAX, IDS, ITEM_EVENTS, NAME_BYTES_MAX};
use super::model::{Event, Reactor, ReactorData, ReactorId};
use super::timestamp::Timestamp;
use crate::world::{REGION_BYTES_MAX, word_problem};
use std::time::Duration;

/// What happens to a reactor without a next state. By default the hit that finds none destroys it. Every
/// process on a store should use the same rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitRules {
    /// An item reactor, which has an event of a type in [`ITEM_EVENTS`], is not destroyed. It stays in its
    /// last state, and every further hit triggers it.
    pub item_reactors_stay: bool,
    /// A reactor that enters a state without an event to another of its states is destroyed at once, not by
    /// the next hit.
    pub last_state_ends: bool,
}

/// What a hit does to a reactor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// It advances to another state, or to the same one again.
    Advanced {
        /// The state before the hit.
        from: i8,
    },
    /// It triggers and must be destroyed. It is in the state to which the hit led, if any.
    Triggered,
    /// It triggers and stays in its last state.
    Stayed {
        /// The state before the hit.
        from: i8,
    },
}

/// The first event of the current state that a hit with this skill causes. Skill 0 means no skill.
pub fn caused(reactor: &Reactor, skill: u32) -> Option<&Event> {
    let events = reactor.data.states.get(reactor.state)?;
    events.iter().find(|event| event.skills.is_empty() || event.skills.contains(&skill))
}

/// Applies a hit: the reactor advances to the next state of the caused event. If there is no such event, or
/// if its next state does not exist, the reactor triggers.
pub fn strike(reactor: &mut Reactor, skill: u32, now_ms: i64, rules: HitRules) -> Transition {
    let from = reactor.state;
    let next = caused(reactor, skill).map(|event| event.next);
    if let Some(next) = next.filter(|next| reactor.data.states.get(*next).is_some()) {
        reactor.state = next;
        reactor.update_time = Timestamp::at(now_ms);
        if !rules.last_state_ends || leads_on(&reactor.data, next) {
            return Transition::Advanced { from };
        }
    }
    let stays = rules.item_reactors_stay && is_item_reactor(&reactor.data);
    if stays { Transition::Stayed { from } } else { Transition::Triggered }
}

/// Whether an event of a state leads to an existing state.
fn leads_on(data: &ReactorData, state: i8) -> bool {
    let events = data.states.get(state).into_iter().flatten();
    events.into_iter().any(|event| data.states.get(event.next).is_some())
}

/// Whether one of the events needs an item.
fn is_item_reactor(data: &ReactorData) -> bool {
    data.states.0.values().flatten().any(|event| ITEM_EVENTS.contains(&event.kind))
}

/// How long the spot of a destroyed reactor cools down; `None` means no cooldown.
pub fn cooldown_after(reactor: &Reactor) -> Option<Duration> {
    let delay = Duration::from_millis(u64::from(reactor.delay_ms));
    (!delay.is_zero()).then_some(delay)
}

/// Refuses a change of id, tenant, field or spot. They are fixed when the reactor is created, together with
/// its index entries and the claim on its spot.
pub fn check_change(before: &Reactor, after: &Reactor) -> Result<()> {
    let kept = [
        ("id", before.id == after.id),
        ("tenant", before.tenant.id == after.tenant.id),
        ("field", before.field() == after.field()),
        ("spot", before.spot() == after.spot()),
    ];
    match kept.iter().find(|(_, same)| !same) {
        Some((what, _)) => {
            let problem =
                format!("the {what} of reactor {} would change; destroy it and create another", before.id);
            Err(Error::Invalid { what: "update", problem })
        }
        None => check_texts(before, after),
    }
}

/// Checks only changed texts. Longer texts of other services must not prevent other changes.
fn check_texts(before: &Reactor, after: &Reactor) -> Result<()> {
    if before.name != after.name {
        check_name(&after.name)?;
    }
    if before.tenant.region != after.tenant.region {
        check_region(&after.tenant.region)?;
    }
    if before.data != after.data { check_data(&after.data) } else { Ok(()) }
}

/// Refuses classification 0, which means that none was given.
pub fn check_classification(classification: u32) -> Result<()> {
    if classification > 0 {
        return Ok(());
    }
    Err(Error::Invalid { what: "classification", problem: "0, expected at least 1".into() })
}

/// Refuses a name that is too long or contains control characters.
pub fn check_name(name: &str) -> Result<()> {
    check_word("name", name, NAME_BYTES_MAX)
}

/// The same for the region of the tenant's client.
pub fn check_region(region: &str) -> Result<()> {
    check_word("region", region, REGION_BYTES_MAX)
}

fn check_word(what: &'static str, text: &str, bytes_max: usize) -> Result<()> {
    word_problem(text, bytes_max).map_or(Ok(()), |problem| Err(Error::Invalid { what, problem }))
}

/// Refuses data that is too large for a reply with a page of reactors.
pub fn check_data(data: &ReactorData) -> Result<()> {
    let bytes = serde_json::to_vec(data).map_or(usize::MAX, |json| json.len());
    if bytes <= DATA_BYTES_MAX {
        return Ok(());
    }
    Err(Error::Invalid { what: "data", problem: format!("{bytes} bytes, expected at most {DATA_BYTES_MAX}") })
}

/// Checks a delay and converts it to the stored type.
pub fn check_delay(delay_ms: i64) -> Result<u32> {
    u32::try_from(delay_ms).map_err(|_| Error::Invalid {
        what: "delay",
        problem: format!("{delay_ms} ms, expected 0 to {DELAY_MS_MAX}"),
    })
}

/// Refuses a cooldown that is longer than the longest delay.
pub fn check_cooldown(time: Duration) -> Result<()> {
    if time <= COOLDOWN_MAX {
        return Ok(());
    }
    let problem = format!("{time:?}, expected at most {COOLDOWN_MAX:?}");
    Err(Error::Invalid { what: "cooldown", problem })
}

/// Refuses an id outside of the range of the counter.
pub fn check_id(id: ReactorId) -> Result<()> {
    if IDS.contains(&i64::from(id.0)) {
        return Ok(());
    }
    let problem = format!("{id}, expected {} to {}", IDS.start(), IDS.end());
    Err(Error::Invalid { what: "id", problem })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reactors::per_state::PerState;
    use crate::world::TenantFields;
    use emberkeep_schema::Array;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use uuid::Uuid;

    fn strike(reactor: &mut Reactor, skill: u32, now_ms: i64) -> Transition {
        super::strike(reactor, skill, now_ms, HitRules::default())
    }

    fn event(skills: &[u32], next: i8) -> Event {
        Event { skills: skills.to_vec().into(), next, ..Event::default() }
    }

    fn reactor(states: impl IntoIterator<Item = (i8, Vec<Event>)>) -> Reactor {
        let states = states.into_iter().map(|(state, events)| (state, Array(events))).collect();
        let (tenant, id) = (TenantFields::new(Uuid::nil()), ReactorId(1_000_000_001));
        Reactor {
            name: "box".into(),
            data: ReactorData { states, ..ReactorData::default() },
            x: -3,
            y: 7,
            ..Reactor::new(tenant, id, 0, 1, 100_000_000, Uuid::nil(), 2001)
        }
    }

    #[test]
    fn a_hit_leads_to_the_next_state_and_stamps() {
        let mut reactor = reactor([(0, vec![event(&[], 3)]), (3, vec![])]);
        assert_eq!(strike(&mut reactor, 0, 1_709_251_199_007), Transition::Advanced { from: 0 });
        assert_eq!((reactor.state, reactor.update_time.ms()), (3, Some(1_709_251_199_007)));
    }

    #[test]
    fn the_first_event_that_the_skill_causes_counts() {
        let events = vec![event(&[1001, 1002], 1), event(&[2001], 2), event(&[], 3), event(&[2001], 4)];
        let all = reactor((1..=4).map(|state| (state, vec![])).chain([(0, events)]));
        for (skill, next) in [(1002, 1), (2001, 2), (0, 3), (9999, 3)] {
            let mut reactor = all.clone();
            assert_eq!(strike(&mut reactor, skill, 0), Transition::Advanced { from: 0 }, "skill {skill}");
            assert_eq!(reactor.state, next, "skill {skill}");
        }
    }

    #[test]
    fn without_a_way_on_it_triggers_and_is_not_changed() {
        for (why, states) in [
            ("no states at all", vec![]),
            ("a state that is not listed", vec![(1, vec![event(&[], 1)])]),
            ("a state without events", vec![(0, vec![])]),
            ("no event of this skill", vec![(0, vec![event(&[77], 1)]), (1, vec![])]),
            ("an event that ends it", vec![(0, vec![event(&[], -1)])]),
            ("an event into a state that is not listed", vec![(0, vec![event(&[], 1)])]),
        ] {
            let mut struck = reactor(states);
            let before = struck.clone();
            assert_eq!(strike(&mut struck, 5, 1), Transition::Triggered, "{why}");
            assert_eq!(struck, before, "{why}");
        }
    }

    #[test]
    fn a_last_state_may_end_a_reactor_at_once() {
        let rules = HitRules { last_state_ends: true, ..HitRules::default() };
        for (why, last) in
            [("no events", vec![]), ("events that lead nowhere", vec![event(&[], -1), event(&[], 9)])]
        {
            let mut struck = reactor([(0, vec![event(&[], 1)]), (1, last)]);
            assert_eq!(super::strike(&mut struck, 0, 5, rules), Transition::Triggered, "{why}");
            assert_eq!((struck.state, struck.update_time.ms()), (1, Some(5)), "{why}");
        }
        let mut goes_on = reactor([(0, vec![event(&[], 1)]), (1, vec![event(&[7], 0)])]);
        assert_eq!(super::strike(&mut goes_on, 0, 5, rules), Transition::Advanced { from: 0 });
    }

    #[test]
    fn an_item_reactor_may_stay_in_its_last_state() {
        for kind in ITEM_EVENTS {
            let first = Event { kind, ..event(&[], 1) };
            let mut stays = reactor([(0, vec![first]), (1, vec![])]);
            let rules = HitRules { item_reactors_stay: true, ..HitRules::default() };
            assert_eq!(super::strike(&mut stays, 0, 5, rules), Transition::Advanced { from: 0 });
            assert_eq!(super::strike(&mut stays, 0, 6, rules), Transition::Stayed { from: 1 });
            let (mut both, at_once) = (stays.clone(), HitRules { last_state_ends: true, ..rules });
            both.state = 0;
            assert_eq!(super::strike(&mut both, 0, 7, at_once), Transition::Stayed { from: 0 });
            assert_eq!((both.state, stays.state), (1, 1));
            assert_eq!(strike(&mut stays, 0, 8), Transition::Triggered, "by default it is over");
        }
        let mut plain = reactor([(0, vec![])]);
        let rules = HitRules { item_reactors_stay: true, last_state_ends: true };
        assert_eq!(super::strike(&mut plain, 0, 1, rules), Transition::Triggered);
    }

    #[test]
    fn a_state_may_lead_to_itself() {
        let mut reactor = reactor([(0, vec![event(&[], 0)])]);
        for _ in 0..3 {
            assert_eq!(strike(&mut reactor, 0, 1), Transition::Advanced { from: 0 });
        }
    }

    #[test]
    fn a_delay_of_nothing_cools_nothing_down() {
        let mut reactor = reactor([]);
        assert_eq!(cooldown_after(&reactor), None);
        reactor.delay_ms = u32::MAX;
        assert_eq!(cooldown_after(&reactor), Some(COOLDOWN_MAX));
    }

    #[test]
    fn who_and_where_a_reactor_is_does_not_change() {
        let before = reactor([]);
        type Change = fn(&mut Reactor);
        let changes: [(&str, Change); 7] = [
            ("id", |r| r.id.0 += 1),
            ("tenant", |r| r.tenant.id = Uuid::max()),
            ("field", |r| r.channel += 1),
            ("field", |r| r.instance = Uuid::max()),
            ("spot", |r| r.classification += 1),
            ("spot", |r| r.x += 1),
            ("spot", |r| r.y -= 1),
        ];
        for (what, change) in changes {
            let mut after = before.clone();
            change(&mut after);
            let error = check_change(&before, &after).unwrap_err().to_string();
            assert!(error.starts_with("invalid update: the ") && error.contains(what), "{error}");
        }
        let after = Reactor { state: 9, event_state: 2, name: "other".into(), ..before.clone() };
        assert_eq!(check_change(&before, &after), Ok(()));
    }

    #[test]
    fn bounds_are_reported_with_what_was_given() {
        assert_eq!((check_delay(0), check_delay(DELAY_MS_MAX)), (Ok(0), Ok(u32::MAX)));
        for delay in [-1, i64::MIN, DELAY_MS_MAX + 1, i64::MAX] {
            let error = check_delay(delay).unwrap_err().to_string();
            assert!(error.contains(&delay.to_string()) && error.contains("4294967295"), "{error}");
        }
        for id in [0, 1_000_000_000, 2_000_000_001, u32::MAX] {
            let error = check_id(ReactorId(id)).unwrap_err().to_string();
            assert!(error.contains(&id.to_string()) && error.contains("1000000001 to 2000000000"), "{error}");
        }
        assert!(check_id(ReactorId(1_000_000_001)).is_ok() && check_id(ReactorId(2_000_000_000)).is_ok());
        assert!(check_cooldown(Duration::ZERO).is_ok() && check_cooldown(COOLDOWN_MAX).is_ok());
        assert!(check_cooldown(COOLDOWN_MAX + Duration::from_millis(1)).is_err());
        assert!(check_classification(1).is_ok() && check_classification(0).is_err());
    }

    fn any_states() -> impl Strategy<Value = BTreeMap<i8, Array<Event>>> {
        let event =
            (prop::collection::vec(0..4u32, 0..3), -1..5i8).prop_map(|(skills, next)| event(&skills, next));
        prop::collection::btree_map(-1..5i8, prop::collection::vec(event, 0..3).prop_map(Array), 0..5)
    }

    proptest! {
        /// Against the rule in its own words: look for the event by hand, then for the state.
        #[test]
        fn a_hit_does_what_the_states_say(states in any_states(), state in -1..5i8, skill in 0..4u32) {
            let mut struck = reactor([]);
            (struck.data.states, struck.state) = (PerState(states.clone()), state);
            let before = struck.clone();
            let mut expected = None;
            for event in states.get(&state).into_iter().flatten() {
                if event.skills.is_empty() || event.skills.contains(&skill) {
                    expected = Some(event.next);
                    break;
                }
            }
            let expected = expected.filter(|next| states.contains_key(next));
            match strike(&mut struck, skill, 5) {
                Transition::Advanced { from } => {
                    prop_assert_eq!((from, Some(struck.state)), (state, expected));
                    let changed = Reactor { state: struck.state, update_time: Timestamp::at(5), ..before };
                    prop_assert_eq!(struck, changed);
                }
                Transition::Triggered => {
                    prop_assert_eq!(expected, None);
                    prop_assert_eq!(struck, before);
                }
                Transition::Stayed { .. } => prop_assert!(false, "not by default"),
            }
        }

        /// A walk stays among the listed states, and one that only goes up ends.
        #[test]
        fn a_walk_upwards_ends(
            increments in prop::collection::vec(1..4i8, 1..8),
            skills in prop::collection::vec(0..4u32, 40),
        ) {
            let mut at = 0i8;
            let states = increments.iter().map(|increment| {
                let here = at;
                at += increment;
                (here, vec![event(&[], at)])
            });
            let mut walker = reactor(states.collect::<Vec<_>>());
            let hits = skills.iter().take_while(|skill| strike(&mut walker, **skill, 1) != Transition::Triggered).count();
            prop_assert_eq!(hits, increments.len() - 1);
            prop_assert!(walker.data.states.get(walker.state).is_some());
        }
    }
}
