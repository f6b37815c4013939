//! Every case on a real Redis Cluster of three primaries.

mod servers;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_on_a_cluster() {
    let Some(cluster) = emberkeep_testkit::cluster(3, 0) else { return };
    let nodes: Vec<String> = cluster.ports().iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let url = format!("redis+cluster://{}", nodes.join(","));
    servers::run_on("cluster", &url, cluster.ports()).await;
}
