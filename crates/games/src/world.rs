//! Types that monsters and reactors share: tenants, fields, characters.

use emberkeep_schema::{part, partition, record};
use uuid::Uuid;

partition! {
    /// One customer's game worlds. Two tenants may use the same ids.
    #[derive(Copy)]
    pub struct Tenant(Uuid) as "tenantId";
}

part! {
    /// A player's character. 0 means that no character is involved.
    #[derive(Copy, Default)]
    pub struct CharacterId(u32);
}

/// Longest region of a tenant's client, in bytes.
pub const REGION_BYTES_MAX: usize = 32;

/// Why a text that people read is refused: it is too long, or it contains a control character. `None` if it
/// is valid.
pub(crate) fn word_problem(text: &str, bytes_max: usize) -> Option<String> {
    if text.len() > bytes_max {
        return Some(format!("{} bytes, expected at most {bytes_max}", text.len()));
    }
    let control = text.chars().find(|char| char.is_control())?;
    Some(format!("contains {control:?}, expected no control characters"))
}

record! {
    /// The tenant of a record.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[openapi]
    pub struct TenantFields {
        /// The id of the tenant.
        pub id: Uuid => "id",
        /// Region of the client.
        #[openapi(example = "GMS")]
        pub region: String => "region" default,
        /// Major version of the client.
        #[openapi(example = 83)]
        pub major_version: u16 => "majorVersion" or 0,
        /// Minor version of the client.
        #[openapi(example = 1)]
        pub minor_version: u16 => "minorVersion" or 0,
    }
}

/// A place where players meet: one instance of a map in a channel of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Field {
    /// The number of the world.
    pub world: u8,
    /// The channel of the world.
    pub channel: u8,
    /// The number of the map.
    pub map: u32,
    /// The instance of the map; nil if the map has only one.
    pub instance: Uuid,
}

record! {
    /// The field of a record.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[openapi]
    pub struct FieldFields {
        /// The number of the world.
        pub world: u8 => "worldId",
        /// The channel of the world.
        #[openapi(example = 1)]
        pub channel: u8 => "channelId",
        /// The number of the map.
        #[openapi(example = 910_010_000)]
        pub map: u32 => "mapId",
        /// The instance of the map.
        pub instance: Uuid => "instance" default,
    }
}

impl FieldFields {
    /// The four parts without what other services added.
    pub fn field(&self) -> Field {
        Field { world: self.world, channel: self.channel, map: self.map, instance: self.instance }
    }

    /// Replaces the field and preserves unknown fields of the JSON object.
    pub fn set(&mut self, field: Field) {
        let Field { world, channel, map, instance } = field;
        (self.world, self.channel, self.map, self.instance) = (world, channel, map, instance);
    }
}

impl From<Field> for FieldFields {
    fn from(field: Field) -> FieldFields {
        let Field { world, channel, map, instance } = field;
        FieldFields { instance, ..FieldFields::new(world, channel, map) }
    }
}
