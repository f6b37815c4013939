//! Where a load takes place: one server, or a Cluster. Faults are written once and happen at either.

use super::{Arena, SUM, arena, cluster_url};
use emberkeep_schema::KeyLayout;
use emberkeep_testkit::{RedisCluster, RedisOptions, RedisServer, Resp, key_slot, require};

/// One server or a Cluster.
pub enum Deployment {
    Single(RedisServer),
    Cluster(RedisCluster),
}

impl Deployment {
    /// One server with these settings.
    pub fn single(options: RedisOptions) -> Option<Deployment> {
        require(options.start()).map(Deployment::Single)
    }

    /// Three primaries without replicas, each with these settings.
    pub fn cluster_of_three(options: RedisOptions) -> Option<Deployment> {
        require(RedisCluster::start_with(&options, 3, 0)).map(Deployment::Cluster)
    }

    pub fn name(&self) -> String {
        let flavor = self.nodes()[0].flavor();
        match self {
            Deployment::Single(_) => format!("{flavor:?}"),
            Deployment::Cluster(_) => format!("{flavor:?} Cluster"),
        }
    }

    pub fn url(&self) -> String {
        match self {
            Deployment::Single(server) => server.url(),
            Deployment::Cluster(cluster) => cluster_url(&cluster.ports()),
        }
    }

    /// The Cluster, for faults that only a Cluster has.
    pub fn cluster(&self) -> &RedisCluster {
        match self {
            Deployment::Cluster(cluster) => cluster,
            Deployment::Single(_) => panic!("one server is not a Cluster"),
        }
    }

    /// All servers.
    pub fn nodes(&self) -> &[RedisServer] {
        match self {
            Deployment::Single(server) => std::slice::from_ref(server),
            Deployment::Cluster(cluster) => cluster.nodes(),
        }
    }

    /// The server to disturb in this round: one after the other.
    pub fn victim(&self, round: usize) -> &RedisServer {
        &self.nodes()[round % self.nodes().len()]
    }

    /// An arena on every server, so that each server's faults are felt.
    pub fn arenas(&self) -> Vec<Arena> {
        self.nodes().iter().map(|node| self.arena_on(node, "battle")).collect()
    }

    /// An arena that lives on this server.
    pub fn arena_on(&self, node: &RedisServer, prefix: &str) -> Arena {
        let lives_there = |name: &String| match self {
            Deployment::Single(_) => true,
            Deployment::Cluster(cluster) => {
                let home = cluster.primary_of_slot(key_slot(format!("{{{name}}}").as_bytes()));
                cluster.nodes()[home].port() == node.port()
            }
        };
        let name = (0..).map(|n| format!("{prefix}{n}")).find(lives_there);
        arena(name.expect("every server has slots"))
    }

    /// A plain connection to the server that an arena lives on.
    pub fn client_of(&self, layout: &KeyLayout, arena: &Arena) -> Resp {
        match self {
            Deployment::Single(server) => server.client(),
            Deployment::Cluster(cluster) => cluster.client_of_key(SUM.key().to_text(layout, arena)),
        }
    }

    /// Waits until a Cluster says that all is well.
    pub fn wait_ready(&self) {
        if let Deployment::Cluster(cluster) = self {
            cluster.wait_ready().expect("all is well again");
        }
    }
}
