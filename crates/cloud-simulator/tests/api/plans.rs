//! Plans that are withdrawn and restored.

use cloud_simulator::{Offer, OfferError};
use serde_json::{Value, json};

use crate::client::Clouds;

async fn offer(clouds: &Clouds, body: Value) {
    clouds.send("POST", "/_simulator/plans", Some(body)).await.expect(204);
}

/// A size, and whether `fra1` lists it.
async fn size(clouds: &Clouds, slug: &str) -> (Value, bool) {
    let sizes = clouds.get("/v2/sizes").await["sizes"].clone();
    let regions = clouds.get("/v2/regions").await["regions"].clone();
    let find = |list: Value, slug: &str| {
        let mut entries = list.as_array().unwrap().clone().into_iter();
        entries.find(|entry| entry["slug"] == slug).unwrap()
    };
    let listed = find(regions, "fra1")["sizes"].clone();
    let is_listed = listed.as_array().unwrap().contains(&json!(slug));
    (find(sizes, slug), is_listed)
}

/// A type in Falkenstein; `None` if it is not listed.
async fn in_falkenstein(clouds: &Clouds, name: &str) -> Option<Value> {
    let types = clouds.get(&format!("/v1/server_types?name={name}")).await;
    let locations = types["server_types"].get(0)?["locations"].clone();
    let mut locations = locations.as_array().unwrap().clone().into_iter();
    locations.find(|location| location["name"] == "fsn1")
}

#[tokio::test]
async fn a_size_is_withdrawn_everywhere_or_in_one_region() {
    let clouds = Clouds::with("").await;
    let before = size(&clouds, "c-4").await;
    assert_eq!((&before.0["available"], before.1), (&json!(true), true));

    offer(&clouds, json!({"plan": "c-4", "place": "fra1", "offer": "unavailable"})).await;
    let (here, is_listed) = size(&clouds, "c-4").await;
    assert_eq!(here["available"], true);
    assert!(!here["regions"].as_array().unwrap().contains(&json!("fra1")));
    assert!(here["regions"].as_array().unwrap().contains(&json!("ams3")));
    assert!(!is_listed);

    offer(&clouds, json!({"plan": "c-4", "place": "fra1", "offer": "available"})).await;
    assert!(size(&clouds, "c-4").await.1);

    clouds.simulator.set_offer("c-4", None, &Offer::Unavailable).unwrap();
    assert_eq!(size(&clouds, "c-4").await.0["available"], false);
    clouds.simulator.set_offer("c-4", None, &Offer::Available).unwrap();
    assert_eq!(size(&clouds, "c-4").await.0["available"], true);
}

#[tokio::test]
async fn a_server_type_is_sold_out_deprecated_and_gone() {
    let clouds = Clouds::with("[[servers]]\nid = 42\nname = \"a\"\nserver_type = \"cpx22\"").await;
    assert_eq!(in_falkenstein(&clouds, "cpx22").await.unwrap()["available"], true);

    offer(&clouds, json!({"plan": "cpx22", "place": "fsn1", "offer": "unavailable"})).await;
    let here = in_falkenstein(&clouds, "cpx22").await.unwrap();
    assert_eq!((&here["available"], &here["deprecation"]), (&json!(false), &Value::Null));
    // A server's response repeats its type.
    let server = clouds.get("/v1/servers").await["servers"][0].clone();
    assert_eq!(server["server_type"]["locations"][0], here);

    let deprecated = json!({"deprecated": {
        "announced": "2026-11-01T00:00:00Z",
        "unavailable_after": "2026-11-23T08:00:00Z",
    }});
    offer(&clouds, json!({"plan": "cpx22", "offer": deprecated})).await;
    let here = in_falkenstein(&clouds, "cpx22").await.unwrap();
    assert_eq!(here["deprecation"]["unavailable_after"], "2026-11-23T08:00:00Z");
    clouds.pass(3599);
    assert!(in_falkenstein(&clouds, "cpx22").await.is_some());
    clouds.pass(1);
    assert_eq!(in_falkenstein(&clouds, "cpx22").await, None);
    let server = clouds.get("/v1/servers/42").await["server"].clone();
    assert_eq!(server["server_type"]["deprecated"], true);

    offer(&clouds, json!({"plan": "cpx22", "offer": "available"})).await;
    let here = in_falkenstein(&clouds, "cpx22").await.unwrap();
    assert_eq!((&here["available"], &here["deprecation"]), (&json!(true), &Value::Null));
}

#[tokio::test]
async fn the_types_before_the_present_series_are_not_listed_in_the_eu() {
    let clouds = Clouds::with("").await;
    assert_eq!(in_falkenstein(&clouds, "cx22").await, None);
    // Listed, since it is still sold in the US.
    let old = in_falkenstein(&clouds, "cpx31").await.unwrap();
    assert_eq!(old["available"], false);
    let pricing = clouds.get("/v1/pricing").await["pricing"].clone();
    let types = pricing["server_types"].as_array().unwrap().clone();
    assert!(types.iter().all(|row| row["name"] != "cx22"));
}

#[tokio::test]
async fn an_offer_of_something_unknown_is_refused() {
    let clouds = Clouds::with("").await;
    let refused = |plan: &str, place: Option<&str>, offer: &Offer| {
        clouds.simulator.set_offer(plan, place, offer).unwrap_err()
    };
    let huge = OfferError::UnknownPlan("huge".to_owned());
    assert_eq!(refused("huge", None, &Offer::Available), huge);
    for (plan, place) in [("c-4", "fsn1"), ("cpx22", "ash")] {
        let error = refused(plan, Some(place), &Offer::Unavailable);
        assert_eq!(error.to_string(), format!("`{plan}` is not known in `{place}`"));
    }
    let body = json!({"plan": "c-4", "offer": {"deprecated": {
        "announced": "2026-11-01T00:00:00Z",
        "unavailable_after": "2026-12-01T00:00:00Z",
    }}});
    let error = clouds.send("POST", "/_simulator/plans", Some(body)).await.expect(400);
    assert!(error["error"].as_str().unwrap().contains("only server types"), "{error}");
}
