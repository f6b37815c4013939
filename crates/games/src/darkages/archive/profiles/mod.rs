//! Profiles of players, with unique names and e-mail addresses.
//!
//! ```text
//! absent --claim--> pending(token) --profile written--> confirmed --profile has another--> free again
//!                      |  60 s without a profile: another player may claim it
//!                      |  60 s with a profile that has it: the next caller that meets the claim confirms it
//! ```
//! 1. The claim table alone decides who has a name or an address. All changes of claims and profiles are compare and set.
//! 2. A registration claims the name, then the address, writes the profile, and confirms both by their tokens. If a claim
//!    was lost meanwhile, the profile is removed, the claims are released, and the caller gets `Conflict`.
//! 3. A claim belongs to its player while the profile has it. One that no profile has can be taken over after 60 s,
//!    whatever process died in between; so a rename frees the old name even if releasing it failed.
//! 4. Look-ups go through confirmed claims. The indexes of the table are for other programs.

mod ban;
mod change;
mod claim;
mod names;
mod read;
mod registration;
mod update;

pub use ban::Ban;
pub use names::fold;
pub use registration::{NewPlayer, Reservation};
pub use update::{Login, ProfileUpdate};

use crate::darkages::history::{ClaimKind, PlayerProfile};

/// The column of a profile that is claimed.
fn claimed(kind: ClaimKind, profile: &PlayerProfile) -> &str {
    match kind {
        ClaimKind::Username => &profile.username,
        ClaimKind::Email => &profile.email,
    }
}

fn set_claimed(kind: ClaimKind, profile: &mut PlayerProfile, text: &str) {
    match kind {
        ClaimKind::Username => text.clone_into(&mut profile.username),
        ClaimKind::Email => text.clone_into(&mut profile.email),
    }
}
