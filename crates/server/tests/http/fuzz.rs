//! A fuzzing client that reads the document and looks for answers that it does not tell of.

use crate::auth::Tokens;
use crate::support::{Server, TENANT};
use emberkeep_games::darkages::{DarkAges, LoginPolicy, LoginRequest, Point, ZoneId};
use emberkeep_games::galaxy::{GalaxyState, NewShip, PlayerId, ShipId};
use emberkeep_games::monsters::{MonsterId, Monsters, SpawnRequest};
use emberkeep_games::reactors::{CreateRequest, ReactorId, Reactors};
use emberkeep_games::world::{Field, Tenant};
use emberkeep_hot::Store;
use emberkeep_server::auth::Role;
use emberkeep_testkit::{Scratch, report, require, schemathesis, scratch};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What one run of the client spends on requests, and what it may take in all.
const BUDGET_S: u32 = 25;
const RUN_MAX: Duration = Duration::from_secs(45);
/// Left out: that whatever fits the schemas is accepted. Schemas do not know which room is open and who stands where.
const UNFIT: &str = "positive_data_acceptance";
/// A ship of Galaxy, and its player.
const SHIP: &str = "550e8400-e29b-41d4-a716-446655440000";
const PILOT: &str = "660e8400-e29b-41d4-a716-446655440001";
/// Pause between two looks at the things that the client plays with.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A client that is installed, and a server to which it speaks.
struct Fuzzer {
    program: PathBuf,
    folder: Scratch,
    url: String,
    token: String,
}

impl Fuzzer {
    /// Runs the client to its end, and fails on whatever it finds.
    fn run(&self, name: &str, arguments: &[&str]) {
        let (began, out) = (Instant::now(), self.folder.join(name));
        let file = File::create(&out).expect("the folder is ours");
        let child = Command::new(&self.program)
            .current_dir(self.folder.path())
            .args(["run", &self.url, "--checks", "all", "--exclude-checks", UNFIT])
            .args(["--max-examples", "20", "--workers", "1", "--max-time", &BUDGET_S.to_string()])
            .args(["--generation-deterministic", "--no-color"])
            // A stream has no end; `darkages_stream` reads it.
            .args(["--exclude-path-regex", "/stream$"])
            .args(["--header", &format!("Authorization: Bearer {}", self.token)])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a second handle"))
            .stderr(file)
            .spawn()
            .expect("it is installed");
        let passed = wait(child, began + RUN_MAX);
        let output = std::fs::read_to_string(out).expect("its output");
        assert!(passed, "{name}: {output}");
        let counted = output
            .lines()
            .map(str::trim)
            .find(|line| line.contains(" generated,") && line.starts_with(char::is_numeric));
        let counted = counted.unwrap_or("finished");
        report!("schemathesis {name}: {counted}, {:.0} s", began.elapsed().as_secs_f64());
    }
}

fn wait(mut child: Child, deadline: Instant) -> bool {
    loop {
        match child.try_wait().expect("our child") {
            Some(status) => return status.success(),
            None if Instant::now() > deadline => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
            None => std::thread::sleep(LOOK_AGAIN),
        }
    }
}

/// Sees to it that what the examples of the document name is there: the client destroys it again and again.
async fn keep_alive(store: Store) {
    let (monsters, reactors) = (Monsters::new(store.clone()), Reactors::new(store.clone()));
    let tenant = Tenant(TENANT.parse().expect("a tenant"));
    let field = Field { world: 0, channel: 1, map: 100_000_000, instance: uuid::Uuid::nil() };
    let id = MonsterId(1_000_000_000);
    let physics = GalaxyState::new(store.clone()).physics();
    let (ship, pilot) = (ShipId(SHIP.parse().expect("an id")), PlayerId(PILOT.parse().expect("an id")));
    let city = DarkAges::new(store, "fuzz").expect("a short name");
    loop {
        for player in [12_345, 12_346] {
            let login = LoginRequest::new(player, "client", ZoneId(42), Point::new(1.0, 0.0, 2.0));
            // Mostly it is logged in already, and that is well.
            let _ = city.login(LoginRequest { existing: LoginPolicy::Refuse, ..login }).await;
        }
        if !monsters.get(tenant, id).await.is_ok_and(|monster| monster.is_alive()) {
            let _ = monsters.remove(tenant, id).await;
            let _ = monsters.spawn(tenant, SpawnRequest::new(field, 100_100, u32::MAX)).await;
        }
        // Mostly it is there already, or its player was deleted, and that is well.
        let _ = physics.spawn_ship(NewShip::new(ship, pilot, "Roci")).await;
        let mut request = CreateRequest::new(field, 2001, 0, 0);
        request.id = Some(ReactorId(1_000_000_001));
        // Mostly it is there already, and that is well.
        let _ = reactors.create(tenant, request).await;
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Values of parameters that lead to something.
async fn known_values(server: &Server) -> String {
    let room = server.request("POST", "/room").send().await.json(201);
    let (code, key) = (&room["room_code"], &room["master_key"]);
    format!(
        "[parameters]\n\"path.tenant\" = \"{TENANT}\"\n\"path.monster\" = 1000000000\n\
         \"path.reactor\" = 1000000001\n\"path.entity\" = 12345\n\"path.player\" = 12345\n\"path.zone\" = 42\n\
         \"path.ship\" = \"{SHIP}\"\n\"path.player_id\" = \"{PILOT}\"\n\"path.system\" = \"sol\"\n\"path.body\" = \"Earth\"\n\
         \"path.rule\" = \"low-fuel\"\n\"path.code\" = {code}\n\"header.X-Master-Key\" = {key}\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fuzzing_client_finds_no_answer_outside_the_document() {
    let Some(program) = require(schemathesis()) else { return };
    let tokens = Tokens::new();
    let server = Server::with_history(tokens.settings()).await;
    let (url, token) =
        (format!("http://{}/openapi.json", server.address()), tokens.of(Role::Admin).to_owned());
    let keeping = tokio::spawn(keep_alive(server.store.clone()));
    let (fuzzer, known) = (Fuzzer { program, folder: scratch(), url, token }, known_values(&server).await);
    let ran = tokio::task::spawn_blocking(move || {
        fuzzer.run("of the document alone", &["--phases", "examples,coverage"]);
        std::fs::write(fuzzer.folder.join("schemathesis.toml"), known).expect("the folder is ours");
        // What closes the room or ends everything would leave nothing to play with.
        fuzzer.run("in a living world", &["--phases", "fuzzing", "--exclude-method", "DELETE"]);
    });
    ran.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
    keeping.abort();
}
