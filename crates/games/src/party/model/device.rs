//! What a room knows of its devices.

use super::meta::digest;
use super::{DeviceId, PlayerId};
use crate::party::event::Invalidation;
use emberkeep_schema::record;
use subtle::ConstantTimeEq;

record! {
    /// What a room knows of a device that joined it or lost a player in it.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Device {
        /// `sha256:` and the digest of its reconnect token in hex; absent if it never joined.
        pub token_hash: Option<String> => "token_hash" optional,
        /// How it lost its last player without its own request; absent once it has taken or released one
        /// since.
        pub lost: Option<Loss> => "lost" optional,
    }
}

record! {
    /// How a device lost its player.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Loss {
        /// The player that it had.
        pub player_id: PlayerId => "player_id",
        /// Why it lost the player.
        pub reason: Invalidation => "reason",
        /// The time, in milliseconds since 1970.
        pub at: i64 => "at",
    }
}

record! {
    /// The ban of a device.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Ban {
        /// The id to lift the ban with. The id of the device itself is a secret of the device.
        pub ban_id: String => "ban_id",
        /// The device that is refused. Its id is its secret.
        pub device_id: DeviceId => "device_id",
        /// The player that it had.
        pub player_id: PlayerId => "player_id",
        /// The name of the player at that time.
        pub name: String => "name" default,
        /// When it was banned, in milliseconds since 1970.
        pub at: i64 => "at" or 0,
    }
}

impl Device {
    /// Whether a token belongs to the device. Compares in constant time.
    pub(crate) fn has_token(&self, token: &str) -> bool {
        self.token_hash.as_ref().is_some_and(|hash| hash.as_bytes().ct_eq(digest(token).as_bytes()).into())
    }
}
