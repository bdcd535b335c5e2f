//! What both clouds offer: sizes, plans, regions, locations. Invented prices, real names.

use domain::resource::PlanCapacity;
use serde_json::{Value, json};

/// A Droplet size, also that of a Kubernetes node.
pub(crate) struct DropletSize {
    pub(crate) slug: &'static str,
    pub(crate) memory_mib: u64,
    pub(crate) vcpus: u64,
    pub(crate) disk_gib: u64,
    /// Outgoing traffic, in TB per month.
    transfer: f64,
    monthly_usd: f64,
    description: &'static str,
}

const fn size(
    slug: &'static str,
    memory_mib: u64,
    vcpus: u64,
    disk_gib: u64,
    transfer: f64,
    monthly_usd: f64,
    description: &'static str,
) -> DropletSize {
    DropletSize {
        slug,
        memory_mib,
        vcpus,
        disk_gib,
        transfer,
        monthly_usd,
        description,
    }
}

const DROPLET_SIZES: &[DropletSize] = &[
    size("s-1vcpu-512mb-10gb", 512, 1, 10, 0.5, 4.0, "Basic"),
    size("s-1vcpu-1gb", 1024, 1, 25, 1.0, 6.0, "Basic"),
    size("s-1vcpu-2gb", 2048, 1, 50, 2.0, 12.0, "Basic"),
    size("s-2vcpu-2gb", 2048, 2, 60, 3.0, 18.0, "Basic"),
    size("s-2vcpu-4gb", 4096, 2, 80, 4.0, 24.0, "Basic"),
    size("s-4vcpu-8gb", 8192, 4, 160, 5.0, 48.0, "Basic"),
    size("s-8vcpu-16gb", 16384, 8, 320, 6.0, 96.0, "Basic"),
    size("g-2vcpu-8gb", 8192, 2, 25, 4.0, 63.0, "General Purpose"),
    size("c-4", 8192, 4, 50, 5.0, 84.0, "CPU-Optimized"),
];

/// `DigitalOcean`'s regions: slug and name.
const REGIONS: &[(&str, &str)] = &[
    ("ams3", "Amsterdam 3"),
    ("blr1", "Bangalore 1"),
    ("fra1", "Frankfurt 1"),
    ("lon1", "London 1"),
    ("nyc1", "New York 1"),
    ("nyc3", "New York 3"),
    ("sfo3", "San Francisco 3"),
    ("sgp1", "Singapore 1"),
    ("syd1", "Sydney 1"),
    ("tor1", "Toronto 1"),
];

/// Versions of Kubernetes, the newest first.
pub(crate) const KUBERNETES_VERSIONS: &[&str] = &["1.34.1-do.0", "1.33.1-do.5", "1.32.5-do.5"];

impl DropletSize {
    pub(crate) fn of_slug(slug: &str) -> Option<&'static Self> {
        DROPLET_SIZES.iter().find(|size| size.slug == slug)
    }

    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        DROPLET_SIZES.iter()
    }

    pub(crate) fn to_json(&self) -> Value {
        // The provider sends its hourly price through a 32-bit float, noise included.
        #[expect(clippy::cast_possible_truncation, reason = "the noise is wanted")]
        let hourly = f64::from((self.monthly_usd / 672.0 * 100_000.0).round() as f32 / 100_000.0);
        json!({
            "slug": self.slug,
            "memory": self.memory_mib,
            "vcpus": self.vcpus,
            "disk": self.disk_gib,
            "transfer": self.transfer,
            "price_monthly": self.monthly_usd,
            "price_hourly": hourly,
            "regions": region_slugs(),
            "available": true,
            "description": self.description,
            "disk_info": disk_info(self.disk_gib),
        })
    }
}

/// The disks of a machine that has one local disk.
pub(crate) fn disk_info(disk_gib: u64) -> Value {
    json!([{"type": "local", "size": {"amount": disk_gib, "unit": "gib"}}])
}

/// The slugs of all of `DigitalOcean`'s regions.
pub(crate) fn region_slugs() -> Vec<&'static str> {
    REGIONS.iter().map(|(slug, _)| *slug).collect()
}

