//! The plans on offer, request by request.

use domain::{
    ResourceKind,
    configuration::Provider,
    money::{Currency, Money},
    plan::Catalog,
    prices::{OwnPrices, Prices},
};
use serde_json::{Value, json};

use super::{
    do_error, hz_error, kind,
    script::{Script, answer, ok},
};

fn size(slug: &str, hourly: f64, more: Value) -> Value {
    let mut size = json!({
        "slug": slug, "vcpus": 1, "memory": 1024, "disk": 25, "transfer": 1.0,
        "price_monthly": 6.0, "price_hourly": hourly, "regions": ["fra1", "nyc1"],
        "available": true, "description": "Basic",
    });
    let more = more.as_object().unwrap().clone();
    size.as_object_mut().unwrap().extend(more);
    size
}

fn sizes(of: Vec<Value>, next: Option<u32>) -> Value {
    let link = |page| format!("https://api.digitalocean.com/v2/sizes?page={page}&per_page=200");
    json!({"sizes": of, "links": {"pages": {"next": next.map(link)}}, "meta": {"total": 3}})
}

fn price(catalog: &Catalog, slug: &str, region: &str) -> (bool, bool, String, String) {
    let offer = catalog.offer(slug, region).unwrap();
    let (hourly, monthly) = (offer.hourly, offer.monthly);
    (offer.orderable, offer.deprecated, format!("{hourly:?}"), format!("{monthly:?}"))
}

/// An amount as [`price`] shows it.
fn amount(text: &str, currency: Currency) -> String {
    format!("{:?}", Money::parse(text, currency).unwrap())
}

#[tokio::test]
async fn all_pages_of_sizes_are_read_and_prices_have_their_own_digits() {
    let gpu = size("gpu-h100x1-80gb", 3.39, json!({"gpu_info": {"count": 1}}));
    let withdrawn = size("c-4", 0.125, json!({"available": false, "regions": null}));
    let cloud = Script::play([
        (
            "GET /v2/sizes?per_page=200&page=1",
            ok(sizes(vec![size("s-1vcpu-1gb", 0.008_929_999_545_216_56, json!({}))], Some(2))),
        ),
        ("GET /v2/sizes?per_page=200&page=2", ok(sizes(vec![gpu, withdrawn], None))),
    ])
    .await;
    let catalog = cloud.digitalocean().machine_plans().await.unwrap();
    let usd = |text| amount(text, Currency::Usd);
    for region in ["fra1", "nyc1"] {
        let expected = (true, false, usd("0.00893"), usd("6"));
        assert_eq!(price(&catalog, "s-1vcpu-1gb", region), expected);
    }
    assert_eq!(catalog.offer("s-1vcpu-1gb", "ams3"), None);
    let plan = catalog.plan("s-1vcpu-1gb").unwrap();
    assert_eq!((plan.vcpus, plan.memory_mib, plan.disk_gib), (1, 1024, 25));
    let is_gpu = |slug| catalog.plan(slug).unwrap().gpu;
    assert!(!is_gpu("s-1vcpu-1gb") && is_gpu("gpu-h100x1-80gb"));
    assert!(catalog.plan("c-4").unwrap().offers.is_empty());
    cloud.finish();
}

#[tokio::test]
async fn a_size_that_cannot_be_ordered_says_so_in_each_region() {
    let sold_out = size("c-4", 0.125, json!({"available": false}));
    let cloud =
        Script::play([("GET /v2/sizes?per_page=200&page=1", ok(sizes(vec![sold_out], None)))])
            .await;
    let catalog = cloud.digitalocean().machine_plans().await.unwrap();
    let usd = |text| amount(text, Currency::Usd);
    let expected = (false, false, usd("0.125"), usd("6"));
    assert_eq!(price(&catalog, "c-4", "fra1"), expected);
    cloud.finish();
}

