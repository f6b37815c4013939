//! Every case on a real Valkey.

mod servers;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_on_valkey() {
    let Some(server) = emberkeep_testkit::valkey() else { return };
    servers::run_on("valkey", &server.url(), vec![server.port()]).await;
}
