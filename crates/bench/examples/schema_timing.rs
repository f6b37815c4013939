//! How long the hot paths of this crate take: `cargo run --release -p emberkeep-bench --example schema_timing`.
//!
//! The best of several rounds, because the machine does other things too.

use emberkeep::schema::{
    Array, Codec, Family, Json, KeyLayout, Text, family, part, partition, record, schema,
};
use std::{hint::black_box, time::Instant};
use uuid::Uuid;

partition! {
    /// One customer's worlds.
    #[derive(Copy)]
    pub struct Tenant(Uuid) as "tenantId";
}
part! {
    /// Unique id of one living monster.
    #[derive(Copy)]
    pub struct MonsterId(u32);
}
record! {
    /// Who hit it, and how hard.
    #[derive(Debug)]
    pub struct Damage {
        /// Who.
        pub character: u32 => "characterId",
        /// How hard.
        pub damage: u32 => "damage",
    }
}
record! {
    /// A monster.
    #[derive(Debug)]
    pub struct Monster {
        /// Unique id.
        pub id: MonsterId => "uniqueId",
        /// World.
        pub world: u8 => "worldId",
        /// Channel.
        pub channel: u8 => "channelId",
        /// Map.
        pub map: u32 => "mapId",
        /// Instance of the map.
        pub instance: Uuid => "instance",
        /// Template.
        pub template: u32 => "monsterId",
        /// Full health.
        pub max_hp: u32 => "maxHp",
        /// Health.
        pub hp: u32 => "hp",
        /// Full mana.
        pub max_mp: u32 => "maxMp",
        /// Mana.
        pub mp: u32 => "mp",
        /// Who controls it.
        pub controller: u32 => "controlCharacterId" or 0,
        /// Place.
        pub x: i16 => "x",
        /// Place.
        pub y: i16 => "y",
        /// Foothold.
        pub fh: i16 => "fh",
        /// Stance.
        pub stance: u8 => "stance",
        /// Team.
        pub team: i8 => "team",
        /// Who hit it.
        pub damage: Array<Damage> => "damageEntries",
        /// Its effects.
        pub effects: Array<u32> => "statusEffects",
    }
}
family! {
    /// Monster instance data.
    pub MONSTER = "atlas:monster:{tenantId}:{uniqueId}" {
        kind: Text<Json<Monster>>,
        partition: Tenant,
        parts: (uniqueId: MonsterId),
        ttl: persistent,
        owner: "monsters",
    }
}
family! {
    /// Cooldown marker.
    pub COOLDOWN = "reactor:cd:{tenantId}:{worldId}:{channelId}:{mapId}:{instance}:{classification}:{x}:{y}" {
        kind: Text<Json<u32>>,
        partition: Tenant,
        parts: (worldId: u8, channelId: u8, mapId: u32, instance: Uuid, classification: u32, x: i16, y: i16),
        ttl: given,
        owner: "reactors",
    }
}

const MONSTER_JSON: &str = concat!(
    r#"{"uniqueId":1000000001,"worldId":0,"channelId":3,"mapId":100000000,"#,
    r#""instance":"550e8400-e29b-41d4-a716-446655440000","monsterId":9300018,"maxHp":125000,"hp":99321,"#,
    r#""maxMp":4000,"mp":3990,"controlCharacterId":77,"x":-1204,"y":315,"fh":12,"stance":5,"team":-1,"#,
    r#""damageEntries":[{"characterId":77,"damage":12000},{"characterId":78,"damage":9000},"#,
    r#"{"characterId":79,"damage":3000},{"characterId":80,"damage":1679}],"statusEffects":[],"#,
    r#""tenant":{"id":"550e8400-e29b-41d4-a716-446655440001","region":"GMS","majorVersion":83,"minorVersion":1},"#,
    r#""controllerHasAggro":true}"#,
);

/// Prints the best nanoseconds of one run of `body`.
fn time(what: &str, mut body: impl FnMut()) {
    const ROUNDS: usize = 20;
    const RUNS: u32 = 50_000;
    let best = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..RUNS).for_each(|_| body());
            start.elapsed().as_nanos() as f64 / f64::from(RUNS)
        })
        .fold(f64::INFINITY, f64::min);
    println!("{best:9.1} ns  {what}");
}

fn main() {
    let tenant = Tenant(Uuid::from_u128(0x550e_8400_e29b_41d4_a716_4466_5544_0000));
    let mut out = Vec::with_capacity(1024);
    for layout in [KeyLayout::single(), KeyLayout::cluster()] {
        MONSTER.key(MonsterId(1_000_000_001)).render(&layout, &tenant, &mut out);
        time(&format!("monster key, build + render, {:?}, {} bytes", layout.topology(), out.len()), || {
            out.clear();
            MONSTER.key(black_box(MonsterId(1_000_000_001))).render(&layout, black_box(&tenant), &mut out);
            black_box(&out);
        });
        out.clear();
    }
    let single = KeyLayout::single();
    time("cooldown key with 7 parts, build + render", || {
        out.clear();
        let key = COOLDOWN.key(0, 3, black_box(100_000_000), tenant.0, 2_000_000, -120, 315);
        key.render(&single, black_box(&tenant), &mut out);
        black_box(&out);
    });
    let raw = MONSTER.key(MonsterId(1_000_000_001)).to_text(&single, &tenant);
    time("monster key, parse", || drop(black_box(MONSTER::parse(&single, black_box(raw.as_bytes())))));
    let schema = schema![COOLDOWN, MONSTER].expect("the two families share no key");
    time("monster key, identify", || drop(black_box(schema.identify(&single, black_box(raw.as_bytes())))));

    let json = MONSTER_JSON.as_bytes();
    let monster = Json::<Monster>::decode(json).expect("the JSON above is a monster");
    let bytes = json.len();
    time(&format!("monster record of {bytes} bytes, parse"), || {
        black_box(Json::<Monster>::decode(black_box(json))).expect("a monster");
    });
    time(&format!("monster record of {bytes} bytes, write"), || {
        out.clear();
        Json::<Monster>::encode(black_box(&monster), &mut out).expect("a monster has a JSON form");
    });
}
