//! Claims as rows, one for each slot of sequences, changed by compare and set.
//!
//! | bytes | content of a row, for each claim; big endian |
//! |---|---|
//! | 1 | 0 = an incarnation of the log, 1 = a spool |
//! | 1, then as many | its name |
//! | 8 | the first sequence |
//! | 8 | the sequence up to which the incarnation was delivered; of a spool the position of the first entry |
//! | 2 | the number of entries |
//! | 4 for each | their marks |

use super::plan::{Claim, Owner, slot};
use crate::contract::Applied;
use crate::error::{Error, Result};
use crate::history::History;
use crate::log_claims::LogClaims;
use emberkeep_schema::Table;

/// The claims of a slot, and the row that they were read from.
pub(super) struct SlotClaims {
    pub(super) claims: Vec<Claim>,
    row: Option<LogClaims>,
}

impl SlotClaims {
    fn of(row: Option<LogClaims>) -> Result<SlotClaims> {
        let claims = row
            .as_ref()
            .map_or_else(|| Ok(Vec::new()), |row| decode(&row.claims).ok_or_else(|| corrupt(row)))?;
        Ok(SlotClaims { claims, row })
    }
}

/// The claims of the slot of a sequence.
pub(super) async fn read(history: &History, log: &str, sequence: u64) -> Result<SlotClaims> {
    SlotClaims::of(history.get(LogClaims::key(log.to_owned(), slot(sequence) as i64)).await?)
}

/// Writes the claims of a slot, if they are still those that were read. `Some` = they are not, but these.
pub(super) async fn replace(
    history: &History,
    log: &str,
    sequence: u64,
    read: &SlotClaims,
    claims: &[Claim],
) -> Result<Option<SlotClaims>> {
    let row = LogClaims { log: log.to_owned(), slot: slot(sequence) as i64, claims: encode(claims) };
    let applied = match &read.row {
        Some(read) => history.replace_if(read.clone(), row).await?,
        None => history.insert_if_absent(row).await?,
    };
    match applied {
        Applied::Yes => Ok(None),
        Applied::No(found) => SlotClaims::of(found).map(Some),
    }
}

fn corrupt(row: &LogClaims) -> Error {
    let reason = format!("the claims of {} in slot {} cannot be read", row.log, row.slot);
    Error::Corrupt { table: LogClaims::DECLARATION.name, column: "claims", reason }
}

fn encode(claims: &[Claim]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for claim in claims {
        let (kind, name, place) = match &claim.owner {
            Owner::Incarnation(name) => (INCARNATION, name, claim.delivered),
            Owner::Spool { source, position } => (SPOOL, source, *position),
        };
        // Both have limits far below 256 bytes.
        bytes.extend([kind, name.len() as u8]);
        bytes.extend(name.as_bytes());
        bytes.extend(claim.first.to_be_bytes());
        bytes.extend(place.to_be_bytes());
        // A claim stays in its slot.
        bytes.extend((claim.marks.len() as u16).to_be_bytes());
        bytes.extend(claim.marks.iter().flat_map(|mark| mark.to_be_bytes()));
    }
    bytes
}

const INCARNATION: u8 = 0;
const SPOOL: u8 = 1;

fn decode(mut bytes: &[u8]) -> Option<Vec<Claim>> {
    let mut claims = Vec::new();
    while !bytes.is_empty() {
        let [kind, name_len] = take::<2>(&mut bytes)?;
        let (name, rest) = bytes.split_at_checked(name_len.into())?;
        bytes = rest;
        let name = String::from_utf8(name.to_vec()).ok()?;
        let first = u64::from_be_bytes(take(&mut bytes)?);
        let place = u64::from_be_bytes(take(&mut bytes)?);
        let count = u16::from_be_bytes(take(&mut bytes)?);
        let marks = (0..count).map(|_| take(&mut bytes).map(u32::from_be_bytes)).collect::<Option<_>>()?;
        let (owner, delivered) = match kind {
            INCARNATION => (Owner::Incarnation(name), place),
            SPOOL => (Owner::Spool { source: name, position: place }, first),
            _ => return None,
        };
        claims.push(Claim { owner, first, marks, delivered });
    }
    Some(claims)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_read_as_written_and_never_from_a_part() {
        let spool = Owner::Spool { source: "s".repeat(36), position: 7 };
        let claims = [
            Claim {
                owner: Owner::Incarnation("1-0000000a".into()),
                first: 3,
                marks: vec![1, u32::MAX],
                delivered: 5,
            },
            Claim { owner: spool, first: 9, marks: vec![4], delivered: 9 },
        ];
        let bytes = encode(&claims);
        assert_eq!(decode(&bytes).as_deref(), Some(&claims[..]));
        let ends = [0, encode(&claims[..1]).len(), bytes.len()];
        for len in (0..bytes.len()).filter(|len| !ends.contains(len)) {
            assert_eq!(decode(&bytes[..len]), None, "{len}");
        }
    }
}
