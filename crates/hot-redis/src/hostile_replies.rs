//! No answer of a server makes the parsers panic, or allocate memory for sizes that it only claims.

use crate::cluster::ranges_of;
use crate::limits::SLOTS;
use crate::read::parse_page;
use crate::script::{Answer, reply, text, time_us};
use emberkeep_hot::command::{Read, ScoreBound, ZSlice};
use proptest::prelude::*;
use redis::Value;

/// Numbers at the edges, where sums overflow and sizes explode.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -2..8_i64,
        Just(i64::MAX),
        Just(i64::MIN),
        Just(16_383_i64),
        Just(16_384_i64),
        Just(65_536_i64),
    ]
}

/// Any answer, often of a shape that is nearly right.
fn any_answer() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        number().prop_map(Value::Int),
        number().prop_map(|n| Value::BulkString(n.to_string().into_bytes())),
        "[a-z0-9.:-]{0,8}".prop_map(|text| Value::BulkString(text.into_bytes())),
        proptest::collection::vec(any::<u8>(), 0..8).prop_map(Value::BulkString),
        "[a-z]{0,8}".prop_map(Value::SimpleString),
        Just(Value::Nil),
        Just(Value::Okay),
        any::<f64>().prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..5);
        prop_oneof![
            list.clone().prop_map(Value::Array),
            list.prop_map(Value::Set),
            proptest::collection::vec((inner.clone(), inner), 0..3).prop_map(Value::Map),
        ]
    })
}

fn reads() -> Vec<Read> {
    let (all, every) = (ScoreBound::MIN, ScoreBound::MAX);
    vec![
        Read::Get,
        Read::HGetAll,
        Read::SMembers,
        Read::LRange(0, -1),
        Read::ExpireTime,
        Read::ZScore("m".into()),
        Read::ZRange(ZSlice::Rank(0, -1), false),
        Read::ZRange(ZSlice::Score(all, every, 10), true),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_answer_panics(value in any_answer(), groups in 0..300_usize) {
        let _ = (text(&value), time_us(&value), parse_page(value.clone()));
        for read in reads() {
            let _ = reply(&read, value.clone());
        }
        if let Some(answer) = Answer::parse(value, groups) {
            prop_assert!(answer.time_us.is_none_or(|us| us.checked_mul(2).is_some()));
        }
    }

    #[test]
    fn a_short_answer_is_no_longer_than_the_call(claimed in number(), groups in 0..300_usize) {
        if let Some(answer) = Answer::parse(Value::Int(claimed), groups) {
            prop_assert!(answer.groups.len() <= groups);
        }
    }

    #[test]
    fn only_slots_that_exist_are_taken(
        ranges in proptest::collection::vec((number(), number(), number()), 0..4), other in any_answer(),
    ) {
        let range = |(from, to, port): &(i64, i64, i64)| {
            let primary = Value::Array(vec![Value::BulkString(b"h".to_vec()), Value::Int(*port)]);
            Value::Array(vec![Value::Int(*from), Value::Int(*to), primary])
        };
        let good = |(from, to, port): &(i64, i64, i64)| {
            *from >= 0 && from <= to && *to < SLOTS as i64 && u16::try_from(*port).is_ok()
        };
        let found = ranges_of(&Value::Array(ranges.iter().map(range).collect()));
        prop_assert_eq!(found.is_some(), ranges.iter().all(good));
        for (slots, _, _) in found.into_iter().chain(ranges_of(&other)).flatten() {
            prop_assert!(slots.start() <= slots.end() && *slots.end() < SLOTS);
        }
    }
}
