//! The policy of a schedule: what its table says besides timing and resources.

use std::collections::BTreeSet;

use domain::{
    configuration::{
        Adopt, DatabaseMethod, DropletMethod, Methods, Otherwise, Policy, ServerMethod,
    },
    hibernation::Risk,
    stop_method::is_plan_name,
};

use super::{
    TABLES,
    document::{Field, Problems, Table},
    mode,
};

/// Reads the policy; an invalid value becomes the default.
pub(super) fn policy(table: &Table, problems: &mut Problems) -> Policy {
    let default = Policy::default();
    let mut flag = |key: &str, default: bool| {
        let field = table.field(key);
        field.and_then(|field| field.flag(problems)).unwrap_or(default)
    };
    let graceful = flag("graceful", default.graceful);
    let force = flag("force", default.force);
    let enforce = flag("enforce", default.enforce);
    let retain_running = flag("retain_running", default.retain_running);
    let start_small = flag("start_small", default.start_small);
    let rescaled_runs = flag("rescaled_runs", default.rescaled_runs);
    let needs_private_ip = flag("needs_private_ip", default.needs_private_ip);
    let chosen = ChosenMethods::read(table, problems);
    let policy = Policy {
        graceful,
        force,
        enforce,
        retain_running,
        mode: mode(table, problems),
        adopt: adopt(table, problems),
        methods: chosen.methods(),
        resize_to: plan(table, &RESIZE_TO, problems),
        rescale_to: plan(table, &RESCALE_TO, problems),
        start_small,
        rescaled_runs,
        accept: accept(table, problems),
        needs_private_ip,
        otherwise: otherwise(table, problems),
        stop_size: plan(table, &STOP_SIZE, problems),
        stop_nodes: table.field("stop_nodes").and_then(|field| field.count(1..=3, problems)),
    };
    if policy.enforce && policy.retain_running {
        let message = "cannot be combined with enforce, which stops what a person left running; \
                       remove one of them";
        refuse(table, "retain_running", message, problems);
    }
    chosen.refuse_what_does_not_fit(table, &policy, problems);
    policy
}

/// Reports a key, if present, that conflicts with other keys.
fn refuse(table: &Table, key: &str, message: &str, problems: &mut Problems) {
    if let Some(field) = table.field(key) {
        problems.error(&field.place, message);
    }
}

fn adopt(table: &Table, problems: &mut Problems) -> Adopt {
    let choices = [("at-once", Adopt::AtOnce), ("next-edge", Adopt::NextEdge)];
    let field = table.field("adopt");
    let adopt = field.and_then(|field| field.choice(&choices, problems));
    adopt.unwrap_or_default()
}

/// The risks of hibernation that the schedule accepts.
fn accept(table: &Table, problems: &mut Problems) -> BTreeSet<Risk> {
    let choices = [
        ("new-ip", Risk::NewIp),
        ("lost-backups", Risk::LostBackups),
        ("custom-image", Risk::CustomImage),
    ];
    let field = table.field("accept");
    let elements = field.iter().flat_map(Field::elements);
    let accepted = elements.filter_map(|element| element.choice(&choices, problems));
    accepted.collect()
}

fn otherwise(table: &Table, problems: &mut Problems) -> Otherwise {
    let choices = [("refuse", Otherwise::Refuse), ("power-off", Otherwise::PowerOff)];
    let field = table.field("otherwise");
    let otherwise = field.and_then(|field| field.choice(&choices, problems));
    otherwise.unwrap_or_default()
}

/// The method of each kind. `None` if it could not be read, so that problems that depend on it are
/// not reported again.
struct ChosenMethods {
    droplet: Option<DropletMethod>,
    server: Option<ServerMethod>,
    database: Option<DatabaseMethod>,
}

/// The kinds whose method cannot be chosen, and why.
const WITHOUT_CHOICE: [(&str, &str); 2] = [
    ("node-pool", "a node pool is always scaled to zero nodes"),
    ("machine", "a machine over SSH is always stopped by its own commands"),
];

impl ChosenMethods {
    fn read(table: &Table, problems: &mut Problems) -> Self {
        let Some(field) = table.field("methods") else {
            return Self {
                droplet: Some(DropletMethod::default()),
                server: Some(ServerMethod::default()),
                database: Some(DatabaseMethod::default()),
            };
        };
        let expected = "the methods as a table, methods = { droplet = \"resize\", server = \
                        \"rescale\", database = \"standbys\" }";
        let Some(methods) = field.table(expected, problems) else {
            return Self { droplet: None, server: None, database: None };
        };
        let before = problems.errors();
        for entry in methods.unknown(&TABLES.methods) {
            match WITHOUT_CHOICE.iter().find(|(kind, _)| *kind == entry.name) {
                Some((_, why)) => {
                    let message = format!("there is no choice: {why}; remove the key");
                    problems.error(&entry.place, message);
                }
                None => entry.refuse(&TABLES.methods, problems),
            }
        }
        // A misspelled key looks absent below.
        let is_whole = problems.errors() == before;
        let droplet = [
            ("power-off", DropletMethod::PowerOff),
            ("resize", DropletMethod::Resize),
            ("hibernate", DropletMethod::Hibernate),
        ];
        let server = [
            ("power-off", ServerMethod::PowerOff),
            ("rescale", ServerMethod::Rescale),
            ("hibernate", ServerMethod::Hibernate),
        ];
        let database = [
            ("smallest-plan", DatabaseMethod::SmallestPlan),
            ("standbys", DatabaseMethod::Standbys),
        ];
        Self {
            droplet: choice(&methods, is_whole, ("droplet", &droplet), problems),
            server: choice(&methods, is_whole, ("server", &server), problems),
            database: choice(&methods, is_whole, ("database", &database), problems),
        }
    }