/// A region as `DigitalOcean` describes it; none if the slug is not one.
pub(crate) fn region(slug: &str) -> Option<Value> {
    let (slug, name) = REGIONS.iter().find(|(known, _)| *known == slug)?;
    let sizes: Vec<_> = DROPLET_SIZES.iter().map(|size| size.slug).collect();
    Some(json!({
        "name": name,
        "slug": slug,
        "features": ["backups", "ipv6", "metadata", "install_agent", "storage", "image_transfer"],
        "available": true,
        "sizes": sizes,
    }))
}

/// A database engine and the plans in which it can be had.
pub(crate) struct Engine {
    pub(crate) slug: &'static str,
    pub(crate) versions: &'static [&'static str],
    /// Plans by number of nodes. Their order is not that of their size, for nobody promises that.
    layouts: &'static [(u32, &'static [&'static str])],
    /// Whether a resize may ask for more storage than the plan's own.
    pub(crate) extra_storage: bool,
    /// The port at which it listens.
    pub(crate) port: u16,
}

/// Plans with one node; standby nodes need 2 GiB, so the others lack the smallest one.
const SINGLE: &[&str] = &[
    "db-s-2vcpu-4gb",
    "gd-2vcpu-8gb",
    "so1_5-2vcpu-16gb",
    "db-s-1vcpu-2gb",
    "db-s-1vcpu-1gb",
    "db-s-4vcpu-8gb",
    "db-s-6vcpu-16gb",
    "gd-4vcpu-16gb",
    "db-s-8vcpu-32gb",
];
const STANDBY: &[&str] = &[
    "gd-2vcpu-8gb",
    "db-s-4vcpu-8gb",
    "db-s-2vcpu-4gb",
    "so1_5-2vcpu-16gb",
    "db-s-1vcpu-2gb",
    "db-s-6vcpu-16gb",
    "gd-4vcpu-16gb",
    "db-s-8vcpu-32gb",
];
const KAFKA: &[&str] = &[
    "gd-2vcpu-8gb",
    "gd-4vcpu-16gb",
    "db-s-2vcpu-4gb",
    "db-s-2vcpu-2gb",
];
const THREE_SIZES: &[(u32, &[&str])] = &[(1, SINGLE), (2, STANDBY), (3, STANDBY)];

/// Layouts as in `DOSPEC`'s example of the options.
const ENGINES: &[Engine] = &[
    Engine {
        slug: "pg",
        versions: &["17", "16", "15"],
        layouts: THREE_SIZES,
        extra_storage: true,
        port: 25060,
    },
    Engine {
        slug: "mysql",
        versions: &["8"],
        layouts: THREE_SIZES,
        extra_storage: true,
        port: 25060,
    },
    Engine {
        slug: "redis",
        versions: &["7"],
        layouts: THREE_SIZES,
        extra_storage: false,
        port: 25061,
    },
    Engine {
        slug: "valkey",
        versions: &["8"],
        layouts: THREE_SIZES,
        extra_storage: false,
        port: 25061,
    },
    Engine {
        slug: "mongodb",
        versions: &["8.0", "7.0"],
        layouts: &[(1, SINGLE), (3, SINGLE)],
        extra_storage: false,
        port: 27017,
    },
    Engine {
        slug: "kafka",
        versions: &["3.8"],
        layouts: &[(3, KAFKA), (6, &["gd-4vcpu-16gb", "gd-2vcpu-8gb"])],
        extra_storage: false,
        port: 25073,
    },
    Engine {
        slug: "opensearch",
        versions: &["2"],
        layouts: &[
            (
                1,
                &[
                    "db-s-2vcpu-4gb",
                    "gd-4vcpu-16gb",
                    "db-s-1vcpu-2gb",
                    "gd-2vcpu-8gb",
                ],
            ),
            (3, &["db-s-2vcpu-4gb", "gd-4vcpu-16gb", "gd-2vcpu-8gb"]),
        ],
        extra_storage: false,
        port: 25060,
    },
];

impl Engine {
    pub(crate) fn of_slug(slug: &str) -> Option<&'static Self> {
        ENGINES.iter().find(|engine| engine.slug == slug)
    }

    /// Whether this plan can be had with so many nodes.
    pub(crate) fn offers(&self, nodes: u32, plan: &str) -> bool {
        self.layouts
            .iter()
            .any(|(count, plans)| *count == nodes && plans.contains(&plan))
    }

    fn to_json(&self) -> Value {
        let layouts: Vec<_> = self
            .layouts
            .iter()
            .map(|(nodes, plans)| json!({"num_nodes": nodes, "sizes": plans}))
            .collect();
        json!({
            "regions": region_slugs(),
            "versions": self.versions,
            "layouts": layouts,
            "default_version": self.versions[0],
        })
    }
}

