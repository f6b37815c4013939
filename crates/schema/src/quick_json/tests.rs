//! The short way against the long one.

use super::{read, write};
use crate::{Array, record};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

record! {
    /// A hit.
    #[derive(Clone, Debug, PartialEq)]
    struct Hit {
        who: u32 => "characterId",
        damage: i64 => "damage",
    }
}

record! {
    /// One field of each kind.
    #[derive(Clone, Debug, PartialEq)]
    struct Thing {
        id: u64 => "uniqueId",
        name: Option<String> => "name" optional,
        small: i8 => "small" or -1,
        speed: f64 => "speed" default,
        here: bool => "here" default,
        way: Way => "way" or Way::North,
        hits: Array<Hit> => "hits" default,
        bag: BTreeMap<String, i32> => "bag" default,
        pair: (u8, Option<u8>) => "pair" or (0, None),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Way {
    North,
    SouthWest,
}

/// Holds both invariants for one text and one type.
fn agrees<T: serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(json: &[u8]) -> bool {
    let long = serde_json::from_slice::<T>(json);
    match (read::<T>(json), long) {
        (Some(short), Ok(long)) => {
            assert_eq!(short, long, "{}", String::from_utf8_lossy(json));
            true
        }
        (Some(short), Err(error)) => {
            panic!("{short:?} was read, but {error}: {}", String::from_utf8_lossy(json))
        }
        (None, _) => false,
    }
}

fn thing() -> impl Strategy<Value = Thing> {
    let hit = (any::<u32>(), any::<i64>()).prop_map(|(who, damage)| Hit::new(who, damage));
    let hits = prop::collection::vec(hit, 0..6).prop_map(Array);
    let bag = prop::collection::btree_map(".{0,6}", any::<i32>(), 0..4);
    let way = prop_oneof![Just(Way::North), Just(Way::SouthWest)];
    let rest = (way, hits, bag, any::<(u8, Option<u8>)>());
    (any::<u64>(), any::<Option<String>>(), any::<i8>(), any::<f64>(), any::<bool>(), rest).prop_map(
        |(id, name, small, speed, here, (way, hits, bag, pair))| {
            let speed = if speed.is_finite() { speed } else { 0.5 };
            Thing { name, small, speed, here, way, hits, bag, pair, ..Thing::new(id) }
        },
    )
}

#[test]
fn what_we_write_is_read_by_the_short_way() {
    let hit = |damage| Hit::new(1, damage);
    let thing = Thing {
        name: Some("Äpfel, 林檎".into()),
        small: -128,
        speed: -1.25e-7,
        here: true,
        way: Way::SouthWest,
        hits: Array(vec![hit(0), hit(-7)]),
        bag: BTreeMap::from([("VENOM".into(), -3)]),
        pair: (255, None),
        ..Thing::new(1_000_000_001)
    };
    let json = serde_json::to_vec(&thing).unwrap();
    assert_eq!(read::<Thing>(&json), Some(thing));
}

#[test]
fn whatever_is_doubtful_is_left_to_serde_json() {
    let doubtful = [
        r#"{"uniqueId": 1}"#,
        r#" {"uniqueId":1}"#,
        r#"{"uniqueId":1} "#,
        r#"{"uniqueId":1}x"#,
        r#"{"uniqueId":1,}"#,
        r#"{,"uniqueId":1}"#,
        r#"{"uniqueId":1"#,
        r#"{"uniqueId":01}"#,
        r#"{"uniqueId":1000000000000000000}"#,
        r#"{"uniqueId":1,"small":-0}"#,
        r#"{"uniqueId":1,"speed":1.}"#,
        r#"{"uniqueId":1,"speed":1e}"#,
        r#"{"uniqueId":1,"speed":1e999}"#,
        r#"{"uniqueId":1,"speed":.5}"#,
        r#"{"uniqueId":1,"name":"a\n"}"#,
        "{\"uniqueId\":1,\"name\":\"a\n\"}",
        r#"{"uniqueId":1,"unknown":"\n"}"#,
        r#"{"uniqueId":1,"unknown": 2}"#,
        r#"{"uniqueId":1,"hits":[{"characterId":1,"damage":2},]}"#,
        r#"{"uniqueId":1,"here":tru}"#,
        r#"{"uniqueId":1,"here":1}"#,
        r#"{"uniqueId":"1"}"#,
        r#"{"uniqueId":1,"way":{"North":null}}"#,
        r#"{"uniqueId":1,"way":"WEST"}"#,
        r#"{}"#,
        "",
    ];
    for json in doubtful {
        assert_eq!(read::<Thing>(json.as_bytes()), None, "{json}");
    }
    assert_eq!(read::<Thing>(b"{\"uniqueId\":1,\"name\":\"\xff\"}"), None);
    let deep = "[".repeat(200) + &"]".repeat(200);
    assert_eq!(read::<Value>(deep.as_bytes()), None);
}

#[test]
fn external_lists_are_read_as_the_array_says() {
    for list in ["[]", "{}", "null"] {
        let json = format!(r#"{{"uniqueId":1,"hits":{list}}}"#);
        assert!(agrees::<Thing>(json.as_bytes()), "{json}");
    }
    assert!(!agrees::<Thing>(br#"{"uniqueId":1,"hits":{"1":2}}"#));
}

#[test]
fn fields_of_others_are_read_and_written_as_they_stand() {
    let json = br#"{"uniqueId":1,"small":-1,"speed":0.5,"here":false,"way":"NORTH","hits":[],"bag":{},"pair":[0,null],"aggro":{"a":[1.00,"x"]},"b":true}"#;
    let thing: Thing = read(json).unwrap();
    assert_eq!(thing.extra.get("aggro"), Some(r#"{"a":[1.00,"x"]}"#));
    let mut out = Vec::new();
    assert!(write(&thing, &mut out));
    assert_eq!(out, json);
}

/// Records are read from other sources than text, too.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Either {
    Number(u8),
    Thing(Box<Thing>),
}

#[test]
fn a_record_is_read_from_a_tree_and_within_an_untagged_enum() {
    let json = r#"{"hits":[{"damage":3,"characterId":4}],"uniqueId":7}"#;
    let thing: Thing = read(json.as_bytes()).unwrap();
    let tree: Value = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::from_value::<Thing>(tree).unwrap(), thing);
    assert_eq!(read::<Either>(json.as_bytes()), Some(Either::Thing(Box::new(thing))));
    assert!(agrees::<Either>(json.as_bytes()) && agrees::<Either>(b"5"));
}

#[derive(Serialize)]
enum Rare {
    New(u8),
    Tuple(u8, u8),
    Struct { a: u8 },
}

#[test]
fn what_the_writer_does_not_know_is_left_to_serde_json() {
    let mut out = b"before".to_vec();
    assert!(!write(&[Rare::New(1)], &mut out));
    assert!(!write(&[Rare::Tuple(1, 2)], &mut out));
    assert!(!write(&(1, Rare::Struct { a: 1 }), &mut out));
    assert!(!write(&BTreeMap::from([(1, 2)]), &mut out));
    assert!(!write(&BTreeMap::from([(Some("a"), 2u128)]), &mut out));
    assert_eq!(out, b"before");
}

/// JSON-like texts, right and wrong.
fn nearly_json() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just(":"),
        Just("\""),
        Just(" "),
        Just("null"),
        Just("true"),
        Just("false"),
        Just("0"),
        Just("-"),
        Just("1"),
        Just("12"),
        Just("."),
        Just("e"),
        Just("+"),
        Just("\\"),
        Just("é"),
        Just("\"uniqueId\":1"),
        Just("\"hits\":["),
        Just("\"name\":\"x\""),
        Just("{\"a\":1}"),
    ];
    prop::collection::vec(word, 0..14).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn both_ways_read_the_same(thing in thing()) {
        let json = serde_json::to_vec(&thing).unwrap();
        agrees::<Thing>(&json);
        agrees::<Value>(&json);
        let mut out = b"before".to_vec();
        prop_assert!(write(&thing, &mut out));
        prop_assert_eq!(&out[6..], &json[..]);
    }

    #[test]
    fn both_ways_write_the_same(number: f32, character: char, unit: (), text: String, list: Vec<Option<(i8, String)>>) {
        let value = (number, character, unit, BTreeMap::from([(text.clone(), list)]), (u64::MAX, i64::MIN, text));
        let mut out = Vec::new();
        prop_assert!(write(&value, &mut out));
        prop_assert_eq!(out, serde_json::to_vec(&value).unwrap());
    }

    #[test]
    fn what_is_damaged_is_not_read_by_the_short_way_alone(thing in thing(), at: prop::sample::Index, byte: u8) {
        let mut json = serde_json::to_vec(&thing).unwrap();
        let at = at.index(json.len());
        json[at] = byte;
        agrees::<Thing>(&json);
        agrees::<Value>(&json);
        agrees::<Thing>(&json[..at]);
    }

    #[test]
    fn nonsense_is_not_read_by_the_short_way_alone(json in nearly_json()) {
        agrees::<Value>(json.as_bytes());
        agrees::<Thing>(json.as_bytes());
        agrees::<Vec<Option<i64>>>(json.as_bytes());
        agrees::<BTreeMap<String, f64>>(json.as_bytes());
    }
}
