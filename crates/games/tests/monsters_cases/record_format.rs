//! The exact record formats of other services: both sides read each other's records.

use super::go::{GoMonster, GoTimer, written};
use super::*;
use emberkeep_games::monsters::*;
use emberkeep_hot::Store;

const NIL: &str = "00000000-0000-0000-0000-000000000000";

impl World {
    async fn monster_text(&self, id: MonsterId) -> String {
        self.stored(&MONSTER.key(id)).await.expect("the monster is there")
    }

    async fn timer_text(&self, id: MonsterId) -> String {
        self.stored(&DROP_TIMER.key(id)).await.expect("the timer is there")
    }
}

pub async fn a_monsters_record_is_that_of_the_services_beside_us(store: Store) {
    let world = World::new(&store);
    let request = SpawnRequest {
        max_mp: 30,
        x: -120,
        y: 315,
        fh: 12,
        stance: 5,
        team: 1,
        region: "GMS".into(),
        major_version: 83,
        minor_version: 1,
        ..SpawnRequest::new(world.field, 100_100, 77)
    };
    let id = world.monsters.spawn(world.tenant, request).await.unwrap().id;
    let head = format!(
        concat!(
            r#"{{"uniqueId":{id},"tenantId":"{tenant}","tenantRegion":"GMS","tenantMajorVersion":83,"#,
            r#""tenantMinorVersion":1,"worldId":0,"channelId":1,"mapId":100000000,"instance":"{NIL}","maxHp":77,"#,
        ),
        id = id,
        tenant = world.tenant,
        NIL = NIL,
    );
    let fresh = concat!(
        r#""hp":77,"maxMp":30,"mp":30,"monsterId":100100,"controlCharacterId":0,"x":-120,"y":315,"fh":12,"#,
        r#""stance":5,"team":1,"damageEntries":[],"statusEffects":[]}"#
    );
    assert_eq!(world.monster_text(id).await, format!("{head}{fresh}"));

    world.monsters.damage(world.tenant, id, ALICE, 7).await.unwrap();
    world.monsters.control(world.tenant, id, BOB).await.unwrap();
    let request = EffectRequest {
        source: SourceType::GM_COMMAND,
        source_skill: 2_101_005,
        source_skill_level: 3,
        ..EffectRequest::new(BOB, "SEAL", -7, ms(5_000)).every(ms(1_000))
    };
    let effect = world.monsters.apply_effect(world.tenant, id, request).await.unwrap().effect;
    let (began, ends) = (effect.created_at_ms, effect.expires_at_ms);
    let hurt = format!(
        concat!(
            r#""hp":70,"maxMp":30,"mp":30,"monsterId":100100,"controlCharacterId":2,"x":-120,"y":315,"fh":12,"#,
            r#""stance":5,"team":1,"damageEntries":[{{"characterId":1,"damage":7}}],"statusEffects":[{{"effectId":"{}","#,
            r#""sourceType":"GM_COMMAND","sourceCharacterId":2,"sourceSkillId":2101005,"sourceSkillLevel":3,"#,
            r#""statuses":{{"SEAL":-7}},"durationMs":5000,"tickIntervalMs":1000,"lastTickMs":{began},"#,
            r#""createdAtMs":{began},"expiresAtMs":{ends}}}]}}"#,
        ),
        effect.id,
        began = began,
        ends = ends,
    );
    assert_eq!(world.monster_text(id).await, format!("{head}{hurt}"));
}

/// An external service reads our monsters and timers, and its records equal ours.
pub async fn a_service_beside_us_reads_every_record_of_ours(store: Store) {
    const MONSTERS: u32 = 1_000;
    let world = World::new(&store);
    let mut read = 0;
    for n in 0..MONSTERS {
        let id = world.spawn(1 + n).await.id;
        if n % 3 > 0 {
            world.monsters.damage(world.tenant, id, ALICE, 1 + i64::from(n)).await.unwrap();
        } else {
            world.poison(id, n as i32, 60_000, 1_000).await;
            world.register(id, 15_000).await;
            let text = world.timer_text(id).await;
            assert_eq!(GoTimer::read(&text).map(|timer| written(&timer)), Ok(text));
        }
        let text = world.monster_text(id).await;
        match GoMonster::read(&text) {
            Ok(theirs) => assert_eq!((written(&theirs), theirs.unique_id), (text, id.0)),
            Err(error) => panic!("monster {n} of {MONSTERS}: {error}"),
        }
        read += 1;
    }
    assert_eq!(read, MONSTERS);
}

