//! Ids of entities, players, systems and rules.

use emberkeep_schema::{Name, Part, Sink, part};
use std::fmt;
use uuid::Uuid;

part! {
    /// A ship.
    #[derive(Copy)]
    pub struct ShipId(Uuid);
}

part! {
    /// A station.
    #[derive(Copy)]
    pub struct StationId(Uuid);
}

part! {
    /// A jump gate.
    #[derive(Copy)]
    pub struct JumpgateId(Uuid);
}

part! {
    /// A player, as the accounts of the game name it.
    #[derive(Copy)]
    pub struct PlayerId(Uuid);
}

part! {
    /// A celestial body by its name, such as `Earth`.
    pub struct BodyName(Name);
}

part! {
    /// A star system, such as `sol`.
    pub struct SystemId(Name);
}

impl SystemId {
    /// The system of entities that name none.
    pub fn sol() -> SystemId {
        SystemId(Name::new("sol").expect("a valid name"))
    }
}

impl Default for SystemId {
    fn default() -> SystemId {
        SystemId::sol()
    }
}

/// The id of an automation rule. It is not `rules`: that key is the index of a ship's rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(Name);

impl RuleId {
    /// The text that no rule may have as its id.
    pub const RESERVED: &'static str = "rules";

    /// The id with this text; `None` if a key cannot contain it, or if it is [`RESERVED`](Self::RESERVED).
    pub fn new(text: &str) -> Option<RuleId> {
        Name::new(text).ok().filter(|name| *name != Self::RESERVED).map(RuleId)
    }

    /// The text as it stands in keys.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl Part for RuleId {
    const TYPE: &'static str = "rule id";

    fn write<S: Sink>(&self, out: &mut S) {
        self.0.write(out);
    }

    fn parse(text: &str) -> Option<RuleId> {
        RuleId::new(text)
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_index_is_no_rule() {
        assert!(RuleId::new("rules").is_none() && RuleId::new("a:b").is_none() && RuleId::new("").is_none());
        assert_eq!(RuleId::new("low-fuel").map(|id| id.to_string()).as_deref(), Some("low-fuel"));
    }
}
