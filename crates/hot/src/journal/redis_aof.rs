//! Files that Redis wrote: commands without checksums, in a folder that was copied from a Redis server.
//!
//! A transaction of Redis is applied when its EXEC was read. An incomplete end is an error: repair it with
//! `redis-check-aof`.

use super::decode::{Apply, Args, CommandError, apply_command, next_command};
use super::reader::Window;
use crate::command::{RawKey, Write};
use std::io;

/// Why reading ended early.
pub(super) enum AofError {
    Io(io::Error),
    CommandError(CommandError),
}

/// Applies a whole file; counts the writes. A fault comes with the offset behind the last command that was
/// applied: in a transaction, that of its MULTI.
pub(super) fn read(mut window: Window, apply: Apply<'_>, commands: &mut u64) -> Result<(), (u64, AofError)> {
    let mut transaction: Option<Vec<(RawKey, Write)>> = None;
    let (mut wanted, mut whole) = (1, 0);
    loop {
        if transaction.is_none() {
            whole = window.offset();
        }
        let (offset, left) = (window.offset(), window.left());
        let bytes = window.peek(wanted).map_err(|error| (offset, AofError::Io(error)))?;
        if bytes.is_empty() && transaction.is_none() {
            return Ok(());
        }
        let available = bytes.len();
        match take_one(bytes, &mut transaction, apply) {
            Ok((taken, applied)) => {
                *commands += applied;
                wanted = 1;
                window.skip(taken);
            }
            // The command is larger than what is in the window: look further, twice as far each time.
            Err(CommandError::Incomplete) if (available as u64) < left => wanted = available * 2,
            Err(fault) => return Err((whole, AofError::CommandError(fault))),
        }
    }
}

/// Takes one comment line or command. Answers bytes and writes.
fn take_one(
    bytes: &[u8],
    transaction: &mut Option<Vec<(RawKey, Write)>>,
    apply: Apply<'_>,
) -> Result<(usize, u64), CommandError> {
    if bytes.starts_with(b"REDIS") {
        let advice = "it is an RDB dump; in Redis set `aof-use-rdb-preamble no` and call BGREWRITEAOF";
        return Err(CommandError::Bad(advice.to_owned()));
    }
    if bytes.first() == Some(&b'#') {
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or(CommandError::Incomplete)?;
        return Ok((end + 1, 0));
    }
    let mut rest = bytes;
    let args = next_command(&mut rest)?;
    Ok((bytes.len() - rest.len(), command(&args, transaction, apply)?))
}

fn command(
    args: &Args<'_>,
    transaction: &mut Option<Vec<(RawKey, Write)>>,
    apply: Apply<'_>,
) -> Result<u64, CommandError> {
    match (args[0].to_ascii_uppercase().as_slice(), transaction.as_mut()) {
        (b"MULTI", None) => {
            *transaction = Some(Vec::new());
            Ok(0)
        }
        (b"EXEC", Some(_)) => {
            let writes = transaction.take().unwrap_or_default();
            let count = writes.len() as u64;
            for (key, write) in writes {
                apply(key, write)?;
            }
            Ok(count)
        }
        (b"MULTI", Some(_)) | (b"EXEC", None) => {
            Err(CommandError::Bad("MULTI and EXEC do not pair up".to_owned()))
        }
        (_, Some(writes)) => {
            apply_command(args, &mut |key, write| {
                writes.push((key, write));
                Ok(())
            })?;
            Ok(0)
        }
        (_, None) => apply_command(args, apply),
    }
}
