//! What the clouds charge, checked against amounts computed by hand.

use cloud_simulator::{Act, BillQuery, Prices};
use serde_json::{Value, json};

use crate::client::Clouds;

/// Item, quantity, unit, unit price and amount of each line, and the totals at the end.
async fn lines(clouds: &Clouds, query: &str) -> Vec<Value> {
    let path = format!("/_simulator/bill?{query}");
    let answer = clouds.send("GET", &path, None).await;
    assert_eq!(answer.header("content-type"), Some("application/jsonl"));
    let lines = answer.text.lines();
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let fields = ["item", "quantity", "unit", "unit_price", "amount"];
    let short = |line: &Value| match line.get("total") {
        Some(total) => json!([total, line["currency"]]),
        None => fields.map(|field| line[field].clone()).into_iter().collect(),
    };
    lines.iter().map(short).collect()
}

fn act(clouds: &Clouds, resource: &str, act: Act) {
    clouds.simulator.person(&resource.parse().unwrap(), act).unwrap();
}

fn change_plan(clouds: &Clouds, resource: &str, plan: &str) {
    let plan = plan.to_owned();
    act(clouds, resource, Act::ChangePlan { plan, disk: false });
}

const HOUR: i64 = 3600;

fn droplet(size: &str) -> String {
    format!("[[droplets]]\nid = 1\nname = \"a\"\nstatus = \"off\"\ndisk = 25\nsize = \"{size}\"\n")
}

fn server(server_type: &str, created: &str) -> String {
    format!(
        "[[servers]]\nid = 42\nname = \"a\"\nstatus = \"off\"\nserver_type = \"{server_type}\"\n\
         created = \"{created}\"\nstays_off_after_change = true\n"
    )
}

#[tokio::test]
async fn a_droplet_without_power_is_billed_in_full() {
    let clouds = Clouds::with("[[droplets]]\nid = 1\nname = \"a\"\nsize = \"s-2vcpu-4gb\"").await;
    act(&clouds, "do/droplet/1", Act::PowerOff);
    clouds.pass(10 * HOUR);
    assert_eq!(clouds.state("do/droplet/1")["powered"], false);
    // 10 h at 0.03571.
    let expected =
        [json!(["s-2vcpu-4gb", 36_000, "second", "0.03571", "0.3571"]), json!(["0.3571", "USD"])];
    assert_eq!(lines(&clouds, "").await, expected);
    assert_eq!(lines(&clouds, "left_running=true").await, expected);
}

#[tokio::test]
async fn a_resized_droplet_is_billed_at_the_size_it_has_at_each_moment() {
    let clouds = Clouds::with(&droplet("s-4vcpu-8gb")).await;
    clouds.pass(HOUR);
    change_plan(&clouds, "do/droplet/1", "s-1vcpu-1gb");
    clouds.pass(15 * HOUR);
    change_plan(&clouds, "do/droplet/1", "s-4vcpu-8gb");
    clouds.pass(8 * HOUR);
    // Each resize takes a minute: small from 1:01 to 16:01, which is 15 h.
    let expected = [
        json!(["s-1vcpu-1gb", 54_000, "second", "0.00893", "0.13395"]),
        json!(["s-4vcpu-8gb", 32_400, "second", "0.07143", "0.64287"]),
        json!(["0.77682", "USD"]),
    ];
    assert_eq!(lines(&clouds, "").await, expected);
    let left_running =
        [json!(["s-4vcpu-8gb", 86_400, "second", "0.07143", "1.71432"]), json!(["1.71432", "USD"])];
    assert_eq!(lines(&clouds, "left_running=true").await, left_running);
}

#[tokio::test]
async fn a_rescaled_server_pays_started_hours_and_the_dearer_type_where_it_changes() {
    let clouds = Clouds::with(
        &server("ccx23", "2026-11-23T07:00:00Z").replace("status", "disk = 80\nstatus"),
    )
    .await;
    clouds.pass(HOUR + 1800);
    change_plan(&clouds, "hz/server/42", "cpx22");
    clouds.pass(9 * HOUR);
    change_plan(&clouds, "hz/server/42", "ccx23");
    clouds.pass(1800 + 1);
    // It changes in its second and eleventh hour. The twelfth has just begun.
    let expected = [
        json!(["ccx23", 4, "hour", "0.1378", "0.5512"]),
        json!(["cpx22", 8, "hour", "0.0312", "0.2496"]),
        json!(["primary-ipv4", 12, "hour", "0.0008", "0.0096"]),
        json!(["0.8104", "EUR"]),
    ];
    assert_eq!(lines(&clouds, "").await, expected);
    let left_running = [
        json!(["ccx23", 12, "hour", "0.1378", "1.6536"]),
        json!(["primary-ipv4", 12, "hour", "0.0008", "0.0096"]),
        json!(["1.6632", "EUR"]),
    ];
    assert_eq!(lines(&clouds, "left_running=true").await, left_running);
}

