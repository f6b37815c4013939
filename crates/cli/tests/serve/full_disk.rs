//! Data and log on one disk that is full: nothing acknowledged is lost, the server says so and goes on when it has space.

use super::phone::post;
use super::{Server, emberkeep, status_of};
use emberkeep_testkit::{SmallDisk, require, scratch};
use serde_json::json;
use std::fs::File;
use std::time::{Duration, Instant};

/// Rooms until one is refused, and how it was.
async fn fill(server: &Server, codes: &mut Vec<String>) -> u16 {
    for _ in 0..20_000 {
        let created = post(server.address, "/room", None, &json!({})).await;
        match created.body["room_code"].as_str() {
            Some(code) if created.status == 201 => codes.push(code.to_owned()),
            _ => return created.status,
        }
    }
    panic!("{} rooms, and the disk is not full", codes.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_there_though_data_and_log_fill_one_disk() {
    for durability in ["everysec", "always"] {
        let folder = scratch();
        let Some(disk) = require(SmallDisk::mount(folder.join("small"), 300)) else { return };
        let data = disk.path().join("data").display().to_string();
        let arguments = [
            "serve",
            "--http",
            "127.0.0.1:0",
            "--data",
            &data,
            "--durability",
            durability,
            "--rooms-per-second",
            "0",
        ];
        let log = File::create(disk.path().join("serve.log")).expect("there is space");
        let server = Server::of(emberkeep(&arguments).stderr(log));
        let mut codes = Vec::new();
        assert_eq!(fill(&server, &mut codes).await, 503, "{durability}: after {} rooms", codes.len());
        assert_eq!(status_of(&server, "/readyz", None), 503, "{durability}");
        // Space is back: it goes on by itself.
        disk.resize(64 * 1024);
        let begun = Instant::now();
        while status_of(&server, "/readyz", None) != 200 {
            assert!(begun.elapsed() < Duration::from_secs(30), "{durability}: it does not go on");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let created = post(server.address, "/room", None, &json!({})).await;
        codes.push(created.body["room_code"].as_str().expect("a room").to_owned());
        server.kill9();
        let server = Server::of(&mut emberkeep(&arguments));
        for code in &codes {
            let found = status_of(&server, &format!("/v1/rooms/{code}"), None);
            assert_eq!(found, 200, "{durability}: {code} of {} acknowledged rooms", codes.len());
        }
    }
}
