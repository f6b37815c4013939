//! Words that games on one kind of world share: tenants, fields, characters.

use emberkeep_schema::{Extra, part, partition, record};
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

record! {
    /// A field as it stands in a record.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct FieldFields {
        /// The world.
        pub world: u8 => "worldId",
        /// The channel of the world.
        pub channel: u8 => "channelId",
        /// The map.
        pub map: u32 => "mapId",
        /// The instance of the map.
        pub instance: Uuid => "instance" default,
    }
}

impl FieldFields {
    /// The field.
    pub fn field(&self) -> Field {
        Field { world: self.world, channel: self.channel, map: self.map, instance: self.instance }
    }

    /// Says another field, and keeps what others wrote beside it.
    pub fn set(&mut self, field: Field) {
        let Field { world, channel, map, instance } = field;
        (self.world, self.channel, self.map, self.instance) = (world, channel, map, instance);
    }
}

impl From<Field> for FieldFields {
    fn from(field: Field) -> FieldFields {
        let Field { world, channel, map, instance } = field;
        FieldFields { world, channel, map, instance, extra: Extra::default() }
    }
}