/// What `GET /v2/databases/options` answers.
pub(crate) fn database_options() -> Value {
    let engines: serde_json::Map<_, _> = ENGINES
        .iter()
        .map(|engine| (engine.slug.to_owned(), engine.to_json()))
        .collect();
    let availability: serde_json::Map<_, _> = ENGINES
        .iter()
        .map(|engine| {
            let of_version = |version: &&str| {
                json!({"version": version, "end_of_life": null, "end_of_availability": null})
            };
            let versions: Vec<_> = engine.versions.iter().map(of_version).collect();
            (engine.slug.to_owned(), Value::from(versions))
        })
        .collect();
    json!({"options": engines, "version_availability": availability})
}

/// The storage, in MiB, that comes with a database plan, which is also the least that it may have.
pub(crate) fn plan_storage_mib(plan: &str) -> u64 {
    let memory = PlanCapacity::of_plan(plan).map_or(1, |capacity| capacity.memory_gib);
    let gib = match memory {
        0 | 1 => 10,
        2 => 30,
        4 => 60,
        8 => 140,
        16 => 290,
        more => u64::from(more) * 18,
    };
    gib * 1024
}

/// The most storage, in MiB, that a database plan may have. The factor is an assumption; that a
/// small plan refuses a large disk is not.
pub(crate) fn plan_storage_limit_mib(plan: &str) -> u64 {
    plan_storage_mib(plan) * 4
}

/// A location of Hetzner's.
pub(crate) struct Location {
    id: u64,
    pub(crate) name: &'static str,
    description: &'static str,
    country: &'static str,
    city: &'static str,
    latitude: f64,
    longitude: f64,
    network_zone: &'static str,
}

const LOCATIONS: &[Location] = &[
    Location {
        id: 1,
        name: "fsn1",
        description: "Falkenstein DC Park 1",
        country: "DE",
        city: "Falkenstein",
        latitude: 50.476_12,
        longitude: 12.370_071,
        network_zone: "eu-central",
    },
    Location {
        id: 2,
        name: "nbg1",
        description: "Nuremberg DC Park 1",
        country: "DE",
        city: "Nuremberg",
        latitude: 49.452_102,
        longitude: 11.076_665,
        network_zone: "eu-central",
    },
    Location {
        id: 3,
        name: "hel1",
        description: "Helsinki DC Park 1",
        country: "FI",
        city: "Helsinki",
        latitude: 60.169_855,
        longitude: 24.938_379,
        network_zone: "eu-central",
    },
    Location {
        id: 4,
        name: "ash",
        description: "Ashburn, VA",
        country: "US",
        city: "Ashburn, VA",
        latitude: 39.045_821,
        longitude: -77.487_073,
        network_zone: "us-east",
    },
    Location {
        id: 5,
        name: "hil",
        description: "Hillsboro, OR",
        country: "US",
        city: "Hillsboro, OR",
        latitude: 45.542_22,
        longitude: -122.951_924,
        network_zone: "us-west",
    },
    Location {
        id: 6,
        name: "sin",
        description: "Singapore",
        country: "SG",
        city: "Singapore",
        latitude: 1.283_333,
        longitude: 103.833_333,
        network_zone: "ap-southeast",
    },
];

impl Location {
    pub(crate) fn of_name(name: &str) -> Option<&'static Self> {
        LOCATIONS.iter().find(|location| location.name == name)
    }

    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        LOCATIONS.iter()
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "country": self.country,
            "city": self.city,
            "latitude": self.latitude,
            "longitude": self.longitude,
            "network_zone": self.network_zone,
        })
    }
}

/// A type of Hetzner server.
pub(crate) struct ServerType {
    id: u64,
    pub(crate) name: &'static str,
    cores: u64,
    memory_gb: f64,
    pub(crate) disk_gb: u64,
    /// In hundredths of a cent, before tax.
    monthly: u64,
}

const fn server_type(
    id: u64,
    name: &'static str,
    cores: u64,
    memory_gb: f64,
    disk_gb: u64,
    monthly: u64,
) -> ServerType {
    ServerType {
        id,
        name,
        cores,
        memory_gb,
        disk_gb,
        monthly,
    }
}

