//! `Array`: a JSON list that survives Lua.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use std::{
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut},
};

/// A list in JSON that reads `{}` and `null` as empty, and is always written as `[…]`.
///
/// Redis' cjson writes an empty Lua table as `{}`, and Go writes a nil slice as `null`: a script or
/// a service that touched the record must not make it unreadable. Otherwise it is its `Vec`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Array<T>(pub Vec<T>);

impl<T: Serialize> Serialize for Array<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Array<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_list(deserializer, Vec::push).map(Array)
    }
}

/// Reads a list as [`Array`] does: `{}` and `null` are empty ones. `push` adds what an item of the JSON
/// becomes, which may be several items or another type.
pub fn read_list<'de, D, I, T>(deserializer: D, push: impl Fn(&mut Vec<T>, I)) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    I: Deserialize<'de>,
{
    deserializer.deserialize_any(ListVisitor { push, items: PhantomData })
}

struct ListVisitor<T, I, P> {
    push: P,
    items: PhantomData<fn(I) -> T>,
}

impl<'de, T, I: Deserialize<'de>, P: Fn(&mut Vec<T>, I)> Visitor<'de> for ListVisitor<T, I, P> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            (self.push)(&mut items, item);
        }
        Ok(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<T>, A::Error> {
        match map.next_key::<IgnoredAny>()? {
            None => Ok(Vec::new()),
            Some(_) => Err(A::Error::custom("invalid type: object with fields, expected a list")),
        }
    }

    fn visit_unit<E>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Array(Vec::new())
    }
}

impl<T> Deref for Array<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(items: Vec<T>) -> Self {
        Array(items)
    }
}

impl<T> FromIterator<T> for Array<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Array(items.into_iter().collect())
    }
}

impl<T> IntoIterator for Array<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Array<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Array<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lua_and_go_leave_of_an_empty_list_is_an_empty_list() {
        for json in ["[]", "{}", "null", " { } "] {
            let list: Array<i32> = serde_json::from_str(json).unwrap();
            assert!(list.is_empty(), "{json}");
            assert_eq!(serde_json::to_string(&list).unwrap(), "[]");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for json in [r#"{"1":2}"#, "3", r#""""#, "[\"x\"]", "false"] {
            assert!(serde_json::from_str::<Array<i32>>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn it_is_used_like_a_vec() {
        let mut list: Array<i32> = [1, 2].into_iter().collect();
        list.push(3);
        list.iter_mut().for_each(|item| *item *= 2);
        assert_eq!(serde_json::to_string(&list).unwrap(), "[2,4,6]");
        assert_eq!((&list).into_iter().sum::<i32>(), 12);
        assert_eq!(list.into_iter().collect::<Vec<_>>(), [2, 4, 6]);
    }
}
