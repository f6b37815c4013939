//! Words of the storage document, as they stand in requests.

use emberkeep_games::darkages::history::{AuditEvent, HitType, Severity};
use serde::Deserialize;
use utoipa::ToSchema;

macro_rules! words {
    ($($(#[$attribute:meta])* $name:ident as $of:ident { $($(#[$variant_attribute:meta])* $word:ident),+ })+) => { $(
        $(#[$attribute])*
        #[derive(Deserialize, ToSchema, Clone, Copy)]
        #[serde(rename_all = "snake_case")]
        pub(super) enum $name { $($(#[$variant_attribute])* $word),+ }

        impl From<$name> for $of {
            fn from(word: $name) -> $of {
                match word { $($name::$word => $of::$word),+ }
            }
        }
    )+ };
}

words! {
    /// How a hit landed.
    #[derive(Default)]
    HitTypeWord as HitType { #[default] Normal, Critical, Blocked, Missed }

    /// What an audit entry is about.
    AuditEventWord as AuditEvent { Login, Logout, Kick, Ban, Suspicious }

    /// How serious an audit entry is.
    SeverityWord as Severity { Info, Warning, Critical }
}