#[tokio::test]
async fn a_database_with_fewer_standbys_costs_less_once_they_are_gone() {
    let id = "9cc10173-e9ea-4176-9dbc-a4cee4c4ff30";
    let clouds = Clouds::with(&format!(
        "[[databases]]\nid = \"{id}\"\nname = \"a\"\nengine = \"pg\"\nplan = \"db-s-2vcpu-4gb\"\n\
         nodes = 2\n"
    ))
    .await;
    let resize = Act::Resize { plan: "db-s-2vcpu-4gb".to_owned(), nodes: 1, storage_mib: None };
    act(&clouds, &format!("do/database/{id}"), resize);
    clouds.pass(480 + 2 * HOUR);
    // 0.17857 · 480 / 3600 = 0.0238093333…
    let expected = [
        json!(["1 x db-s-2vcpu-4gb", 7200, "second", "0.08929", "0.17858"]),
        json!(["2 x db-s-2vcpu-4gb", 480, "second", "0.17857", "0.0238093333"]),
        json!(["0.2023893333", "USD"]),
    ];
    assert_eq!(lines(&clouds, "").await, expected);
    // 0.17857 · 7680 / 3600 = 0.3809493333…
    let left_running = lines(&clouds, "left_running=true").await;
    assert_eq!(left_running[1], json!(["0.3809493333", "USD"]));
}

const POOL: &str = "
[[clusters]]
id = \"c\"
name = \"staging\"

[[clusters.pools]]
id = \"p\"
name = \"general\"
size = \"s-2vcpu-4gb\"
count = 2
";

#[tokio::test]
async fn a_pool_at_zero_costs_nothing_and_new_nodes_are_billed_from_their_creation() {
    let clouds = Clouds::with(POOL).await;
    let scale = |count| Act::Scale { count, autoscale: None };
    clouds.pass(HOUR);
    act(&clouds, "do/node-pool/c/p", scale(0));
    clouds.pass(HOUR);
    // One node more than before, which `left_running` does not count.
    act(&clouds, "do/node-pool/c/p", scale(3));
    clouds.pass(HOUR);
    // Two nodes for 1:00:00 and the 90 s of draining, three for an hour: 7380 s + 10800 s.
    // 0.03571 · 18180 / 3600 = 0.1803355
    let expected = [
        json!(["s-2vcpu-4gb", 18_180, "second", "0.03571", "0.1803355"]),
        json!(["0.1803355", "USD"]),
    ];
    assert_eq!(lines(&clouds, "").await, expected);
    // 0.03571 · 21600 / 3600 = 0.21426
    let left_running =
        [json!(["s-2vcpu-4gb", 21_600, "second", "0.03571", "0.21426"]), json!(["0.21426", "USD"])];
    assert_eq!(lines(&clouds, "left_running=true").await, left_running);

    // Once a person deletes it, it costs nothing more, in either history.
    act(&clouds, "do/node-pool/c/p", Act::Delete);
    clouds.pass(HOUR);
    assert_eq!(lines(&clouds, "").await, expected);
    assert_eq!(lines(&clouds, "left_running=true").await, left_running);
}

#[tokio::test]
async fn of_a_month_the_dearest_672_hours_are_charged() {
    let clouds = Clouds::with(&droplet("s-4vcpu-8gb")).await;
    let december = "since=2026-12-01T00:00:00Z&until=2027-01-01T00:00:00Z";
    // Until 2026-12-11, 00:00.
    clouds.pass(17 * HOUR + 17 * 24 * HOUR - 60);
    change_plan(&clouds, "do/droplet/1", "s-1vcpu-1gb");
    clouds.pass(60 * 24 * HOUR);
    // December has 744 h: 240 of them at the large size, and of the other 504 only 432 are charged.
    let expected = [
        json!(["s-1vcpu-1gb", 432 * HOUR, "second", "0.00893", "3.85776"]),
        json!(["s-4vcpu-8gb", 240 * HOUR, "second", "0.07143", "17.1432"]),
        json!(["21.00096", "USD"]),
    ];
    assert_eq!(lines(&clouds, december).await, expected);
    // 672 · 0.07143
    let left_running = lines(&clouds, &format!("{december}&left_running=true")).await;
    assert_eq!(left_running[1], json!(["48.00096", "USD"]));
}

#[tokio::test]
async fn a_servers_month_costs_no_more_than_the_monthly_price() {
    let clouds = Clouds::with(&server("ccx23", "2026-11-01T00:00:00Z")).await;
    clouds.pass(60 * 24 * HOUR);
    // Its hours are those of its life, so December's are 744: 102.5232 and 0.5952.
    let december = "since=2026-12-01T00:00:00Z&until=2027-01-01T00:00:00Z";
    let expected = [
        json!(["ccx23", 1, "month", "85.99", "85.99"]),
        json!(["primary-ipv4", 1, "month", "0.50", "0.50"]),
        json!(["86.49", "EUR"]),
    ];
    assert_eq!(lines(&clouds, december).await, expected);
}

