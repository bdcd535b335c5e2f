//! The commands with which a person recreates a machine without Offhours.

use std::collections::BTreeSet;

use domain::hibernation::Manifest;

/// A command line under construction.
struct Line(String);

impl Line {
    fn of(words: &str) -> Self {
        Self(words.to_owned())
    }

    /// Appends a word, quoted for the shell if necessary.
    fn word(mut self, word: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+".contains(c);
        self.0.push(' ');
        if !word.is_empty() && word.chars().all(is_plain) {
            self.0.push_str(word);
        } else {
            self.0 += "'";
            self.0 += &word.replace('\'', r"'\''");
            self.0 += "'";
        }
        self
    }

    fn option(self, name: &str, value: &str) -> Self {
        self.word(name).word(value)
    }

    fn options<'v>(self, name: &str, values: impl IntoIterator<Item = &'v String>) -> Self {
        let values = values.into_iter();
        values.fold(self, |line, value| line.option(name, value))
    }
}

/// The commands for Hetzner's CLI, equivalent to the requests that [`provider`] would send.
pub(super) fn with_hcloud(manifest: &Manifest, snapshot: u64) -> Vec<String> {
    let snapshot = snapshot.to_string();
    let name = manifest.name.as_str();
    let mut create = Line::of("hcloud server create")
        .option("--name", name)
        .option("--type", &manifest.size.plan)
        .option("--location", &manifest.region)
        .option("--image", &snapshot)
        .option("--ssh-key", &manifest.ssh_key);
    for (is_ipv6, option, without) in
        [(false, "--primary-ipv4", "--without-ipv4"), (true, "--primary-ipv6", "--without-ipv6")]
    {
        let mut all = manifest.addresses.iter();
        create = match all.find(|one| one.is_ipv6 == is_ipv6) {
            Some(address) => create.option(option, &address.id),
            // Otherwise it would be given a new address, which costs money.
            None => create.word(without),
        };
    }
    let create = create
        .options("--volume", &manifest.volumes)
        .options("--firewall", &manifest.firewalls)
        .options("--placement-group", &manifest.placement_group)
        .options("--label", &manifest.tags)
        .word("--start-after-create=false");
    let mut lines = vec![Line::of("hcloud image describe").word(&snapshot), create];
    lines.extend(manifest.networks.iter().map(|one| {
        Line::of("hcloud server attach-to-network")
            .word(name)
            .option("--network", &one.network)
            .option("--ip", &one.ip)
            .options("--alias-ips", &one.alias_ips)
    }));
    lines.extend(manifest.load_balancers.iter().map(|one| {
        let line =
            Line::of("hcloud load-balancer add-target").word(&one.id).option("--server", name);
        if one.privately { line.word("--use-private-ip") } else { line }
    }));
    lines.extend(
        manifest
            .floating_ips
            .iter()
            .map(|id| Line::of("hcloud floating-ip assign").word(id).word(name)),
    );
    if manifest.backups {
        lines.push(Line::of("hcloud server enable-backup").word(name));
    }
    lines.push(Line::of("hcloud server poweron").word(name));
    lines.into_iter().map(|line| line.0).collect()
}

/// The commands for `DigitalOcean`'s CLI. A newly created Droplet is switched on.
pub(super) fn with_doctl(manifest: &Manifest, snapshot: u64) -> Vec<String> {
    let snapshot = snapshot.to_string();
    let joined = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(",");
    let mut create = Line::of("DROPLET=$(doctl compute droplet create")
        .word(&manifest.name)
        .option("--size", &manifest.size.plan)
        .option("--region", &manifest.region)
        .option("--image", &snapshot)
        .option("--ssh-keys", &manifest.ssh_key);
    for (option, values) in [("--tag-names", &manifest.tags), ("--volumes", &manifest.volumes)] {
        if !values.is_empty() {
            create = create.option(option, &joined(values));
        }
    }
    create = create.options("--vpc-uuid", &manifest.vpc);
    for (feature, option) in [
        ("ipv6", "--enable-ipv6"),
        ("monitoring", "--enable-monitoring"),
        ("droplet_agent", "--droplet-agent"),
    ] {
        if manifest.features.contains(feature) {
            create = create.word(option);
        }
    }
    if manifest.backups {
        create = create.word("--enable-backups");
    }
    if let Some(policy) = &manifest.backup_policy {
        create = create
            .option("--backup-policy-plan", &policy.plan)
            .options("--backup-policy-weekday", &policy.weekday)
            .options("--backup-policy-hour", &policy.hour.map(|hour| hour.to_string()));
    }
    create.0.push_str(" --wait --format ID --no-header)");
    let mut lines = vec![Line::of("doctl compute snapshot get").word(&snapshot), create];
    if manifest.private_only {
        lines.push(Line::of("# It had no public address."));
    }
    let on_droplet = |words: &str, id: &str, option: &str| {
        let line = Line::of(words).word(id);
        Line(format!("{} {option}\"$DROPLET\"", line.0))
    };
    lines.extend(
        manifest
            .firewalls
            .iter()
            .map(|id| on_droplet("doctl compute firewall add-droplets", id, "--droplet-ids ")),
    );
    lines.extend(manifest.load_balancers.iter().map(|one| {
        let words = "doctl compute load-balancer add-droplets";
        on_droplet(words, &one.id, "--droplet-ids ")
    }));
    lines.extend(manifest.floating_ips.iter().map(|ip| {
        let words = if ip.contains(':') {
            "doctl compute reserved-ipv6-action assign"
        } else {
            "doctl compute reserved-ip-action assign"
        };
        on_droplet(words, ip, "")
    }));
    lines.extend(manifest.project.iter().map(|id| {
        let line = Line::of("doctl projects resources assign").word(id);
        Line(format!("{} --resource \"do:droplet:$DROPLET\"", line.0))
    }));
    lines.into_iter().map(|line| line.0).collect()
}
