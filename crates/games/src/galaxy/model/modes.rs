//! What the document lists by name.

/// Declares an enum whose variants are texts of the document.
macro_rules! named_values {
    ($($(#[$attribute:meta])* $name:ident, $what:literal { $($(#[$doc:meta])* $variant:ident = $text:literal),* $(,)? })*) => { $(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant),*
        }

        impl $name {
            /// All of them, in the document's order.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            /// What it is, for errors.
            pub const WHAT: &'static str = $what;

            /// The text that is stored.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }

            /// The value of a stored text; `None` if the document does not list it.
            pub fn parse(text: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::galaxy::Error;

            fn from_str(text: &str) -> Result<$name, Self::Err> {
                $name::parse(text).ok_or_else(|| {
                    let expected: Vec<&str> = $name::ALL.iter().map(|value| value.as_str()).collect();
                    crate::galaxy::Error::invalid($what, format!("{text:?}, expected one of {}", expected.join(", ")))
                })
            }
        }
    )* };
}

named_values! {
    /// The class of a ship.
    #[derive(Default)]
    ShipClass, "ship class" {
        /// Small and fast.
        #[default]
        FastFrigate = "fast_frigate",
        /// Carries much.
        CargoHauler = "cargo_hauler",
    }

    /// What a ship's attitude control does.
    #[derive(Default)]
    AttitudeMode, "attitude mode" {
        /// Nothing.
        #[default]
        None = "none",
        /// Holds the present attitude.
        Hold = "hold",
        /// Along the velocity.
        Prograde = "prograde",
        /// Against the velocity.
        Retrograde = "retrograde",
        /// Along the orbit's normal.
        Normal = "normal",
        /// Against the orbit's normal.
        Antinormal = "antinormal",
        /// Away from the body.
        Radial = "radial",
        /// Towards the body.
        Antiradial = "antiradial",
        /// Towards a target.
        Target = "target",
        /// Against the velocity relative to a target.
        TargetRetrograde = "target_retrograde",
    }

    /// What a ship's attitude is directed at.
    TargetType, "attitude target type" {
        /// A celestial body by its name.
        Body = "body",
        /// A ship by its id.
        Ship = "ship",
        /// A station by its id.
        Station = "station",
        /// A Lagrange point by its key.
        Lagrange = "lagrange",
    }

    /// How often an automation rule acts.
    #[derive(Default)]
    RuleMode, "rule mode" {
        /// It is disabled after it acted.
        #[default]
        Once = "once",
        /// Whenever its trigger holds.
        Continuous = "continuous",
    }

    /// The kinds of entities. The texts are those of the system indexes.
    EntityKind, "entity kind" {
        /// Celestial bodies.
        Body = "bodies",
        /// Ships of players.
        Ship = "ships",
        /// Stations.
        Station = "stations",
        /// Jump gates.
        Jumpgate = "jumpgates",
    }
}

impl AttitudeMode {
    /// Whether the mode needs a target's id and type.
    pub fn needs_target(self) -> bool {
        matches!(self, AttitudeMode::Target | AttitudeMode::TargetRetrograde)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_those_of_the_document() {
        assert_eq!((AttitudeMode::ALL.len(), TargetType::ALL.len(), ShipClass::ALL.len()), (10, 4, 2));
        assert_eq!(AttitudeMode::parse("target_retrograde"), Some(AttitudeMode::TargetRetrograde));
        let refused = "sideways".parse::<AttitudeMode>().unwrap_err().to_string();
        assert!(refused.contains("attitude mode") && refused.contains("prograde"), "{refused}");
    }
}