#[tokio::test]
async fn an_old_server_keeps_its_price_until_its_type_changes() {
    let clouds = Clouds::with(&server("cpx22", "2026-06-14T07:30:00Z")).await;
    clouds.pass(HOUR);
    // The hour that began at 6:30 belongs to the time before the bill.
    let kept = json!(["cpx22", 1, "hour", "0.0128", "0.0128"]);
    assert_eq!(lines(&clouds, "").await[0], kept);
    for plan in ["cpx32", "cpx22"] {
        change_plan(&clouds, "hz/server/42", plan);
        clouds.pass(HOUR);
    }
    // From 7:30 to 8:30 and from 8:30 to 9:30 it is partly cpx32; from 9:01:30, cpx22 at the new
    // price.
    let expected = [
        json!(["cpx22", 1, "hour", "0.0312", "0.0312"]),
        json!(["cpx32", 2, "hour", "0.0569", "0.1138"]),
        json!(["primary-ipv4", 3, "hour", "0.0008", "0.0024"]),
        json!(["0.1474", "EUR"]),
    ];
    clouds.pass(1800);
    assert_eq!(lines(&clouds, "").await, expected);
    let left_running = lines(&clouds, "left_running=true").await;
    assert_eq!(left_running[0], json!(["cpx22", 3, "hour", "0.0128", "0.0384"]));
}

#[tokio::test]
async fn whatever_there_was_costs_a_cent() {
    let clouds = Clouds::with(&droplet("s-1vcpu-1gb")).await;
    clouds.pass(5);
    act(&clouds, "do/droplet/1", Act::Delete);
    clouds.pass(HOUR);
    let expected = [json!(["s-1vcpu-1gb", 1, "minimum", "0.01", "0.01"]), json!(["0.01", "USD"])];
    assert_eq!(lines(&clouds, "").await, expected);
    assert_eq!(lines(&clouds, "left_running=true").await, expected);
    // The minimum is charged once, where the Droplet has ended.
    assert!(lines(&clouds, "since=2026-11-23T07:00:05Z").await.is_empty());

    // A Droplet that still exists is charged for its time so far: 0.00893 · 60 / 3600.
    clouds.simulator.create(&format!("{}account = \"do\"", droplet("s-1vcpu-1gb"))).unwrap();
    clouds.pass(60);
    let so_far = lines(&clouds, "since=2026-11-23T07:00:05Z").await;
    assert_eq!(so_far[1], json!(["0.0001488333", "USD"]));
}

#[tokio::test]
async fn bills_of_parts_add_up_to_the_bill_of_the_whole() {
    let fleet = format!("{}{}{POOL}", droplet("c-4"), server("ccx13", "2026-11-20T09:12:13Z"));
    let clouds = Clouds::with(&fleet).await;
    clouds.pass(50 * HOUR + 7);
    let begin = clouds.now() - jiff::SignedDuration::from_secs(50 * HOUR + 7);
    let of = |since, until| {
        let query = BillQuery { since, until, left_running: false };
        clouds.simulator.bill(&query)
    };
    let middle = Some(begin + jiff::SignedDuration::from_secs(20 * HOUR + 1234));
    let (whole, first, second) = (of(None, None), of(None, middle), of(middle, None));
    assert_eq!((whole.since, whole.until), (begin, clouds.now()));
    for (currency, total) in whole.totals() {
        // They may differ only by the rounding of a line's last decimal.
        let parts = first.totals()[&currency] + second.totals()[&currency];
        let difference = total.less(parts) + parts.less(total);
        assert!(difference < "0.000000001".parse().unwrap(), "{total} {parts}");
    }
    // The server's hours begin at 12 min 13 s past the hour: 50 of them begin within the 50 h and 7
    // s.
    assert_eq!(whole.lines.iter().find(|line| line.item == "ccx13").unwrap().quantity, 50);
}

#[tokio::test]
async fn a_line_names_its_resource_and_another_price_list_charges_other_prices() {
    let clouds = Clouds::with(&droplet("c-4")).await;
    clouds.pass(HOUR);
    let answer = clouds.send("GET", "/_simulator/bill", None).await.text;
    let line: Value = serde_json::from_str(answer.lines().next().unwrap()).unwrap();
    let expected = json!({
        "resource": "do/droplet/1",
        "item": "c-4",
        "quantity": 3600,
        "unit": "second",
        "unit_price": "0.125",
        "per": 3600,
        "amount": "0.125",
        "currency": "USD",
    });
    assert_eq!(line, expected);
    let dearer = include_str!("../../prices.toml").replace("\"0.125\"", "\"0.25\"");
    clouds.simulator.set_prices(dearer.parse::<Prices>().unwrap());
    assert_eq!(lines(&clouds, "").await[1], json!(["0.25", "USD"]));
    let path = "/_simulator/bill?from=2026-11-23T07:00:00Z";
    let error = clouds.send("GET", path, None).await.expect(400);
    assert!(error["error"].as_str().unwrap().contains("from"), "{error}");
}
