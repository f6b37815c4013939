//! Schemas of parts of stored records that several games share.
#![expect(dead_code, reason = "only their schemas are used")]

use utoipa::ToSchema;
use uuid::Uuid;

/// The tenant of a record.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct TenantFields {
    /// The tenant's id.
    id: Uuid,
    /// Region of the client.
    #[schema(example = "GMS")]
    region: String,
    /// Major version of the client.
    #[schema(example = 83)]
    major_version: u16,
    /// Minor version of the client.
    #[schema(example = 1)]
    minor_version: u16,
}

/// The field of a record.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct FieldFields {
    /// The world.
    world_id: u8,
    /// The channel of the world.
    #[schema(example = 1)]
    channel_id: u8,
    /// The map.
    #[schema(example = 910_010_000)]
    map_id: u32,
    /// The instance of the map.
    instance: Uuid,
}
