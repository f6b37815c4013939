//! Messages to gateways, and their connections as members of a player's set.

use crate::galaxy::model::PlayerId;
use emberkeep_schema::{Codec, Name, Part, ValueError};
use serde::{Deserialize, Serialize};

/// What gateways are to do. A message can be lost: what it is about is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum GatewayNotice {
    /// Close all connections of the player, who was deleted.
    PlayerDeleted {
        /// The player.
        player_id: PlayerId,
    },
}

/// A connection: the gateway that has it, and its id there. Stored as `gateway:connection`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Socket {
    /// The gateway.
    pub gateway: Name,
    /// The connection's id at the gateway.
    pub connection: Name,
}

impl Codec for Socket {
    type Value = Socket;
    const TYPE: &'static str = "gateway:connection";

    fn encode(value: &Socket, out: &mut Vec<u8>) -> Result<(), ValueError> {
        value.gateway.write(out);
        out.push(b':');
        value.connection.write(out);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Socket, ValueError> {
        let parse = || {
            let (gateway, connection) = std::str::from_utf8(bytes).ok()?.split_once(':')?;
            Some(Socket { gateway: Name::new(gateway).ok()?, connection: Name::new(connection).ok()? })
        };
        parse().ok_or(ValueError::NotCanonical { expected: Self::TYPE, bytes: bytes.len() })
    }
}