const SERVER_TYPES: &[ServerType] = &[
    server_type(22, "cpx11", 2, 2.0, 40, 43_900),
    server_type(23, "cpx21", 3, 4.0, 80, 75_900),
    server_type(24, "cpx31", 4, 8.0, 160, 136_900),
    server_type(45, "cax11", 2, 4.0, 40, 37_900),
    server_type(96, "ccx13", 2, 8.0, 80, 124_900),
    server_type(104, "cx22", 2, 4.0, 40, 37_900),
    server_type(105, "cx32", 4, 8.0, 80, 67_900),
    server_type(106, "cx42", 8, 16.0, 160, 163_900),
];

/// VAT, in percent.
const VAT: u64 = 19;

impl ServerType {
    pub(crate) fn of_name(name: &str) -> Option<&'static Self> {
        SERVER_TYPES.iter().find(|known| known.name == name)
    }

    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        SERVER_TYPES.iter()
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    fn prices(&self) -> Vec<Value> {
        let of_location = |location: &Location| {
            json!({
                "location": location.name,
                "price_hourly": price(self.monthly / 624),
                "price_monthly": price(self.monthly),
                "included_traffic": 21_990_232_555_520_u64,
                "price_per_tb_traffic": price(10_000),
            })
        };
        LOCATIONS.iter().map(of_location).collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        let of_location = |location: &Location| {
            json!({
                "id": location.id,
                "name": location.name,
                "deprecation": null,
                "recommended": location.id <= 3,
                "available": true,
            })
        };
        let locations: Vec<_> = LOCATIONS.iter().map(of_location).collect();
        json!({
            "id": self.id,
            "name": self.name,
            "description": self.name.to_uppercase(),
            "cores": self.cores,
            "memory": self.memory_gb,
            "disk": self.disk_gb,
            "deprecated": false,
            "prices": self.prices(),
            "storage_type": "local",
            "cpu_type": if self.name.starts_with("ccx") { "dedicated" } else { "shared" },
            "category": "regular purpose",
            "architecture": if self.name.starts_with("cax") { "arm" } else { "x86" },
            "deprecation": null,
            "locations": locations,
        })
    }
}

/// A price in Hetzner's form: decimal text, before and after tax.
fn price(hundredths_of_a_cent: u64) -> Value {
    let text = |amount: u64| format!("{}.{:04}000000", amount / 10_000, amount % 10_000);
    let gross = hundredths_of_a_cent * (100 + VAT) / 100;
    json!({"net": text(hundredths_of_a_cent), "gross": text(gross)})
}

/// What `GET /v1/pricing` answers.
pub(crate) fn pricing() -> Value {
    let everywhere = |monthly: u64, hourly: bool| -> Vec<Value> {
        let of_location = |location: &Location| {
            let mut entry = json!({"location": location.name, "price_monthly": price(monthly)});
            if hourly {
                entry["price_hourly"] = price(monthly / 624);
            }
            entry
        };
        LOCATIONS.iter().map(of_location).collect()
    };
    let server_types: Vec<_> = SERVER_TYPES
        .iter()
        .map(|known| json!({"id": known.id, "name": known.name, "prices": known.prices()}))
        .collect();
    json!({"pricing": {
        "currency": "EUR",
        "vat_rate": format!("{VAT}.00"),
        "primary_ips": [
            {"type": "ipv4", "prices": everywhere(5000, true)},
            {"type": "ipv6", "prices": everywhere(0, true)},
        ],
        "floating_ips": [
            {"type": "ipv4", "prices": everywhere(30_000, false)},
            {"type": "ipv6", "prices": everywhere(10_000, false)},
        ],
        "floating_ip": {"price_monthly": price(30_000)},
        "image": {"price_per_gb_month": price(110)},
        "volume": {"price_per_gb_month": price(440)},
        "server_backup": {"percentage": "20.00"},
        "server_types": server_types,
        "load_balancer_types": [{
            "id": 1,
            "name": "lb11",
            "prices": LOCATIONS.iter().map(|location| json!({
                "location": location.name,
                "price_hourly": price(86),
                "price_monthly": price(53_900),
                "included_traffic": 21_990_232_555_520_u64,
                "price_per_tb_traffic": price(10_000),
            })).collect::<Vec<_>>(),
        }],
    }})
}
