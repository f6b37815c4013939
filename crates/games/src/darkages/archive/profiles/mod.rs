//! Profiles of players, with unique names and e-mail addresses.
//!
//! ```text
//! absent --claim--> pending(token) --profile written--> confirmed --a later one confirmed--> free again
//!                      |  60 s without a profile: another player may claim it
//!                      |  60 s with a profile that has it: the next caller that meets the claim confirms it
//! ```
//! 1. The claim table alone decides who has a name or an address: the player of the confirmed claim. A name that callers
//!    see is always one of a confirmed claim of its player, so it is unique at every moment, whatever a call that stopped
//!    left in the profile. All changes of claims and profiles are compare and set.
//! 2. A registration claims the name, then the address, writes the profile, and confirms both by their tokens. A player is
//!    registered with both. If a claim was lost meanwhile, the profile is removed, the claims are released, and the caller
//!    gets `Conflict`.
//! 3. A change claims the new text, writes the profile, confirms, and releases the former claim by its token. The claims of
//!    a player have an order; only one that has a later confirmed one beside it is released or taken over. So a player has
//!    a name at every moment, and a rename frees the old one even if releasing it failed.
//! 4. A pending claim that no profile has can be taken over after 60 s, whatever process died in between.
//! 5. Look-ups go through confirmed claims. The indexes of the table are for other programs.

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
