//! Words that games on one kind of world share: tenants, fields, characters.

use emberkeep_schema::{part, partition, record};
use uuid::Uuid;

partition! {
    /// One customer's worlds. Ids of one tenant mean nothing in another.
    #[derive(Copy)]
    pub struct Tenant(Uuid) as "tenantId";
}

part! {
    /// A player's character. 0 stands for nobody.
    #[derive(Copy, Default)]
    pub struct CharacterId(u32);
}

record! {
    /// The tenant as it stands in a record: who, and which client it serves.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TenantFields {
        /// The tenant's id.
        pub id: Uuid => "id",
        /// Region of the client.
        pub region: String => "region" default,
        /// Major version of the client.
        pub major_version: u16 => "majorVersion" or 0,
        /// Minor version of the client.
        pub minor_version: u16 => "minorVersion" or 0,
    }
}

/// A place in which players meet: one instance of a map in a channel of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Field {
    /// The world.
    pub world: u8,
    /// The channel of the world.
    pub channel: u8,
    /// The map.
    pub map: u32,
    /// The instance of the map; nil where a map has only one.
    pub instance: Uuid,
}
