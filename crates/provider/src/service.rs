//! Services that people ask for and that cannot be stopped, each with its reason.

/// Why a service is not supported, by the words that people use for it; none for other words.
#[must_use]
pub fn unsupported_service(word: &str) -> Option<&'static str> {
    let word = word.trim().to_lowercase().replace(['_', ' '], "-");
    match word.as_str() {
        "app" | "apps" | "app-platform" | "appplatform" => {
            Some("DigitalOcean's App Platform has no pause: an app is billed until it is deleted")
        }
        "space" | "spaces" | "bucket" | "buckets" | "object-storage" => {
            Some("DigitalOcean's Spaces are billed for what they hold: there is nothing to stop")
        }
        "function" | "functions" | "serverless" => Some(
            "DigitalOcean's Functions are billed per use: an idle one costs nothing to begin with",
        ),
        "load-balancer" | "load-balancers" | "loadbalancer" | "loadbalancers" | "lb" => {
            Some("a load balancer can only be deleted, and a new one has another IP address")
        }
        "dedicated-server" | "dedicated-servers" | "dedicated" | "root-server" | "robot" => Some(
            "Hetzner's dedicated servers are rented by the month and are not part of its Cloud API",
        ),
        "self-managed-kubernetes" | "hetzner-kubernetes" | "kubeadm" | "k3s" | "rke2" => Some(
            "a self-managed Kubernetes cluster would have to be drained over SSH before its \
             servers are stopped, and Offhours has no SSH account type yet",
        ),
        _ => None,
    }
}

/// Why a database engine is not supported; none for the engines that are.
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
            return Some(format!(
                "Offhours does not know the database engine `{other}`"
            ));
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
            ("load_balancers", "IP address"),
            ("LoadBalancer", "IP address"),
            ("dedicated-server", "by the month"),
            ("self-managed-kubernetes", "SSH"),
            ("k3s", "SSH"),
        ] {
            let reason = unsupported_service(word).unwrap_or_else(|| panic!("{word}"));
            assert!(reason.contains(part), "{word}: {reason}");
        }
    }

    #[test]
    fn supported_kinds_and_other_words_have_no_such_reason() {
        for word in [
            "droplet",
            "database",
            "node-pool",
            "server",
            "",
            "s",
            "volume",
        ] {
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
