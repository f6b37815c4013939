//! A chunk: some entities of a tick as bytes, with a checksum.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | `EKG1` |
//! | 8, 8 | generation, tick |
//! | 4, 4 | number of the chunk, number of entities |
//! | … | entities: kind (1), id (16, or length (2) and text), system (length (2) and text), numbers (8 each) |
//! | 4 | CRC-32C of everything before |
//!
//! All numbers are little-endian. A ship has its player (16) before its numbers: position, velocity, attitude, angular
//! velocity, fuel, wheel momentum. The other kinds have position and velocity.

use super::world::{BodyState, Entity, ShipState};
use crate::galaxy::model::{
    BodyName, JumpgateId, Motion, PlayerId, Quaternion, ShipId, StationId, SystemId, Vector,
};
use emberkeep_schema::{Codec, Name, ValueError};
use uuid::Uuid;

const MAGIC: &[u8; 4] = b"EKG1";

/// Some entities of a tick.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// The generation of hot state.
    pub generation: i64,
    /// The tick.
    pub tick: i64,
    /// Its number among the chunks of the tick, from 0.
    pub number: i64,
    /// Its entities.
    pub entities: Vec<Entity>,
}

impl Codec for Chunk {
    type Value = Chunk;
    const TYPE: &'static str = "chunk of a tick";

    fn encode(chunk: &Chunk, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let begin = out.len();
        out.reserve(32 + chunk.entities.len() * 200);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&chunk.generation.to_le_bytes());
        out.extend_from_slice(&chunk.tick.to_le_bytes());
        for count in [chunk.number as u32, chunk.entities.len() as u32] {
            out.extend_from_slice(&count.to_le_bytes());
        }
        chunk.entities.iter().for_each(|entity| push_entity(entity, out));
        let checksum = crc32c::crc32c(&out[begin..]);
        out.extend_from_slice(&checksum.to_le_bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Chunk, ValueError> {
        let wrong = ValueError::NotCanonical { expected: Self::TYPE, bytes: bytes.len() };
        read(bytes).ok_or(wrong)
    }
}

fn push_entity(entity: &Entity, out: &mut Vec<u8>) {
    match entity {
        Entity::Body(name, state) => {
            out.push(b'b');
            push_text(&name.0, out);
            push_state(state, out);
        }
        Entity::Jumpgate(id, state) => {
            out.push(b'j');
            out.extend_from_slice(id.0.as_bytes());
            push_state(state, out);
        }
        Entity::Ship(id, ship) => {
            out.push(b's');
            out.extend_from_slice(id.0.as_bytes());
            push_ship(ship, out);
        }
        Entity::Station(id, state) => {
            out.push(b't');
            out.extend_from_slice(id.0.as_bytes());
            push_state(state, out);
        }
    }
}

/// A text of a key has at most 256 bytes.
fn push_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn push_numbers(numbers: impl IntoIterator<Item = f64>, out: &mut Vec<u8>) {
    numbers.into_iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

fn push_state(state: &BodyState, out: &mut Vec<u8>) {
    push_text(&state.system_id.0, out);
    push_numbers(<[f64; 3]>::from(state.position), out);
    push_numbers(<[f64; 3]>::from(state.velocity), out);
}

fn push_ship(ship: &ShipState, out: &mut Vec<u8>) {
    push_text(&ship.system_id.0, out);
    out.extend_from_slice(ship.player_id.0.as_bytes());
    let motion = &ship.motion;
    push_numbers(<[f64; 3]>::from(motion.position), out);
    push_numbers(<[f64; 3]>::from(motion.velocity), out);
    push_numbers(<[f64; 4]>::from(motion.attitude), out);
    push_numbers(<[f64; 3]>::from(motion.angular_velocity), out);
    push_numbers([motion.fuel], out);
    push_numbers(<[f64; 3]>::from(motion.wheel_momentum), out);
}

/// What is left to read of a chunk.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn text(&mut self) -> Option<Name> {
        let length = u16::from_le_bytes(self.array()?);
        Name::new(std::str::from_utf8(self.bytes(usize::from(length))?).ok()?).ok()
    }

    fn id(&mut self) -> Option<Uuid> {
        self.array().map(Uuid::from_bytes)
    }

