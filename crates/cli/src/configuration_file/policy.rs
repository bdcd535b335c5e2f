//! The policy of a schedule: what its table says besides timing and resources.

use domain::{
    configuration::{DatabaseMethod, DropletMethod, Methods, Otherwise, Policy, ServerMethod},
    stop_method::is_plan_name,
};

use super::document::Field;

/// The keys that name a plan: the provider's term for such a plan, and what is expected.
const PLANS: [(&str, &str, &str); 3] = [
    ("resize_to", "size", "a Droplet size's slug"),
    ("rescale_to", "type", "the name of a server type"),
    ("stop_size", "plan", "a database plan's slug"),
];

const NOT_RESIZED: &str = "has no effect, because Droplets are not resized; write methods = { \
                           droplet = \"resize\" }, or remove the key";
const NOT_RESCALED: &str = "has no effect, because servers are not rescaled; write methods = { \
                            server = \"rescale\" }, or remove the key";
const UNCHANGED: &str = "has no effect, because no machine's plan is changed; write methods = { \
                         droplet = \"resize\" } or { server = \"rescale\" }, or remove the key";
const NOT_HIBERNATED: &str = "has no effect, because no machine is hibernated; write methods = { \
                              droplet = \"hibernate\" } or { server = \"hibernate\" }, or remove \
                              the key";
const NO_DROPLET: &str = "has no effect, because Droplets are not hibernated; write methods = { \
                          droplet = \"hibernate\" }, or remove the key";
const STANDBYS: &str = "cannot be combined with methods.database = \"standbys\", which leaves the \
                        fewest nodes that the engine runs with; remove one of them";
const ENFORCED: &str = "cannot be combined with enforce, which stops what a person left running; \
                        remove one of them";

/// Reads the policy; what is invalid has its default.
pub(super) fn policy(field: &Field) -> Policy {
    let policy: Policy = field.read().unwrap_or_default();
    for (key, what, expected) in PLANS {
        if let Some(plan) = field.field(key)
            && let Some(text) = plan.value.as_str().filter(|text| !is_plan_name(text))
        {
            let example = plan.example();
            plan.error(format!("invalid {what} `{text}`; write {expected}, such as \"{example}\""));
        }
    }
    if policy.enforce && policy.retain_running {
        field.refuse("retain_running", ENFORCED);
    }
    // It is unknown which method was meant.
    if field.is_unsure_of(&["methods"]) {
        return policy;
    }
    let Methods { droplet, server, database } = policy.methods;
    let resizes = droplet == DropletMethod::Resize;
    let rescales = server == ServerMethod::Rescale;
    let hibernates_droplets = droplet == DropletMethod::Hibernate;
    let hibernates = hibernates_droplets || server == ServerMethod::Hibernate;
    for (key, is_wrong, message) in [
        ("resize_to", !resizes, NOT_RESIZED),
        ("rescale_to", !rescales, NOT_RESCALED),
        ("rescaled_runs", policy.rescaled_runs && !rescales, NOT_RESCALED),
        ("start_small", policy.start_small && !resizes && !rescales, UNCHANGED),
        ("needs_private_ip", policy.needs_private_ip && !hibernates_droplets, NO_DROPLET),
        ("accept", !hibernates, NOT_HIBERNATED),
        ("otherwise", policy.otherwise != Otherwise::default() && !hibernates, NOT_HIBERNATED),
        ("stop_nodes", database == DatabaseMethod::Standbys, STANDBYS),
    ] {
        if is_wrong {
            field.refuse(key, message);
        }
    }
    policy
}
