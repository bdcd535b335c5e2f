//! Prices in the clouds' responses.

use cloud_simulator::Prices;
use serde_json::Value;

use crate::client::Clouds;

const FLEET: &str = r#"
[[droplets]]
id = 1
name = "plain"
size = "c-4"

[[servers]]
id = 42
name = "builder"
server_type = "cpx22"
"#;

/// The entry of a list in which `field` is `text`.
#[track_caller]
fn entry<'a>(list: &'a Value, field: &str, text: &str) -> &'a Value {
    let mut entries = list.as_array().unwrap().iter();
    entries.find(|entry| entry[field] == text).unwrap()
}

async fn shown(clouds: &Clouds) -> [Value; 4] {
    let sizes = clouds.get("/v2/sizes").await;
    let droplet = clouds.get("/v2/droplets/1").await;
    let types = clouds.get("/v1/server_types").await;
    let server = clouds.get("/v1/servers/42").await;
    let in_nuremberg = |server_type: &Value| {
        entry(&server_type["prices"], "location", "nbg1")["price_hourly"].clone()
    };
    [
        entry(&sizes["sizes"], "slug", "c-4")["price_monthly"].clone(),
        droplet["droplet"]["size"]["price_hourly"].clone(),
        in_nuremberg(entry(&types["server_types"], "name", "cpx22")),
        in_nuremberg(&server["server"]["server_type"]),
    ]
}

#[tokio::test]
async fn every_answer_takes_its_prices_from_the_list() {
    let clouds = Clouds::with(FLEET).await;
    let [monthly, hourly, of_type, of_server] = shown(&clouds).await;
    assert_eq!((monthly.as_f64(), hourly.as_f64()), (Some(84.0), Some(0.125)));
    assert_eq!(of_type["net"], "0.0312000000");
    assert_eq!(of_type["gross"], "0.0371280000");
    assert_eq!(of_server, of_type);

    let dearer = include_str!("../../prices.toml")
        .replace(
            "c-4 = { monthly = \"84.00\", hourly = \"0.125\" }",
            "c-4 = { monthly = \"168.00\", hourly = \"0.25\" }",
        )
        .replace("\"0.0312\"", "\"0.0400\"");
    clouds.simulator.set_prices(dearer.parse::<Prices>().unwrap());
    let [monthly, hourly, of_type, of_server] = shown(&clouds).await;
    assert_eq!((monthly.as_f64(), hourly.as_f64()), (Some(168.0), Some(0.25)));
    assert_eq!(of_type["net"], "0.0400000000");
    // The server's response is cached between requests, but not with its old price.
    assert_eq!(of_server, of_type);
}

#[tokio::test]
async fn a_price_list_in_floats_has_the_noise_of_floats() {
    let clouds = Clouds::with(FLEET).await;
    let sizes = clouds.get("/v2/sizes").await;
    let hourly = &entry(&sizes["sizes"], "slug", "s-1vcpu-1gb")["price_hourly"];
    assert_eq!(hourly.as_f64(), Some(0.008_929_999_545_216_56));
}

#[tokio::test]
async fn what_can_no_longer_be_ordered_says_so() {
    let clouds = Clouds::with(FLEET).await;
    let server = clouds.get("/v1/server_types?name=cpx21").await;
    let cpx21 = &server["server_types"][0];
    assert_eq!(cpx21["deprecated"], false);
    let locations = &cpx21["locations"];
    assert_eq!(entry(locations, "name", "ash")["available"], true);
    let here = entry(locations, "name", "fsn1");
    assert_eq!(here["deprecation"]["unavailable_after"], "2026-01-01T00:00:00Z");
}

#[tokio::test]
async fn the_pricing_agrees_with_the_server_types() {
    let clouds = Clouds::with(FLEET).await;
    let pricing = clouds.get("/v1/pricing").await["pricing"].clone();
    assert_eq!(pricing["currency"], "EUR");
    assert_eq!(pricing["vat_rate"], "19.0000000000");
    let types = clouds.get("/v1/server_types?per_page=50").await;
    let here = entry(&pricing["server_types"], "name", "ccx13");
    let there = entry(&types["server_types"], "name", "ccx13");
    assert_eq!((&here["id"], &here["prices"]), (&there["id"], &there["prices"]));
    let ipv4 = entry(&pricing["primary_ips"], "type", "ipv4");
    let ipv4 = entry(&ipv4["prices"], "location", "hel1");
    assert_eq!(ipv4["price_hourly"]["net"], "0.0008000000");
    let image = &pricing["image"]["price_per_gb_month"];
    assert_eq!(image["net"], "0.0143000000");
}