    fn numbers<const N: usize>(&mut self) -> Option<[f64; N]> {
        let mut numbers = [0.0; N];
        for number in &mut numbers {
            *number = Some(f64::from_le_bytes(self.array()?)).filter(|number| number.is_finite())?;
        }
        Some(numbers)
    }

    fn vector(&mut self) -> Option<Vector> {
        self.numbers::<3>().map(Vector::from)
    }

    fn state(&mut self) -> Option<BodyState> {
        let system_id = SystemId(self.text()?);
        Some(BodyState { system_id, position: self.vector()?, velocity: self.vector()? })
    }

    fn ship(&mut self) -> Option<ShipState> {
        let system_id = SystemId(self.text()?);
        let player_id = PlayerId(self.id()?);
        let (position, velocity) = (self.vector()?, self.vector()?);
        let attitude = Quaternion::from(self.numbers::<4>()?);
        let angular_velocity = self.vector()?;
        let [fuel] = self.numbers::<1>()?;
        let wheel_momentum = self.vector()?;
        let motion = Motion { position, velocity, attitude, angular_velocity, fuel, wheel_momentum };
        Some(ShipState { player_id, system_id, motion })
    }

    fn entity(&mut self) -> Option<Entity> {
        let [kind] = self.array()?;
        Some(match kind {
            b'b' => Entity::Body(BodyName(self.text()?), self.state()?),
            b'j' => Entity::Jumpgate(JumpgateId(self.id()?), self.state()?),
            b's' => Entity::Ship(ShipId(self.id()?), self.ship()?),
            b't' => Entity::Station(StationId(self.id()?), self.state()?),
            _ => return None,
        })
    }
}

fn read(bytes: &[u8]) -> Option<Chunk> {
    let (content, checksum) = bytes.split_last_chunk::<4>()?;
    if crc32c::crc32c(content) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let mut rest = Rest(content);
    if rest.array::<4>()? != *MAGIC {
        return None;
    }
    let (generation, tick) = (i64::from_le_bytes(rest.array()?), i64::from_le_bytes(rest.array()?));
    let (number, count) = (u32::from_le_bytes(rest.array()?), u32::from_le_bytes(rest.array()?));
    let mut entities = Vec::new();
    for _ in 0..count {
        entities.push(rest.entity()?);
    }
    rest.0.is_empty().then_some(Chunk { generation, tick, number: i64::from(number), entities })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chunk(positions: &[f64]) -> Chunk {
        let state = |x: f64| BodyState {
            system_id: SystemId::sol(),
            position: Vector::new(x, -x, 0.5),
            velocity: Vector::new(0.0, x, 1.0),
        };
        let entities = positions.iter().enumerate().map(|(index, x)| {
            let id = Uuid::from_u128(index as u128);
            match index % 4 {
                0 => {
                    let motion =
                        Motion { position: Vector::new(*x, 1.0, 2.0), fuel: x.abs(), ..Motion::default() };
                    let ship = ShipState { player_id: PlayerId(id), system_id: SystemId::sol(), motion };
                    Entity::Ship(ShipId(id), ship)
                }
                1 => Entity::Body(BodyName(Name::new(format!("body {index}")).unwrap()), state(*x)),
                2 => Entity::Station(StationId(id), state(*x)),
                _ => Entity::Jumpgate(JumpgateId(id), state(*x)),
            }
        });
        Chunk { generation: 3, tick: 1 << 40, number: 7, entities: entities.collect() }
    }

    fn encoded(chunk: &Chunk) -> Vec<u8> {
        let mut out = b"before".to_vec();
        Chunk::encode(chunk, &mut out).unwrap();
        out.split_off(6)
    }

    proptest! {
        #[test]
        fn chunks_are_read_back(positions in prop::collection::vec(-1e15..1e15f64, 0..20)) {
            let chunk = chunk(&positions);
            prop_assert_eq!(Chunk::decode(&encoded(&chunk)).unwrap(), chunk);
        }

        #[test]
        fn a_changed_byte_and_a_torn_end_are_noticed(at: prop::sample::Index, bit in 0u8..8) {
            let whole = encoded(&chunk(&[1.0, 2.0, 3.0, 4.0]));
            let mut changed = whole.clone();
            let at = at.index(whole.len());
            changed[at] ^= 1 << bit;
            prop_assert!(Chunk::decode(&changed).is_err());
            prop_assert!(Chunk::decode(&whole[..at]).is_err());
        }
    }
}