#[tokio::test]
async fn a_list_of_plans_that_is_refused_or_not_understood_is_an_error() {
    let unpriced = json!({"sizes": [{"slug": "c-4"}]});
    for (given, expected) in [
        (ok(unpriced), "not understood"),
        (answer(403, do_error("forbidden", "no sizes:read")), "not permitted"),
    ] {
        let cloud = Script::play([("GET /v2/sizes?per_page=200&page=1", given)]).await;
        let error = cloud.digitalocean().machine_plans().await.unwrap_err();
        assert_eq!(kind(&error), expected, "{error}");
        cloud.finish();
    }
    let mut unreadable = server_type("cx23", json!([]));
    unreadable["prices"][0]["price_hourly"]["net"] = json!("free");
    for (given, expected) in [
        (ok(server_types(vec![unreadable], None)), "not understood"),
        (answer(503, hz_error("unavailable", "later")), "unavailable"),
    ] {
        let cloud = Script::play([("GET /v1/server_types?per_page=50&page=1", given)]).await;
        let error = cloud.hetzner(&[]).machine_plans().await.unwrap_err();
        assert_eq!(kind(&error), expected, "{error}");
        cloud.finish();
    }
}

fn server_type(name: &str, locations: Value) -> Value {
    let price = |location: &str| {
        json!({
            "location": location,
            "price_hourly": {"net": "0.0088000000", "gross": "0.0104720000"},
            "price_monthly": {"net": "5.4900000000", "gross": "6.5331000000"},
            "included_traffic": 0, "price_per_tb_traffic": {"net": "1.0", "gross": "1.19"},
        })
    };
    json!({
        "id": 114, "name": name, "description": name, "cores": 2, "memory": 4.0, "disk": 40,
        "architecture": "x86", "storage_type": "local", "cpu_type": "shared",
        "deprecated": false, "deprecation": null, "locations": locations,
        "prices": [price("fsn1"), price("hel1"), price("ash")],
    })
}

fn server_types(of: Vec<Value>, next: Option<u32>) -> Value {
    json!({"server_types": of, "meta": {"pagination": {
        "page": 1, "per_page": 50, "previous_page": null, "next_page": next,
        "last_page": null, "total_entries": null,
    }}})
}

fn withdrawal() -> Value {
    json!({"announced": "2025-10-16T06:00:00Z", "unavailable_after": "2026-01-01T00:00:00Z"})
}

#[tokio::test]
async fn all_pages_of_server_types_are_read_with_what_each_location_says() {
    let locations = json!([
        {"id": 1, "name": "fsn1", "available": true, "deprecation": null, "recommended": true},
        {"id": 3, "name": "hel1", "available": false, "deprecation": withdrawal()},
    ]);
    let arm = {
        let mut arm = server_type("cax11", json!([{"name": "fsn1", "deprecation": null}]));
        arm["architecture"] = json!("arm");
        arm["storage_type"] = json!("network");
        arm
    };
    let cloud = Script::play([
        (
            "GET /v1/server_types?per_page=50&page=1",
            ok(server_types(vec![server_type("cx23", locations)], Some(2))),
        ),
        ("GET /v1/server_types?per_page=50&page=2", ok(server_types(vec![arm], None))),
    ])
    .await;
    let catalog = cloud.hetzner(&[]).machine_plans().await.unwrap();
    let eur = |text| amount(text, Currency::Eur);
    let offer = |orderable, deprecated| (orderable, deprecated, eur("0.0088"), eur("5.49"));
    assert_eq!(price(&catalog, "cx23", "fsn1"), offer(true, false));
    assert_eq!(price(&catalog, "cx23", "hel1"), offer(false, true));
    // It has a price there but is not supported.
    assert_eq!(price(&catalog, "cx23", "ash"), offer(false, false));
    assert_eq!(price(&catalog, "cax11", "fsn1"), offer(true, false));
    let size = catalog.plan("cx23").unwrap().size();
    assert_eq!((size.vcpus, size.memory_mib, size.disk_gib), (2, 4096, 40));
    let storage = |slug| {
        let size = catalog.plan(slug).unwrap().size();
        (size.architecture.unwrap(), size.network_storage)
    };
    assert_eq!(storage("cx23"), ("x86".to_owned(), false));
    assert_eq!(storage("cax11"), ("arm".to_owned(), true));
    cloud.finish();
}

