//! `PerState`: a value for each state of a reactor. In JSON an object with the states as names.

use emberkeep_schema::Part;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// A map from state to `T`.
///
/// Reads `null` (Go's empty map) and `[]` (an empty map in some languages) as empty. Names are parsed from
/// text, because our JSON reader accepts no numbers there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PerState<T>(pub BTreeMap<i8, T>);

impl<T> PerState<T> {
    /// The value for a state.
    pub fn get(&self, state: i8) -> Option<&T> {
        self.0.get(&state)
    }
}

impl<T> Default for PerState<T> {
    fn default() -> Self {
        PerState(BTreeMap::new())
    }
}

impl<T> FromIterator<(i8, T)> for PerState<T> {
    fn from_iter<I: IntoIterator<Item = (i8, T)>>(states: I) -> Self {
        PerState(states.into_iter().collect())
    }
}

impl<T: Serialize> Serialize for PerState<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(state, value)| (state.to_string(), value)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PerState<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PerStateVisitor(PhantomData)).map(PerState)
    }
}

struct PerStateVisitor<T>(PhantomData<fn() -> T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for PerStateVisitor<T> {
    type Value = BTreeMap<i8, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of states")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut states = BTreeMap::new();
        while let Some(State(state)) = map.next_key()? {
            states.insert(state, map.next_value()?);
        }
        Ok(states)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        match list.next_element::<IgnoredAny>()? {
            None => Ok(BTreeMap::new()),
            Some(_) => {
                Err(A::Error::custom("invalid type: list with elements, expected an object of states"))
            }
        }
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(BTreeMap::new())
    }
}

/// The name of a state in JSON.
struct State(i8);

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(StateVisitor)
    }
}

struct StateVisitor;

impl Visitor<'_> for StateVisitor {
    type Value = State;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a state from -128 to 127")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<State, E> {
        let state = <i8 as Part>::parse(text).map(State);
        state.ok_or_else(|| E::custom("the name of a state is not a number from -128 to 127"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{Codec, Json};
    use proptest::prelude::*;

    type Map = PerState<i32>;

    fn read(json: &str) -> Option<Map> {
        Json::<Map>::decode(json.as_bytes()).ok()
    }

    #[test]
    fn states_are_names_in_json() {
        let map = read(r#"{"0":5,"-1":7,"10":9}"#).unwrap();
        assert_eq!((map.get(0), map.get(-1), map.get(3)), (Some(&5), Some(&7), None));
        let mut out = Vec::new();
        Json::<Map>::encode(&map, &mut out).unwrap();
        assert_eq!(out, br#"{"-1":7,"0":5,"10":9}"#);
    }

    #[test]
    fn what_others_leave_of_an_empty_map_is_an_empty_map() {
        for json in ["{}", "null", "[]", " { } "] {
            assert_eq!(read(json), Some(Map::default()), "{json}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for json in [r#"{"a":1}"#, r#"{"128":1}"#, r#"{"01":1}"#, "[1]", "3", r#""""#] {
            assert_eq!(read(json), None, "{json}");
        }
    }

    proptest! {
        #[test]
        fn a_map_survives(states: BTreeMap<i8, i32>) {
            let mut out = Vec::new();
            Json::<Map>::encode(&PerState(states.clone()), &mut out).unwrap();
            prop_assert_eq!(Json::<Map>::decode(&out), Ok(PerState(states)));
        }
    }
}
