//! Every case on a real Redis.

mod servers;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_on_redis() {
    let Some(server) = emberkeep_testkit::redis() else { return };
    servers::run_on("redis", &server.url(), vec![server.port()]).await;
}
