//! An external client that speaks plain RESP to a server or a Cluster, and follows MOVED.

use super::{Change, External, StoredValue};
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, Score, Write};
use emberkeep_hot::engine::Pending;
use emberkeep_testkit::{Reply, Resp};
use std::collections::HashMap;

/// Redirections that are followed before the client gives up.
const REDIRECTS_MAX: usize = 8;

/// A client that sends plain commands of RESP.
pub struct RespExternal {
    /// The ports of all nodes.
    ports: Vec<u16>,
    connections: HashMap<u16, Resp>,
    /// Where the last command was answered: commands of one case go to one slot.
    last: u16,
}

impl RespExternal {
    /// A client of the servers on these ports, at least one; it first asks the first one.
    pub fn new(ports: &[u16]) -> RespExternal {
        RespExternal { ports: ports.to_vec(), connections: HashMap::new(), last: ports[0] }
    }

    /// Sends a command to the server of its key.
    pub fn call(&mut self, words: &[&[u8]]) -> Reply {
        for _ in 0..REDIRECTS_MAX {
            let port = self.last;
            let connection = self.connections.entry(port).or_insert_with(|| {
                Resp::connect(("127.0.0.1", port)).expect("the server of the suite is up")
            });
            let reply = connection.call(words);
            if !reply.is_error("MOVED") {
                return reply;
            }
            let text = reply.text();
            let port = text.rsplit(':').next().and_then(|port| port.parse().ok());
            self.last = port.unwrap_or(self.ports[0]);
        }
        panic!("redirected more than {REDIRECTS_MAX} times")
    }

    fn write(&mut self, key: &Bytes, write: &Write) -> Reply {
        let words = words(key, write);
        let words: Vec<&[u8]> = words.iter().map(|word| &word[..]).collect();
        self.call(&words)
    }

    fn stored(&mut self, key: &Bytes) -> Option<StoredValue> {
        let kind = self.call(&[b"TYPE", key]).text();
        Some(match kind.as_str() {
            "none" => return None,
            "string" => match self.call(&[b"GET", key]) {
                Reply::Bulk(text) => StoredValue::Text(text.into()),
                _ => return None,
            },
            "hash" => StoredValue::Hash(pairs(&self.call(&[b"HGETALL", key])).into_iter().collect()),
            "set" => StoredValue::Set(list(&self.call(&[b"SMEMBERS", key])).into_iter().collect()),
            "zset" => {
                let scored = pairs(&self.call(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]));
                StoredValue::SortedSet(
                    scored.into_iter().map(|(member, text)| (member, score(&text))).collect(),
                )
            }
            "list" => StoredValue::List(list(&self.call(&[b"LRANGE", key, b"0", b"-1"]))),
            other => panic!("a key of type {other} in the suite"),
        })
    }
}

const EXISTS_THEN_TIME: &[u8] = b"return {redis.call('EXISTS', KEYS[1]), redis.call('TIME')}";

/// What TIME answers, in milliseconds.
fn milliseconds(time: &Reply) -> i64 {
    let number = |i: usize| -> i64 { time.items()[i].text().parse().expect("TIME is two numbers") };
    number(0) * 1_000 + number(1) / 1_000
}

fn list(reply: &Reply) -> Vec<Bytes> {
    let blob = |item: &Reply| match item {
        Reply::Bulk(bytes) => Bytes::from(bytes.clone()),
        other => panic!("expected a string, got {other:?}"),
    };
    reply.items().iter().map(blob).collect()
}

