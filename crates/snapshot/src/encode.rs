//! The byte form of keys in snapshots: lengths as 32-bit little-endian numbers. Described in docs/snapshot-format.md.

use bytes::Bytes;
use emberkeep_hot::command::{Content, KeyDump, Kind, Score};

/// The number of a type in snapshots.
pub fn kind_number(kind: Kind) -> u8 {
    match kind {
        Kind::Text => 0,
        Kind::Hash => 1,
        Kind::Set => 2,
        Kind::SortedSet => 3,
        Kind::List => 4,
    }
}

/// The type of that number; `None` = there is none.
pub fn kind_from(number: u8) -> Option<Kind> {
    [Kind::Text, Kind::Hash, Kind::Set, Kind::SortedSet, Kind::List].get(usize::from(number)).copied()
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn push_length(out: &mut Vec<u8>, length: usize) {
    let length = u32::try_from(length).expect("no value of an engine has 4 GiB");
    out.extend_from_slice(&length.to_le_bytes());
}

/// Appends what a key holds, without its type.
pub fn push_content(out: &mut Vec<u8>, content: &Content) {
    match content {
        Content::Text(text) => return push_bytes(out, text),
        content => push_length(out, content.len()),
    }
    match content {
        Content::Text(_) => {}
        Content::Hash(fields) => fields.iter().for_each(|(field, value)| {
            push_bytes(out, field);
            push_bytes(out, value);
        }),
        Content::Set(members) | Content::List(members) => {
            members.iter().for_each(|member| push_bytes(out, member));
        }
        Content::SortedSet(members) => members.iter().for_each(|(member, score)| {
            out.extend_from_slice(&score.get().to_le_bytes());
            push_bytes(out, member);
        }),
    }
}

/// Appends a key: name, type, deadline (-1 = none), content.
pub fn push_key(out: &mut Vec<u8>, key: &KeyDump) {
    push_bytes(out, &key.key);
    out.push(kind_number(key.content.kind()));
    out.extend_from_slice(&key.deadline.unwrap_or(-1).to_le_bytes());
    push_content(out, &key.content);
}

/// How many bytes [`push_key`] appends.
pub(crate) fn stored_bytes(key: &KeyDump) -> usize {
    let members = key.content.len();
    // Lengths of 4 bytes: the key's, the count, one or two for each member; scores are counted with the content.
    let lengths = match &key.content {
        Content::Text(_) => 4,
        Content::Hash(_) => 4 + 8 * members,
        Content::Set(_) | Content::List(_) | Content::SortedSet(_) => 4 + 4 * members,
    };
    key.bytes() + 4 + 1 + 8 + lengths
}

/// Reads what [`push_content`] wrote, and nothing more. The error says what is wrong.
pub fn content_from(kind: Kind, bytes: Bytes) -> Result<Content, &'static str> {
    let mut input = Input(bytes);
    let content = input.content(kind)?;
    if input.0.is_empty() { Ok(content) } else { Err("bytes behind the value of a key") }
}

/// Reads keys until the bytes end.
pub(crate) fn keys_from(bytes: Bytes) -> Result<Vec<KeyDump>, &'static str> {
    let (mut input, mut keys) = (Input(bytes), Vec::new());
    while !input.0.is_empty() {
        let key = input.bytes()?;
        let kind = kind_from(input.array::<1>()?[0]).ok_or("a type that does not exist")?;
        let deadline = i64::from_le_bytes(input.array()?);
        let content = input.content(kind)?;
        keys.push(KeyDump { key, content, deadline: (deadline >= 0).then_some(deadline) });
    }
    Ok(keys)
}

/// Bytes that are left to read.
struct Input(Bytes);

impl Input {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (first, _) = self.0.split_first_chunk::<N>().ok_or("a key that ends early")?;
        let array = *first;
        let _ = self.0.split_to(N);
        Ok(array)
    }

    fn length(&mut self) -> Result<usize, &'static str> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    fn bytes(&mut self) -> Result<Bytes, &'static str> {
        let length = self.length()?;
        if length > self.0.len() { Err("a length beyond the end") } else { Ok(self.0.split_to(length)) }
    }

    fn content(&mut self, kind: Kind) -> Result<Content, &'static str> {
        if kind == Kind::Text {
            return Ok(Content::Text(self.bytes()?));
        }
        let count = self.length()?;
        // Each has at least its length.
        if count == 0 || count > self.0.len() / 4 {
            return Err("a number of members that does not fit");
        }
        match kind {
            Kind::Text | Kind::Hash => (0..count)
                .map(|_| Ok((self.bytes()?, self.bytes()?)))
                .collect::<Result<_, _>>()
                .map(Content::Hash),
            Kind::Set => (0..count).map(|_| self.bytes()).collect::<Result<_, _>>().map(Content::Set),
            Kind::List => (0..count).map(|_| self.bytes()).collect::<Result<_, _>>().map(Content::List),
            Kind::SortedSet => {
                (0..count).map(|_| self.scored()).collect::<Result<_, _>>().map(Content::SortedSet)
            }
        }
    }

    fn scored(&mut self) -> Result<(Bytes, Score), &'static str> {
        let score = Score::new(f64::from_le_bytes(self.array()?)).map_err(|_| "a score that is no number")?;
        Ok((self.bytes()?, score))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_are_read_as_they_were_written_and_every_cut_is_refused() {
        let key = |name: &'static str, content| KeyDump { key: name.into(), content, deadline: Some(5) };
        let keys = [
            key("t", Content::Text("".into())),
            key("h", Content::Hash(vec![("f".into(), "v".into())])),
            key("s", Content::Set(vec!["m".into(), "n".into()])),
            key("z", Content::SortedSet(vec![("m".into(), Score::from_i64(-3))])),
            KeyDump { key: "l".into(), content: Content::List(vec!["e".into()]), deadline: None },
        ];
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for key in &keys {
            let before = bytes.len();
            push_key(&mut bytes, key);
            assert_eq!(bytes.len() - before, stored_bytes(key));
            ends.push(bytes.len());
        }
        assert_eq!(keys_from(bytes.clone().into()).as_deref(), Ok(&keys[..]));
        for cut in (1..bytes.len()).filter(|cut| !ends.contains(cut)) {
            assert!(keys_from(bytes[..cut].to_vec().into()).is_err(), "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = keys_from(bytes.into());
        }
    }
}
