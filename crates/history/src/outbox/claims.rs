//! Claims as rows: the marks of entries that were, or may have been, delivered under an incarnation.

use super::plan::Claim;
use crate::contract::Applied;
use crate::drain_claims::DrainClaim;
use crate::error::{Error, Result};
use crate::history::History;
use crate::limits::{CLAIM_BLOCK_SEQUENCES, DRAIN_PAGE_ENTRIES, PAGE_ROWS_MAX};

/// Claims entries. `Some` is another claim of this incarnation and first sequence: it was there before.
pub(super) async fn claim(history: &History, log: &str, claim: &Claim) -> Result<Option<Claim>> {
    let row = DrainClaim {
        log: log.to_owned(),
        block: block(claim.first),
        first_sequence: claim.first as i64,
        incarnation: claim.incarnation.clone(),
        marks: claim.marks.iter().flat_map(|mark| mark.to_be_bytes()).collect(),
    };
    Ok(match history.insert_if_absent(row).await? {
        Applied::Yes => None,
        Applied::No(Some(found)) => Some(claim_of(found)),
        // It expired in this moment: the next round claims it.
        Applied::No(None) => return Err(Error::OutcomeUnknown { reason: "a claim expired".into() }),
    })
}

/// All claims that overlap with these sequences, of every incarnation.
pub(super) async fn overlapping(history: &History, log: &str, first: u64, last: u64) -> Result<Vec<Claim>> {
    // One that begins before may reach into them.
    let from = first.saturating_sub(DRAIN_PAGE_ENTRIES as u64 - 1).max(1);
    let mut claims = Vec::new();
    for block in block(from)..=block(last) {
        let rows = DrainClaim::partition(log.to_owned(), block);
        let query = history.range(rows).between(from as i64..=last as i64).rows_max(PAGE_ROWS_MAX);
        let mut after = None;
        loop {
            let page = query.page(after.as_ref()).await?;
            after = page.next.clone();
            claims.extend(page.into_rows()?.into_iter().map(claim_of));
            if after.is_none() {
                break;
            }
        }
    }
    claims.retain(|claim| claim.first + claim.marks.len() as u64 > first);
    Ok(claims)
}

fn claim_of(row: DrainClaim) -> Claim {
    let (marks, _) = row.marks.as_chunks::<4>();
    Claim {
        incarnation: row.incarnation,
        first: row.first_sequence as u64,
        marks: marks.iter().map(|mark| u32::from_be_bytes(*mark)).collect(),
    }
}

/// The block of a sequence. Blocks bound the rows of a partition of the table.
fn block(sequence: u64) -> i64 {
    (sequence / CLAIM_BLOCK_SEQUENCES) as i64
}
