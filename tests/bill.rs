//! What the simulated clouds charge for a week of the example fleet, and what `offhours saved` says of it.
//! Tests begin in the order of their names, and this one takes the longest.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::Value;

use crate::{
    programs::Terminal,
    support::{monday, run},
};

/// The example, with tokens that a test may use.
fn example(text: &str) -> String {
    text.replace("OFFHOURS_DEMO_DO_TOKEN", "DO_TOKEN")
        .replace("OFFHOURS_DEMO_HZ_TOKEN", "HZ_TOKEN")
        .replace("simulated-do-token", "secret-do-token")
        .replace("simulated-hz-token", "secret-hz-token")
}

/// What the simulated cloud charges for the databases of the example.
const PRICES: &str = r#"
[prices.database-month]
"db-s-1vcpu-1gb" = 15
"3 x db-s-1vcpu-1gb" = 45
"db-s-1vcpu-2gb" = 30
"2 x db-s-1vcpu-2gb" = 60
"3 x db-s-1vcpu-2gb" = 90
"db-s-2vcpu-4gb" = 60
"2 x db-s-2vcpu-4gb" = 120
"3 x db-s-2vcpu-4gb" = 180
"db-s-4vcpu-8gb" = 120
"2 x db-s-4vcpu-8gb" = 240
"3 x db-s-4vcpu-8gb" = 360
"#;

/// A report by this many lines.
async fn report(terminal: &Terminal, arguments: &[&str]) -> Value {
    let arguments = [&["saved", "--since", "8d", "-o", "json"], arguments].concat();
    let ended = terminal.run(&arguments).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

fn rows(report: &Value) -> &[Value] {
    report["rows"].as_array().unwrap()
}

/// The sum of an amount over all rows in a currency.
fn sum(report: &Value, currency: &str, key: &str) -> f64 {
    let rows = rows(report).iter().filter(|row| row["currency"] == currency);
    rows.filter_map(|row| row[key].as_f64()).sum()
}

#[test]
fn what_a_week_saved_is_what_the_clouds_charge_less_and_the_rest_is_named() {
    run(async {
        let fleet = example(include_str!("../examples/fleet.toml"));
        let configuration = example(include_str!("../examples/offhours.toml"));
        let terminal = Terminal::with_fleet(&fleet, "10:00:00").await;
        terminal.local(&configuration, "10:30:00").await;
        for machine in ["berlin-bench", "berlin-build"] {
            let ended = terminal.run(&["rehearse", machine, "--yes"]).await;
            assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        }
        let week = SignedDuration::from_hours(7 * 24);
        terminal.local_until(&configuration, monday("10:00:00") + week).await;

        // Every resource whose price the provider has is known, and the others are named.
        let found = report(&terminal, &[]).await;
        let (mut known, mut unknown) = (BTreeMap::new(), Vec::new());
        for row in rows(&found) {
            let name = row["group"].as_str().unwrap();
            if row["unknown"] == 0 {
                known.insert(name, row["saved"].as_f64().unwrap());
            } else {
                assert_eq!(row["saved"], Value::Null, "{row}");
                unknown.push((row["resource"].as_str().unwrap(), row["why"].to_string()));
            }
        }
        for (resource, why) in unknown {
            assert!(resource.starts_with("do-main/database/"), "{resource}: {why}");
            assert!(why.contains("price not in the API: [prices.database-month]"), "{why}");
        }
        for name in ["berlin-render", "berlin-bench", "general", "workers", "berlin-solver"] {
            assert!(known[name] > 0.0, "{name}: {known:?}");
        }
        assert!(known["berlin-ci-1"].abs() < 1e-9);

        // With the prices of databases, both bills are known.
        let priced = format!("owner_tag = \"team\"\n{configuration}{PRICES}");
        terminal.write(&priced);
        let ended = terminal.run(&["apply", "--yes"]).await;
        assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
        let found = report(&terminal, &[]).await;
        assert_eq!(found["known"], found["of"], "{found:#}");
        let simulator = &terminal.simulator;
        let now = simulator.now().await;
        let charged = simulator.bill(&format!("until={now}")).await;
        let full = simulator.bill(&format!("until={now}&left_running=true")).await;
        for (account, currency) in [("do-main/", "USD"), ("hz-eu/", "EUR")] {
            let of = |bill: &BTreeMap<String, f64>| -> f64 {
                let of = bill.iter().filter(|(resource, _)| resource.starts_with(account));
                of.map(|(_, amount)| amount).sum()
            };
            let saved = of(&full) - of(&charged);
            let said = sum(&found, currency, "saved");
            assert!(
                (said - saved).abs() <= 0.01 * saved,
                "{currency}: said {said}, charged {saved} less: {found:#}\n{charged:#?}\n{full:#?}"
            );
            // However the rows are grouped, they add up to the same.
            for by in ["schedule", "day", "week", "tag:team"] {
                let grouped = report(&terminal, &["--by", by]).await;
                let by_group = sum(&grouped, currency, "saved");
                assert!((said - by_group).abs() < 0.1, "{by}: {by_group}, not {said}");
            }
        }

        // A report of an owner has what is theirs alone, and what that saved.
        let by_owner = report(&terminal, &["--by", "owner"]).await;
        let of_web = rows(&by_owner).iter().find(|row| row["group"] == "web").unwrap();
        let shown = terminal.run(&["report", "--owner", "web", "--markdown"]).await.stdout;
        let tables: Vec<_> = shown.lines().filter(|line| line.starts_with("| ")).collect();
        let saved = of_web["saved"].as_f64().unwrap();
        let saved = format!("| berlin-office | {saved:.2} USD |");
        let [_, schedule, _, money] = tables[..] else {
            panic!("{shown}");
        };
        assert!(schedule.starts_with("| berlin-office | ") && schedule.ends_with(" of 1 |"));
        assert_eq!(money, saved, "{shown}");
        let activity = async |arguments: &[&str]| {
            let page = terminal.run(arguments).await.stdout;
            let (_, activity) = page.split_once("Who changed what").unwrap();
            activity.contains("apply")
        };
        assert!(activity(&["report"]).await);
        assert!(!activity(&["report", "--owner", "web"]).await);
        let unknown = terminal.run(&["report", "--owner", "wbe"]).await;
        assert_eq!(unknown.code, Some(2));
        assert!(unknown.stderr.contains("did you mean `web`?"), "{}", unknown.stderr);

        // People read the totals last.
        let shown = terminal.run(&["saved", "--since", "8d"]).await.stdout;
        let last: Vec<_> = shown.lines().rev().take(2).collect();
        assert!(last.join(" ").contains("USD saved"), "{shown}");
    });
}
