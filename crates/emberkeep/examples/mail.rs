//! Mail: gold goes from one guild bank to another, each a partition of its own, and arrives exactly once.

use emberkeep::prelude::*;
use emberkeep::primitives::mail::{
    self, DeadLetter, DeliveryError, Envelope, LetterOf, Mail, MailError, OutboxState,
};

partition! {
    /// A guild. No transaction reaches two of them, so they write letters.
    struct Guild(Name) as "guild";
}
family! {
    /// The gold in a guild's bank.
    BANK = "bank:{guild}" {
        kind: Text<Number<i64>>, partition: Guild, parts: (), ttl: persistent, owner: "banks"
    }
}
family! {
    /// Gold that is on its way to other guilds.
    OUTBOX = "ember:gold:{guild}:out" {
        kind: SortedSet<Envelope<Guild>>, partition: Guild, parts: (), ttl: persistent, owner: "banks"
    }
}
family! {
    /// The last letter that a guild sent, and how many wait.
    STATE = "ember:gold:{guild}:state" {
        kind: Text<Json<OutboxState>>, partition: Guild, parts: (), ttl: persistent, owner: "banks"
    }
}
family! {
    /// The last letter that came from a guild.
    RECEIVED = "ember:gold:{guild}:from:{sender}" {
        kind: Text<Number<i64>>, partition: Guild, parts: (sender: Name), ttl: persistent, owner: "banks"
    }
}
family! {
    /// Letters that a guild refused.
    DEAD = "ember:gold:{guild}:dead" {
        kind: List<Json<DeadLetter>>, partition: Guild, parts: (), ttl: persistent, owner: "banks"
    }
}

/// Gold for another guild: links the keys above.
struct Gold;

impl Mail for Gold {
    type From = Guild;
    type To = Guild;
    type Codec = Number<i64>;
    type Outbox = OUTBOX;
    type State = STATE;
    type Received = RECEIVED;
    type Dead = DEAD;

    fn outbox() -> Key<OUTBOX> {
        OUTBOX.key()
    }

    fn state() -> Key<STATE> {
        STATE.key()
    }

    fn received(from: &Guild) -> Key<RECEIVED> {
        RECEIVED.key(&from.0)
    }

    fn dead() -> Key<DEAD> {
        DEAD.key()
    }
}

/// Takes gold out of a bank and sends it, in one transaction: both or neither. `false` = the bank has too little.
async fn donate(from: &Scope<Guild>, to: &Guild, gold: i64) -> Result<bool, MailError> {
    from.transact_with(to.clone(), move |tx, to| {
        let left = tx.get_or(&BANK.key(), || 0)? - gold;
        if left < 0 {
            return Ok(false);
        }
        tx.put(&BANK.key(), &left)?;
        mail::send::<Gold>(tx, to, &gold)?;
        Ok(true)
    })
    .await
}

/// Puts the gold of a letter into the receiver's bank. It runs in the transaction that marks the letter as received.
fn receive(tx: &mut Tx<'_, Guild>, letter: &LetterOf<Gold>) -> Result<(), DeliveryError> {
    Ok(tx.incr_by(&BANK.key(), letter.body)?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open("memory:").await?;
    let [wolves, ravens] = ["wolves", "ravens"].map(|name| Guild(Name::new(name).expect("a word")));
    let (from, to) = (store.scope(wolves), store.scope(ravens.clone()));
    from.put(&BANK.key(), 100).await?;

    println!("the wolves send 30 gold: {}", donate(&from, &ravens, 30).await?);
    println!("the wolves send 90 gold: {}", donate(&from, &ravens, 90).await?);
    assert_eq!(to.get(&BANK.key()).await?, None, "on its way");

    // Any process may be the courier, and several at once. One that dies half-way leaves nothing twice.
    let delivery = mail::deliver_from::<Gold, _>(&from, receive).await?;
    println!("the courier delivered {} letter", delivery.delivered);
    let again = mail::deliver_from::<Gold, _>(&from, receive).await?;
    assert_eq!(again.delivered, 0, "each letter has its effect once");

    let (left, arrived) = (from.get(&BANK.key()).await?, to.get(&BANK.key()).await?);
    println!("wolves {left:?}, ravens {arrived:?}");
    assert_eq!((left, arrived), (Some(70), Some(30)));
    Ok(())
}