/// Sums above 32 bits stay exact, in entries of 32 bits.
pub async fn damage_above_32_bits_stays_exact_in_entries_of_32_bits(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(u32::MAX).await.id;
    let (mut reported, hits) = (0, rules::DAMAGE_ENTRIES_MAX + 2);
    for _ in 0..hits {
        let hit = world.monsters.damage(world.tenant, id, ALICE, i64::from(u32::MAX - 1)).await.unwrap();
        reported += u64::from(hit.actual);
        world.monsters.heal(world.tenant, id, i64::MAX).await.unwrap();
    }
    let theirs = GoMonster::read(&world.monster_text(id).await).unwrap();
    assert!(theirs.damage_entries.iter().all(|entry| entry.character_id == ALICE.0));
    let sum: u64 = theirs.damage_entries.iter().map(|entry| u64::from(entry.damage)).sum();
    assert_eq!((sum, reported), (reported, hits as u64 * u64::from(u32::MAX - 1)));
    assert_eq!(world.monsters.damage_leader(world.tenant, id).await, Ok(Some((ALICE, reported))));
}

/// A record of a later version with unknown fields, after our hit.
pub async fn a_record_of_a_service_beside_us_survives_our_writes(store: Store) {
    let world = World::new(&store);
    let (id, tenant) = (MonsterId(1_000_000_007), world.tenant);
    let record = |hp: u32, entries: &str| {
        format!(
            concat!(
                r#"{{"uniqueId":{id},"tenantId":"{tenant}","tenantRegion":"GMS","tenantMajorVersion":83,"#,
                r#""tenantMinorVersion":1,"worldId":0,"channelId":1,"mapId":100000000,"instance":"{NIL}","#,
                r#""maxHp":9,"hp":{hp},"maxMp":5,"mp":4,"monsterId":100100,"controlCharacterId":7,"x":-5,"y":10,"#,
                r#""fh":3,"stance":2,"team":-1,"damageEntries":[{entries}],"statusEffects":[{{"effectId":"{NIL}","#,
                r#""sourceType":"A WORD OF THEIRS","sourceCharacterId":1,"sourceSkillId":2111003,"#,
                r#""sourceSkillLevel":30,"statuses":{{"POISON":0}},"durationMs":1,"tickIntervalMs":0,"#,
                r#""lastTickMs":1,"createdAtMs":1,"expiresAtMs":2,"reflectKind":""}}],"#,
                r#""controllerHasAggro":true,"aggro":{{"table":[]}}}}"#,
            ),
            id = id,
            tenant = tenant,
            hp = hp,
            entries = entries,
            NIL = NIL,
        )
    };
    world.external_set(&MONSTER.key(id), &record(9, r#"{"characterId":3,"damage":1,"lastHitMs":5}"#)).await;
    world.monsters.damage(tenant, id, BOB, 2).await.unwrap();
    let after = r#"{"characterId":3,"damage":1,"lastHitMs":5},{"characterId":2,"damage":2}"#;
    assert_eq!(world.monster_text(id).await, record(7, after));
    GoMonster::read(&world.monster_text(id).await).unwrap();
}

/// Records of an earlier version: the tenant as an object, timers without their monster.
fn former(id: MonsterId, tenant: impl ToString) -> (String, String) {
    let tenant = tenant.to_string();
    let monster = format!(
        concat!(
            r#"{{"uniqueId":{id},"tenant":{{"id":"{tenant}","region":"GMS","majorVersion":83,"minorVersion":1}},"#,
            r#""worldId":0,"channelId":1,"mapId":100000000,"instance":"{NIL}","monsterId":100100,"maxHp":9,"hp":9,"#,
            r#""maxMp":0,"mp":0,"controlCharacterId":0,"x":0,"y":0,"fh":0,"stance":0,"team":-1,"#,
            r#""damageEntries":[],"statusEffects":[]}}"#,
        ),
        id = id,
        tenant = tenant,
        NIL = NIL,
    );
    let timer = format!(
        concat!(
            r#"{{"monsterId":100100,"field":{{"worldId":0,"channelId":1,"mapId":100000000,"instance":"{NIL}"}},"#,
            r#""dropPeriodMs":15000,"weaponAttack":30,"maxHp":9,"lastDropAtMs":1700000000000,"lastHitAtMs":0}}"#,
        ),
        NIL = NIL,
    );
    (monster, timer)
}

pub async fn records_of_the_former_shape_are_read_and_written_in_the_present_one(store: Store) {
    let world = World::new(&store);
    for (n, write) in ["a hit", "a drop", "a move", "a sweep"].into_iter().enumerate() {
        let id = MonsterId(1_000_000_100 + n as u32);
        let (monster, timer) = former(id, world.tenant);
        world.external_set(&MONSTER.key(id), &monster).await;
        world.external_set(&DROP_TIMER.key(id), &timer).await;
        let read = world.get(id).await;
        assert_eq!((read.tenant_id, read.region.as_str()), (Some(world.tenant.0), "GMS"), "{write}");
        GoMonster::read(&monster).expect_err("the service cannot read the former shape");
        match write {
            "a hit" => {
                world.monsters.damage(world.tenant, id, ALICE, 1).await.unwrap();
                world.monsters.record_drop_hit(world.tenant, id).await.unwrap();
            }
            "a drop" => {
                world.monsters.heal(world.tenant, id, 1).await.unwrap();
                world.monsters.control(world.tenant, id, ALICE).await.unwrap();
                world.sweep().await;
                world.monsters.due_drops(world.tenant, 10).await.unwrap();
            }
            "a move" => {
                let to = Position::default();
                world.monsters.move_to_field(world.tenant, id, world.field, to).await.unwrap();
            }
            _ => assert!(world.sweep().await.rewritten >= 2),
        }
        let (monster, timer) = (world.monster_text(id).await, world.timer_text(id).await);
        let (read, timer_read) = (GoMonster::read(&monster).unwrap(), GoTimer::read(&timer).unwrap());
        assert_eq!((written(&read), written(&timer_read)), (monster, timer), "{write}");
        assert_eq!((timer_read.unique_id, timer_read.tenant_region.as_str()), (id.0, "GMS"), "{write}");
        assert_eq!((read.tenant_id, read.tenant_major_version), (world.tenant.to_string(), 83), "{write}");
    }
}

/// cjson writes an empty list as `{}`, which other services cannot read. The sweep repairs an idle monster.
pub async fn a_sweep_mends_lists_that_a_script_left_as_objects(store: Store) {
    let world = World::new(&store);
    let (broken, fine) = (world.spawn(10).await.id, world.spawn_laden().await);
    let (before, untouched) = (world.monster_text(broken).await, world.monster_text(fine).await);
    let scripted = before
        .replace(r#""damageEntries":[]"#, r#""damageEntries":{}"#)
        .replace(r#""statusEffects":[]"#, r#""statusEffects":{}"#);
    assert_ne!(scripted, before);
    world.external_set(&MONSTER.key(broken), &scripted).await;
    GoMonster::read(&scripted).expect_err("the service cannot read it");
    assert_eq!(world.get(broken).await.damage.len(), 0, "we can");
    assert!(world.sweep().await.rewritten >= 1);
    assert_eq!(world.monster_text(broken).await, before);
    assert_eq!(world.monster_text(fine).await, untouched);
    let again = world.sweep().await;
    assert_eq!((again.rewritten, world.monster_text(fine).await), (0, untouched));
}

/// A service that goes on counting after a teardown must not assign an id in use.
pub async fn a_teardown_keeps_what_says_which_ids_are_in_use(store: Store) {
    let world = World::new(&store);
    let ids = [world.spawn_id().await, world.spawn_id().await, world.spawn_id().await];
    assert!(world.remove(ids[0]).await);
    world.monsters.teardown(world.tenant).await.unwrap();
    assert_eq!(world.stored(&MONSTER_ID_NEXT.key()).await, Some(ids[2].to_string()));
    let mut free = world.free().await;
    free.sort_unstable();
    assert_eq!(free, ids);
}
