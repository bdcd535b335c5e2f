//! Services that people ask for and that cannot be stopped, each with its reason.

use std::fmt;

/// A service that users ask for but Offhours does not stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsupportedService {
    pub service: &'static str,
    /// Why Offhours does not stop it.
    pub reason: &'static str,
    /// Other words for it, in lower case and with hyphens, as in a reference's kind.
    words: &'static [&'static str],
}

/// All of them; the documentation's table has the same rows.
const UNSUPPORTED_SERVICES: [UnsupportedService; 9] = [
    UnsupportedService {
        service: "DigitalOcean App Platform",
        reason: "it has no pause: an app is billed until it is deleted",
        words: &["app", "apps", "app-platform", "appplatform"],
    },
    UnsupportedService {
        service: "DigitalOcean Spaces",
        reason: "billed for what they hold: there is nothing to stop",
        words: &["space", "spaces", "bucket", "buckets", "object-storage"],
    },
    UnsupportedService {
        service: "DigitalOcean Functions",
        reason: "billed per use: an idle one costs nothing to begin with",
        words: &["function", "functions", "serverless"],
    },
    UnsupportedService {
        service: "DigitalOcean MicroVMs",
        // DOMICROVMS
        reason: "not supported yet: they pause when idle, and their API is a preview",
        words: &["microvm", "microvms", "micro-vm", "micro-vms"],
    },
    UnsupportedService {
        service: "DigitalOcean Kafka, OpenSearch and Advanced databases",
        reason: "no plan to which they could shrink and come back unharmed",
        words: &["kafka", "opensearch", "advanced-pg", "advanced-mysql"],
    },
    UnsupportedService {
        service: "load balancers of both clouds",
        reason: "one can only be deleted, and a new one has another address",
        words: &["load-balancer", "load-balancers", "loadbalancer", "loadbalancers", "lb"],
    },
    UnsupportedService {
        service: "Hetzner dedicated servers",
        reason: "not part of the Cloud API: an account over SSH stops and starts them, and the rent \
                 stays the same, see docs/ssh.md",
        words: &["dedicated-server", "dedicated-servers", "dedicated", "root-server", "robot"],
    },
    UnsupportedService {
        service: "self-managed Kubernetes",
        reason: "no cloud knows its nodes: an account over SSH drains, stops and starts them, see \
                 docs/ssh.md",
        words: &["self-managed-kubernetes", "hetzner-kubernetes", "kubeadm", "k3s", "rke2"],
    },
    UnsupportedService {
        service: "Droplets that are Kubernetes workers",
        reason: KUBERNETES_WORKER,
        words: &["worker", "kubernetes-worker"],
    },
];

/// Why a Droplet that is a Kubernetes worker is never stopped as a Droplet.
pub(crate) const KUBERNETES_WORKER: &str = "a Kubernetes worker is scheduled as its node pool";

impl fmt::Display for UnsupportedService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.service, self.reason)
    }
}

/// Returns the unsupported service that people mean by a word; `None` for other words.
#[must_use]
pub fn unsupported_service(word: &str) -> Option<&'static UnsupportedService> {
    let word = word.trim().to_lowercase().replace(['_', ' '], "-");
    UNSUPPORTED_SERVICES.iter().find(|service| service.words.contains(&word.as_str()))
}

/// Returns why a database engine is not supported; `None` for the engines that are.
pub(crate) fn unsupported_engine(engine: &str) -> Option<String> {
    let reason = match engine {
        "pg" | "mysql" | "redis" | "valkey" | "mongodb" => return None,
        "kafka" => {
            "Kafka clusters keep at least three nodes, and their brokers hold the log: \
                    there is no smaller plan to stop on"
        }
        "opensearch" => {
            "OpenSearch clusters hold their indices on their nodes: Offhours does \
                         not resize them"
        }
        "advanced_pg" | "advanced_mysql" => {
            "Advanced Edition clusters begin at plans of 8 GB and are in preview: Offhours does \
             not resize them"
        }
        other => {
            return Some(format!("Offhours does not know the database engine `{other}`"));
        }
    };
    Some(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_spellings_of_a_service_find_its_reason() {
        for (word, part) in [
            ("app-platform", "App Platform"),
            ("App Platform", "App Platform"),
            ("apps", "App Platform"),
            ("spaces", "Spaces"),
            ("functions", "per use"),
            ("MicroVM", "not supported yet"),
            ("micro_vms", "not supported yet"),
            ("load_balancers", "another address"),
            ("LoadBalancer", "another address"),
            ("dedicated-server", "SSH"),
            ("self-managed-kubernetes", "SSH"),
            ("k3s", "SSH"),
        ] {
            let service = unsupported_service(word).unwrap_or_else(|| panic!("{word}"));
            assert!(service.to_string().contains(part), "{word}: {service}");
        }
    }

    #[test]
    fn the_documentation_has_the_same_table() {
        let page = include_str!("../../../docs/stopping.md");
        let (_, table) = page.split_once("| service | reason |").unwrap();
        let rows: Vec<_> = table.trim_start().lines().skip(1).collect();
        for (row, of) in rows.iter().zip(UNSUPPORTED_SERVICES) {
            assert_eq!(*row, format!("| {} | {} |", of.service, of.reason));
        }
        assert_eq!(rows[UNSUPPORTED_SERVICES.len()], "");
    }

    #[test]
    fn supported_kinds_and_other_words_have_no_such_reason() {
        for word in ["droplet", "database", "node-pool", "server", "", "s", "volume"] {
            assert_eq!(unsupported_service(word), None, "{word}");
        }
    }

    #[test]
    fn engines_are_refused_by_name() {
        for engine in ["pg", "mysql", "redis", "valkey", "mongodb"] {
            assert_eq!(unsupported_engine(engine), None, "{engine}");
        }
        for (engine, name) in [
            ("kafka", "Kafka"),
            ("opensearch", "OpenSearch"),
            ("advanced_pg", "Advanced Edition"),
            ("advanced_mysql", "Advanced Edition"),
            ("graphite", "`graphite`"),
        ] {
            let reason = unsupported_engine(engine).unwrap();
            assert!(reason.contains(name), "{engine}: {reason}");
        }
    }
}
