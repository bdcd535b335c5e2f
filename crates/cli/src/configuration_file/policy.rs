//! How a schedule is followed: what its table says besides when and for which resources.

use domain::configuration::{Adopt, Policy};

use super::{
    document::{Problems, Table},
    mode,
};

/// How the schedule is followed; the default where something is wrong.
pub(super) fn policy(table: &Table, problems: &mut Problems) -> Policy {
    let default = Policy::default();
    let mut flag = |key: &str, default: bool| {
        let field = table.field(key);
        field
            .and_then(|field| field.flag(problems))
            .unwrap_or(default)
    };
    let policy = Policy {
        graceful: flag("graceful", default.graceful),
        force: flag("force", default.force),
        enforce: flag("enforce", default.enforce),
        retain_running: flag("retain_running", default.retain_running),
        mode: mode(table, problems),
        adopt: adopt(table, problems),
        stop_size: stop_size(table, problems),
        stop_nodes: table
            .field("stop_nodes")
            .and_then(|field| field.count(1..=3, problems)),
        ..Policy::default()
    };
    if policy.enforce
        && policy.retain_running
        && let Some(field) = table.field("retain_running")
    {
        let message = "cannot be combined with enforce, which stops what a person left running; \
                       remove one of them";
        problems.error(&field.place, message);
    }
    policy
}

fn adopt(table: &Table, problems: &mut Problems) -> Adopt {
    let choices = [("at-once", Adopt::AtOnce), ("next-edge", Adopt::NextEdge)];
    let field = table.field("adopt");
    let adopt = field.and_then(|field| field.choice(&choices, problems));
    adopt.unwrap_or_default()
}

fn stop_size(table: &Table, problems: &mut Problems) -> Option<String> {
    let field = table.field("stop_size")?;
    let text = field.text("db-s-1vcpu-1gb", problems)?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if text.is_empty() || !text.chars().all(fits) {
        let advice = "write a database plan's slug, such as \"db-s-1vcpu-1gb\"";
        problems.error(&field.place, format!("invalid plan `{text}`; {advice}"));
        return None;
    }
    Some(text.to_owned())
}
