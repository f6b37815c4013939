//! `Extra`: the unknown fields of a record.

use serde::{de::MapAccess, ser::SerializeMap};
use serde_json::value::RawValue;
use std::hash;

/// Fields that a [`record!`](crate::record!) does not declare. They are kept byte for byte and written back
/// after the declared ones: an external client or a newer version wrote them and needs them.
#[derive(Clone, Debug, Default)]
pub struct Extra(Vec<(String, Box<RawValue>)>);

impl Extra {
    /// The JSON text of a field; of a name that occurs twice, the last one.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().filter(|(known, _)| *known == name).last().map(|(_, json)| json)
    }

    /// Names and JSON texts, in the order of the source.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, json)| (name.as_str(), json.get()))
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes and returns a field, for a record that converts a former format.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let json = self.get(name)?.to_owned();
        self.0.retain(|(known, _)| known != name);
        Some(json)
    }

    /// Takes the value of the field `name` from `map`.
    #[doc(hidden)]
    pub fn read<'de, A: MapAccess<'de>>(&mut self, name: String, map: &mut A) -> Result<(), A::Error> {
        self.0.push((name, map.next_value()?));
        Ok(())
    }

    /// Writes all fields into `map`.
    #[doc(hidden)]
    pub fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.0.iter().try_for_each(|(name, json)| map.serialize_entry(name, json))
    }
}

impl PartialEq for Extra {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Extra {}

impl hash::Hash for Extra {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.iter().for_each(|field| field.hash(state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extra(fields: &[(&str, &str)]) -> Extra {
        let raw = |json: &str| RawValue::from_string(json.to_owned()).unwrap();
        Extra(fields.iter().map(|(name, json)| ((*name).to_owned(), raw(json))).collect())
    }

    #[test]
    fn fields_are_found_and_compared_by_their_bytes() {
        let one = extra(&[("a", "1.0"), ("b", "[]"), ("a", "1.00")]);
        assert_eq!((one.get("a"), one.get("c")), (Some("1.00"), None));
        assert_eq!((one.len(), one.is_empty()), (3, false));
        let mut rest = one.clone();
        assert_eq!((rest.take("a").as_deref(), rest.take("a"), rest.len()), (Some("1.00"), None, 1));
        assert_eq!(one, one.clone());
        assert_ne!(extra(&[("a", "1.0")]), extra(&[("a", "1.00")]));
    }
}