    fn methods(&self) -> Methods {
        Methods {
            droplet: self.droplet.unwrap_or_default(),
            server: self.server.unwrap_or_default(),
            database: self.database.unwrap_or_default(),
        }
    }

    /// Reports keys that have no effect with the chosen methods, or contradict them.
    fn refuse_what_does_not_fit(&self, table: &Table, policy: &Policy, problems: &mut Problems) {
        let keeps_sizes = |method| method != DropletMethod::Resize;
        let keeps_sizes = self.droplet.is_some_and(keeps_sizes);
        let keeps_types = |method| method != ServerMethod::Rescale;
        let keeps_types = self.server.is_some_and(keeps_types);
        if keeps_sizes {
            let message = "has no effect, because Droplets are not resized; write methods = { \
                           droplet = \"resize\" }, or remove the key";
            refuse(table, "resize_to", message, problems);
        }
        if keeps_types {
            let message = "has no effect, because servers are not rescaled; write methods = { \
                           server = \"rescale\" }, or remove the key";
            refuse(table, "rescale_to", message, problems);
            if policy.rescaled_runs {
                refuse(table, "rescaled_runs", message, problems);
            }
        }
        if policy.start_small && keeps_sizes && keeps_types {
            let message = "has no effect, because no machine's plan is changed; write methods = { \
                           droplet = \"resize\" } or { server = \"rescale\" }, or remove the key";
            refuse(table, "start_small", message, problems);
        }
        let keeps_droplets = |method| method != DropletMethod::Hibernate;
        let keeps_droplets = self.droplet.is_some_and(keeps_droplets);
        let keeps_servers = |method| method != ServerMethod::Hibernate;
        if policy.needs_private_ip && keeps_droplets {
            let message = "has no effect, because Droplets are not hibernated; write methods = { \
                           droplet = \"hibernate\" }, or remove the key";
            refuse(table, "needs_private_ip", message, problems);
        }
        if keeps_droplets && self.server.is_some_and(keeps_servers) {
            let message = "has no effect, because no machine is hibernated; write methods = { \
                           droplet = \"hibernate\" } or { server = \"hibernate\" }, or remove the key";
            refuse(table, "accept", message, problems);
            if policy.otherwise != Otherwise::default() {
                refuse(table, "otherwise", message, problems);
            }
        }
        if self.database == Some(DatabaseMethod::Standbys) {
            let message = "cannot be combined with methods.database = \"standbys\", which leaves \
                           the fewest nodes that the engine runs with; remove one of them";
            refuse(table, "stop_nodes", message, problems);
        }
    }
}

/// The method of a kind: the default if the key is absent, `None` if it could not be read.
fn choice<T: Copy + Default>(
    methods: &Table,
    is_whole: bool,
    (kind, choices): (&str, &[(&str, T)]),
    problems: &mut Problems,
) -> Option<T> {
    match methods.field(kind) {
        None => is_whole.then(T::default),
        Some(field) => field.choice(choices, problems),
    }
}

/// A key that names a plan, with the words for messages about it.
struct PlanKey {
    key: &'static str,
    /// The provider's term for such a plan.
    what: &'static str,
    expected: &'static str,
    example: &'static str,
}

const RESIZE_TO: PlanKey = PlanKey {
    key: "resize_to",
    what: "size",
    expected: "a Droplet size's slug",
    example: "s-1vcpu-1gb",
};

const RESCALE_TO: PlanKey = PlanKey {
    key: "rescale_to",
    what: "type",
    expected: "the name of a server type",
    example: "cpx12",
};

const STOP_SIZE: PlanKey = PlanKey {
    key: "stop_size",
    what: "plan",
    expected: "a database plan's slug",
    example: "db-s-1vcpu-1gb",
};

fn plan(table: &Table, plan: &PlanKey, problems: &mut Problems) -> Option<String> {
    let field = table.field(plan.key)?;
    let text = field.text(plan.example, problems)?;
    if !is_plan_name(text) {
        let PlanKey { what, expected, example, .. } = plan;
        let message = format!("invalid {what} `{text}`; write {expected}, such as \"{example}\"");
        problems.error(&field.place, message);
        return None;
    }
    Some(text.to_owned())
}