fn pairs(reply: &Reply) -> Vec<(Bytes, Bytes)> {
    list(reply).chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

fn score(text: &[u8]) -> Score {
    let text = std::str::from_utf8(text).expect("a score is ASCII");
    Score::new(text.parse().expect("a score is a number")).expect("a score is not NaN")
}

/// A write in plain words; written here a second time on purpose, so that the engine's own wording is
/// checked.
fn words(key: &Bytes, write: &Write) -> Vec<Vec<u8>> {
    let number = |n: i64| n.to_string().into_bytes();
    let (name, rest): (&str, Vec<Vec<u8>>) = match write {
        Write::Set(value, Expiry::Keep) => ("SET", vec![value.to_vec(), b"KEEPTTL".to_vec()]),
        Write::Set(value, Expiry::Never) => ("SET", vec![value.to_vec()]),
        Write::Set(value, Expiry::At(at)) => ("SET", vec![value.to_vec(), b"PXAT".to_vec(), number(*at)]),
        Write::SetIfGreater(value, expiry) => return greater_words(key, value, *expiry),
        Write::Del => ("DEL", vec![]),
        Write::IncrBy(by) => ("INCRBY", vec![number(*by)]),
        Write::HSet(pairs) => ("HSET", pairs.iter().flat_map(|(f, v)| [f.to_vec(), v.to_vec()]).collect()),
        Write::HIncrBy(field, by) => ("HINCRBY", vec![field.to_vec(), number(*by)]),
        Write::HDel(gone) => ("HDEL", plain(gone)),
        Write::SAdd(new) => ("SADD", plain(new)),
        Write::SRem(gone) => ("SREM", plain(gone)),
        Write::ZAdd(pairs) => {
            let pair = |(m, s): &(Bytes, Score)| [s.get().to_string().into_bytes(), m.to_vec()];
            ("ZADD", pairs.iter().flat_map(pair).collect())
        }
        Write::ZIncrBy(member, by) => ("ZINCRBY", vec![by.get().to_string().into_bytes(), member.to_vec()]),
        Write::ZRem(gone) => ("ZREM", plain(gone)),
        Write::LPush(new) => ("LPUSH", plain(new)),
        Write::RPush(new) => ("RPUSH", plain(new)),
        Write::LPop(count) => ("LPOP", vec![number(*count as i64)]),
        Write::RPop(count) => ("RPOP", vec![number(*count as i64)]),
        Write::LSet(at, value) => ("LSET", vec![number(*at), value.to_vec()]),
        Write::LTrim(start, stop) => ("LTRIM", vec![number(*start), number(*stop)]),
        Write::ExpireAt(at) => ("PEXPIREAT", vec![number(*at)]),
        Write::ExpireAtIfNone(at) => ("PEXPIREAT", vec![number(*at), b"NX".to_vec()]),
        Write::Persist => ("PERSIST", vec![]),
    };
    [name.as_bytes().to_vec(), key.to_vec()].into_iter().chain(rest).collect()
}

/// No plain command sets what is greater. Numbers of the suite's programs are small.
const SET_IF_GREATER: &[u8] = b"
local function number(text)
  local last = type(text) == 'string' and string.match(text, '[^,]*$')
  return last and tostring(tonumber(last)) == last and tonumber(last)
end
local stored = number(redis.pcall('GET', KEYS[1]))
if stored and stored >= number(ARGV[1]) then return 0 end
return redis.call('SET', KEYS[1], unpack(ARGV))";

fn greater_words(key: &Bytes, value: &Bytes, expiry: Expiry) -> Vec<Vec<u8>> {
    let options = match expiry {
        Expiry::Never => vec![],
        Expiry::Keep => vec![b"KEEPTTL".to_vec()],
        Expiry::At(at) => vec![b"PXAT".to_vec(), at.to_string().into_bytes()],
    };
    let head: [&[u8]; 5] = [b"EVAL", SET_IF_GREATER, b"1", key, value];
    head.map(<[u8]>::to_vec).into_iter().chain(options).collect()
}

fn plain(list: &[Bytes]) -> Vec<Vec<u8>> {
    list.iter().map(|x| x.to_vec()).collect()
}

fn accepted(reply: &Reply) -> bool {
    !matches!(reply, Reply::Error(_))
}

impl External for RespExternal {
    fn change<'a>(&'a mut self, key: &'a Bytes, change: Change) -> Pending<'a, bool> {
        Box::pin(async move {
            let reply = match change {
                Change::Write(write) => self.write(key, &write),
                Change::HIncrBy(field, by) => {
                    self.call(&[b"HINCRBY", key, &field, by.to_string().as_bytes()])
                }
                Change::ZIncrBy(member, by) => {
                    self.call(&[b"ZINCRBY", key, by.to_string().as_bytes(), &member])
                }
                Change::ZAddMinusZero(member) => self.call(&[b"ZADD", key, b"-0", &member]),
            };
            accepted(&reply)
        })
    }

    fn change_and_log<'a>(
        &'a mut self,
        key: &'a Bytes,
        write: Write,
        list: &'a Bytes,
        note: Bytes,
    ) -> Pending<'a, bool> {
        Box::pin(async move {
            // A plain command first: MULTI itself is never redirected.
            self.call(&[b"EXISTS", key]);
            self.call(&[b"MULTI"]);
            self.write(key, &write);
            self.call(&[b"RPUSH", list, &note]);
            let replies = self.call(&[b"EXEC"]);
            assert_eq!(replies.items().len(), 2, "{replies:?}");
            accepted(&replies.items()[0])
        })
    }

    fn put_if_absent<'a>(&'a mut self, key: &'a Bytes, value: Bytes) -> Pending<'a, bool> {
        Box::pin(async move { self.call(&[b"SET", key, &value, b"NX"]).is_ok() })
    }

    fn transfer<'a>(&'a mut self, from: &'a Bytes, to: &'a Bytes, amount: i64) -> Pending<'a, ()> {
        Box::pin(async move {
            // A plain command first: MULTI itself is never redirected.
            self.call(&[b"EXISTS", from]);
            let amount = amount.to_string();
            self.call(&[b"MULTI"]);
            self.call(&[b"DECRBY", from, amount.as_bytes()]);
            self.call(&[b"INCRBY", to, amount.as_bytes()]);
            assert_eq!(self.call(&[b"EXEC"]).items().len(), 2);
        })
    }

    fn inspect<'a>(&'a mut self, key: &'a Bytes) -> Pending<'a, Option<(StoredValue, Option<i64>)>> {
        Box::pin(async move {
            let stored = self.stored(key)?;
            let deadline = self.call(&[b"PEXPIRETIME", key]).int();
            Some((stored, (deadline >= 0).then_some(deadline)))
        })
    }

    fn exists_between<'a>(&'a mut self, key: &'a Bytes) -> Pending<'a, (i64, bool, i64)> {
        Box::pin(async move {
            let before = milliseconds(&self.call(&[b"TIME"]));
            // The moment of a script is its start, for every key it looks at; the time is asked after it.
            let reply = self.call(&[b"EVAL", EXISTS_THEN_TIME, b"1", key]);
            let [exists, after] = reply.items() else { panic!("the script answered {reply:?}") };
            (before, exists.int() == 1, milliseconds(after))
        })
    }

    fn now(&mut self) -> Pending<'_, i64> {
        Box::pin(async move { milliseconds(&self.call(&[b"TIME"])) })
    }

    fn listeners<'a>(&'a mut self, channel: &'a Bytes) -> Pending<'a, Option<usize>> {
        Box::pin(async move {
            let mut listening = 0;
            // Each node of a Cluster counts its own listeners only.
            for port in self.ports.clone() {
                self.last = port;
                listening += self.call(&[b"PUBSUB", b"NUMSUB", channel]).items()[1].int() as usize;
            }
            Some(listening)
        })
    }

    fn disturb(&mut self, key: &Bytes, write: Write) -> bool {
        accepted(&self.write(key, &write))
    }
}
