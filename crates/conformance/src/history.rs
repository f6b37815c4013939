//! The merged history of many clients, checked by replaying it on the model.
//!
//! Clients leave a note in one list, in the same commit as what they did, by a write that reads nothing: the
//! list is the order of the commits, and no validation depends on it. Then everything can be checked:
//! each result is what the model answers at that place; the order respects real time; what left no note
//! (pure reads, refused calls) is right at some place between the calls that had returned before it was made
//! and those made after it returned.

use crate::linearizability::Call;
use crate::model::{Model, Op, Refusal};
use emberkeep_hot::command::Reply;
use std::collections::HashMap;

/// What a client did, and the result that it got.
#[derive(Debug, Clone)]
pub struct Action {
    /// Its note, if it left one.
    pub name: String,
    /// Whether it leaves a note when it is not refused.
    pub noted: bool,
    /// Its operations, in order.
    pub ops: Vec<Op>,
    /// What its reads answered, or that it was refused.
    pub outcome: Result<Vec<Option<Reply>>, Refusal>,
}

/// The keyspace at the end of a history, or what is impossible in it. `order` are the notes as they were
/// found.
pub fn replay(calls: &[Call<Action>], order: &[String]) -> Result<Model, String> {
    let history = History::new(calls, order)?;
    history.respects_time()?;
    let states = history.states()?;
    for call in calls.iter().filter(|call| !history.places.contains_key(&call.op.name[..])) {
        history.fits_somewhere(call, &states)?;
    }
    Ok(states.into_iter().next_back().unwrap_or_default())
}

struct History<'a> {
    /// The calls that left notes, in their order.
    ordered: Vec<&'a Call<Action>>,
    places: HashMap<&'a str, usize>,
}

impl<'a> History<'a> {
    fn new(calls: &'a [Call<Action>], order: &'a [String]) -> Result<History<'a>, String> {
        let by_name: HashMap<&str, &Call<Action>> =
            calls.iter().map(|call| (&call.op.name[..], call)).collect();
        let mut history = History { ordered: Vec::new(), places: HashMap::new() };
        for (place, name) in order.iter().enumerate() {
            let call = by_name.get(&name[..]).ok_or_else(|| format!("{name} was noted and never made"))?;
            if history.places.insert(name, place).is_some() {
                return Err(format!("{name} was made twice"));
            }
            history.ordered.push(call);
        }
        let lost = |call: &&Call<Action>| {
            call.op.noted && call.op.outcome.is_ok() && !history.places.contains_key(&call.op.name[..])
        };
        match calls.iter().find(lost) {
            Some(call) => Err(format!("{} was answered and left no note", call.op.name)),
            None => Ok(history),
        }
    }

    /// A call that had returned before another was made stands before it.
    fn respects_time(&self) -> Result<(), String> {
        let mut latest: Option<&Call<Action>> = None;
        for call in &self.ordered {
            if let Some(before) = latest.filter(|before| call.returned < before.invoked) {
                return Err(format!("{} stands before {}, which had returned", before.op.name, call.op.name));
            }
            if latest.is_none_or(|latest| call.invoked > latest.invoked) {
                latest = Some(call);
            }
        }
        Ok(())
    }

    /// The keyspace before the first note, and after each.
    fn states(&self) -> Result<Vec<Model>, String> {
        let mut states = vec![Model::default()];
        for (place, call) in self.ordered.iter().enumerate() {
            let mut model = states[place].clone();
            let expected = model.transaction(&call.op.ops);
            if expected != call.op.outcome {
                let Action { name, ops, outcome, .. } = &call.op;
                return Err(format!(
                    "place {place}, {name}: {ops:?}\n  model:  {expected:?}\n  result: {outcome:?}"
                ));
            }
            states.push(model);
        }
        Ok(states)
    }

    /// A call without a note changed nothing, so its result must be right in one of the states of its time.
    fn fits_somewhere(&self, call: &Call<Action>, states: &[Model]) -> Result<(), String> {
        let from =
            self.ordered.iter().rposition(|other| other.returned < call.invoked).map_or(0, |at| at + 1);
        let to = self.ordered.iter().position(|other| other.invoked > call.returned);
        let to = to.unwrap_or(self.ordered.len());
        let fits = |state: &Model| state.clone().transaction(&call.op.ops) == call.op.outcome;
        match states[from..=to.max(from)].iter().any(fits) {
            true => Ok(()),
            false => Err(format!("in no state from place {from} to {to}: {:?}", call.op)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::*;
    use emberkeep_hot::command::{Read, Write};
    use std::time::{Duration, Instant};

    fn call(
        name: &str,
        (from, to): (u64, u64),
        ops: &[Op],
        outcome: Result<Vec<Option<Reply>>, Refusal>,
    ) -> Call<Action> {
        // One start for all calls of a test.
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        let at = |ms| *START.get_or_init(Instant::now) + Duration::from_millis(ms);
        let noted = ops.iter().any(|op| matches!(op, Op::Write(..)));
        let op = Action { name: name.into(), noted, ops: ops.to_vec(), outcome };
        Call { invoked: at(from), returned: at(to), op }
    }

    fn put(name: &str, time: (u64, u64), text: &str) -> Call<Action> {
        call(name, time, &[Op::Write(0, set(text))], Ok(vec![]))
    }

    fn saw(name: &str, time: (u64, u64), reply: Reply) -> Call<Action> {
        call(name, time, &[Op::Read(0, Read::Get)], Ok(vec![Some(reply)]))
    }

    fn checked(calls: &[Call<Action>], order: &[&str]) -> Result<(), String> {
        replay(calls, &order.iter().map(|name| name.to_string()).collect::<Vec<_>>()).map(drop)
    }

    #[test]
    fn a_true_history_is_accepted() {
        let refused = call("d", (5, 6), &[Op::Write(0, Write::LPop(1))], Err(Refusal));
        let calls = [put("a", (0, 3), "1"), put("b", (1, 4), "2"), saw("c", (2, 7), blob("1")), refused];
        assert_eq!(checked(&calls, &["a", "b"]), Ok(()));
        assert!(checked(&calls, &["b", "a"]).is_ok(), "they overlap");
    }

    #[test]
    fn lost_doubled_and_made_up_calls_are_found() {
        let calls = [put("a", (0, 1), "1")];
        assert!(checked(&calls, &[]).is_err());
        assert!(checked(&calls, &["a", "a"]).is_err());
        assert!(checked(&calls, &["a", "ghost"]).is_err());
    }

    #[test]
    fn an_order_against_time_is_found() {
        let calls = [put("a", (0, 1), "1"), put("b", (2, 3), "2")];
        assert!(checked(&calls, &["b", "a"]).is_err());
    }

    #[test]
    fn a_stale_read_is_found_with_and_without_a_note() {
        let writes = [put("a", (0, 1), "1"), put("b", (2, 3), "2")];
        let late = saw("c", (4, 5), blob("1"));
        assert!(checked(&[&writes[..], std::slice::from_ref(&late)].concat(), &["a", "b"]).is_err());
        assert!(checked(&[&writes[..], &[late]].concat(), &["a", "b", "c"]).is_err());
        let refused = call("d", (2, 3), &[Op::Write(0, Write::IncrBy(1))], Err(Refusal));
        assert!(checked(&[&writes[..1], &[refused]].concat(), &["a"]).is_err(), "a number can be counted up");
    }
}
