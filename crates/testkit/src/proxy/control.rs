//! A proxy in a process of its own, controlled by lines on standard input.
//!
//! For benchmarks, where the proxy must not share the measured process. Any binary can offer it as
//! a hidden subcommand; `fault-proxy` of this crate is one.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use super::FaultProxy;

/// Runs a proxy before `target` until `orders` ends.
///
/// The first line of `answers` is the proxy's address. Then one order per line, and one answer
/// (`ok`, counters, or `error …`) per order:
/// `delay REQUEST_US REPLY_US`, `drop-requests N`, `drop-replies N`, `random SEED REQUEST REPLY`,
/// `only BYTES`, `all`, `cut`, `refuse`, `accept`, `silence`, `speak`, `counts`.
pub fn serve_proxy(target: &str, orders: impl BufRead, mut answers: impl Write) -> io::Result<()> {
    let proxy = FaultProxy::start(target)?;
    writeln!(answers, "{}", proxy.address())?;
    answers.flush()?;
    for order in orders.lines() {
        match obey(&proxy, &order?) {
            Some(answer) => writeln!(answers, "{answer}")?,
            None => writeln!(answers, "error: not an order")?,
        }
        answers.flush()?;
    }
    Ok(())
}

fn obey(proxy: &FaultProxy, order: &str) -> Option<String> {
    let words: Vec<&str> = order.split_whitespace().collect();
    match words[..] {
        ["delay", request, reply] => proxy.delay(micros(request)?, micros(reply)?),
        ["drop-requests", n] => proxy.drop_requests(n.parse().ok()?),
        ["drop-replies", n] => proxy.drop_replies(n.parse().ok()?),
        ["random", seed, request, reply] => {
            proxy.random_drops(seed.parse().ok()?, request.parse().ok()?, reply.parse().ok()?);
        }
        ["only", bytes] => proxy.only_requests_with(bytes),
        ["all"] => proxy.only_requests_with(""),
        ["cut"] => proxy.cut_all(),
        ["refuse"] => proxy.refuse(),
        ["accept"] => proxy.accept(),
        ["silence"] => proxy.silence(),
        ["speak"] => proxy.speak(),
        ["counts"] => return Some(format!("{:?}", proxy.counts())),
        _ => return None,
    }
    Some("ok".into())
}

fn micros(text: &str) -> Option<Duration> {
    text.parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_obeyed_and_nonsense_is_refused() {
        let mut answers = Vec::new();
        let orders = "delay 500 500\nrandom 1 0.1 0.1\ndrop-replies 2\nonly SET\nnonsense\ncut\ncounts\n";
        serve_proxy("127.0.0.1:9", orders.as_bytes(), &mut answers).unwrap();
        let answers = String::from_utf8(answers).unwrap();
        let lines: Vec<&str> = answers.lines().collect();
        assert!(lines[0].starts_with("127.0.0.1:"));
        assert_eq!(lines[1..7], ["ok", "ok", "ok", "ok", "error: not an order", "ok"]);
        assert!(lines[7].contains("cuts: 1"));
    }
}