#[tokio::test]
async fn older_answers_without_locations_go_by_the_type_and_its_prices() {
    let mut old = server_type("cpx11", Value::Null);
    old["deprecation"] = withdrawal();
    let plain = server_type("cx23", Value::Null);
    let cloud = Script::play([(
        "GET /v1/server_types?per_page=50&page=1",
        ok(server_types(vec![old, plain], None)),
    )])
    .await;
    let catalog = cloud.hetzner(&[]).machine_plans().await.unwrap();
    let flags = |slug| {
        let offer = catalog.offer(slug, "ash").unwrap();
        (offer.orderable, offer.deprecated)
    };
    assert_eq!(flags("cpx11"), (true, true));
    assert_eq!(flags("cx23"), (true, false));
    cloud.finish();
}

#[tokio::test]
async fn all_prices_of_a_cloud_take_one_request() {
    let now = "2026-11-23T07:00:00Z".parse().unwrap();
    let withdrawn = size("c-4", 0.125, json!({"available": false, "regions": null}));
    let cloud =
        Script::play([("GET /v2/sizes?per_page=200&page=1", ok(sizes(vec![withdrawn], None)))])
            .await;
    let list = cloud.digitalocean().prices(now).await.unwrap().unwrap();
    cloud.finish();
    let own = OwnPrices::default();
    let prices = Prices { provider: Provider::DigitalOcean, list: Some(&list), own: &own };
    let droplet = prices.of_plan(ResourceKind::Droplet, "c-4", "fra1").unwrap();
    assert_eq!(droplet.hourly.exact(), "0.125");
    assert_eq!(prices.of_snapshot().unwrap().to_string(), "0.06 USD");

    let types = [server_type("cx23", json!([]))];
    let pricing = |price| {
        let image = json!({"price_per_gb_month": {"net": price, "gross": price}});
        ok(json!({"pricing": {"currency": "USD", "image": image, "server_types": types}}))
    };
    let request = "GET /v1/pricing";
    let cloud = Script::play([(request, pricing("0.0143")), (request, pricing("free"))]).await;
    let client = cloud.hetzner(&[]);
    let list = client.prices(now).await.unwrap().unwrap();
    let prices = Prices { provider: Provider::Hetzner, list: Some(&list), own: &own };
    let server = prices.of_plan(ResourceKind::Server, "cx23", "hel1").unwrap();
    assert_eq!(
        (server.hourly.exact(), server.monthly.to_string()),
        ("0.0088".to_owned(), "5.49 USD".to_owned())
    );
    assert!(prices.of_plan(ResourceKind::Server, "cx23", "sin").is_err());
    let error = client.prices(now).await.unwrap_err();
    assert_eq!(kind(&error), "not understood", "{error}");
    cloud.finish();
}

#[tokio::test]
async fn prices_are_in_the_currency_of_the_account() {
    let pricing = |currency| ok(json!({"pricing": {"currency": currency, "vat_rate": "19.00"}}));
    let request = "GET /v1/pricing";
    let cloud = Script::play([
        (request, pricing("USD")),
        (request, pricing("CHF")),
        (
            "GET /v1/server_types?per_page=50&page=1",
            ok(server_types(vec![server_type("cx23", Value::Null)], None)),
        ),
    ])
    .await;
    let client = cloud.hetzner(&[]);
    assert_eq!(client.currency().await.unwrap(), Some(Currency::Usd));
    let error = client.currency().await.unwrap_err();
    assert_eq!(kind(&error), "not understood", "{error}");
    let catalog = client.machine_plans().await.unwrap();
    let (_, _, hourly, monthly) = price(&catalog.in_currency(Currency::Usd), "cx23", "fsn1");
    let usd = |text| amount(text, Currency::Usd);
    assert_eq!((hourly, monthly), (usd("0.0088"), usd("5.49")));
    cloud.finish();
    let cloud = Script::play::<&str>([]).await;
    let currency = cloud.digitalocean().currency().await.unwrap();
    assert_eq!(currency, Some(Currency::Usd));
    cloud.finish();
}
