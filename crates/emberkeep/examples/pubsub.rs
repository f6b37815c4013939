//! Publish and subscribe: a message is sent if its transaction commits, and only then.

use emberkeep::hot::pubsub::Event;
use emberkeep::prelude::*;

partition! {
    /// A zone, whose players chat with each other.
    struct Zone(Name) as "zone";
}
record! {
    /// A line of chat.
    #[derive(Debug, PartialEq)]
    struct Line { from: String => "from", text: String => "text" }
}
family! {
    /// Lines are announced here.
    CHAT = "chat:{zone}" {
        kind: Channel<Json<Line>>, partition: Zone, parts: (), ttl: persistent, owner: "chat"
    }
}
family! {
    /// The newest lines, for players who come later.
    HISTORY = "chat-history:{zone}" {
        kind: List<Json<Line>>, partition: Zone, parts: (), ttl: refresh(86_400_000), owner: "chat"
    }
}

/// Stores the line and announces it; an empty one is refused, and then neither happens.
async fn say(zone: &Scope<Zone>, from: &str, text: &str) -> Result<(), Error> {
    let line = Line::new(from.into(), text.into());
    zone.transact(move |tx| {
        tx.rpush(&HISTORY.key(), &line)?;
        tx.ltrim(&HISTORY.key(), -100, -1)?;
        tx.publish(&CHAT.key(), &line)?;
        if line.text.is_empty() {
            return Err(Error::Invalid { what: "line", problem: "it is empty".into() });
        }
        Ok(())
    })
    .await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let zone = Store::open("memory:").await?.scope(Zone(Name::new("north").expect("a word")));
    let mut chat = zone.subscribe(&CHAT.key()).await?;
    assert!(say(&zone, "ann", "").await.is_err());
    say(&zone, "ann", "hello").await?;
    match chat.next().await.expect("the engine is open") {
        Event::Message { payload, .. } => {
            let line = Json::<Line>::decode(&payload).expect("what we published");
            println!("{} says {:?}", line.from, line.text);
            assert_eq!(line.text, "hello", "the empty line was not announced");
        }
        // Messages are not stored. A subscriber that was too slow reads the state instead.
        Event::Missed { .. } => println!("{} lines are stored", zone.llen(&HISTORY.key()).await?),
    }
    assert_eq!(zone.llen(&HISTORY.key()).await?, 1);
    Ok(())
}
