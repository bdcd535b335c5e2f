//! What an account can order, and for how much.

use serde_json::{Value, json};

use crate::{catalog, prices::Prices};

/// The clouds' plans with the prices of one list. The answers are written out once, since each
/// Droplet and each server repeats its own plan.
#[derive(Debug)]
pub(crate) struct Market {
    pub(crate) prices: Prices,
    /// As `GET /v2/sizes` shows them.
    pub(crate) sizes: Vec<Value>,
    /// As `GET /v2/regions` shows them.
    pub(crate) regions: Vec<Value>,
    /// As `GET /v1/server_types` shows them.
    pub(crate) server_types: Vec<Value>,
}

impl Market {
    pub(crate) fn new(prices: Prices) -> Self {
        let sizes = catalog::entries(&catalog::DROPLET_SIZES);
        let sizes: Vec<_> = sizes.map(|size| priced_size(size, &prices)).collect();
        let regions = catalog::entries(&catalog::REGIONS);
        let regions = regions.map(|region| with_sizes(region, &sizes)).collect();
        let types = catalog::entries(&catalog::SERVER_TYPES);
        let server_types = types.map(|entry| priced_type(entry, &prices)).collect();
        Self {
            sizes,
            regions,
            server_types,
            prices,
        }
    }

    pub(crate) fn droplet_size(&self, slug: &str) -> Option<&Value> {
        self.sizes.iter().find(|size| size["slug"] == slug)
    }

    pub(crate) fn region(&self, slug: &str) -> Option<&Value> {
        self.regions.iter().find(|region| region["slug"] == slug)
    }

    pub(crate) fn server_type(&self, name: &str) -> Option<&Value> {
        let mut types = self.server_types.iter();
        types.find(|server_type| server_type["name"] == name)
    }
}

/// A size with its price. The hourly one has the noise of the 32-bit float through which
/// `DigitalOcean` sends it.
fn priced_size(size: &Value, prices: &Prices) -> Value {
    let price = prices.digitalocean.sizes.get(slug_of(size));
    let fields = price.map(|price| {
        #[expect(clippy::cast_possible_truncation, reason = "the noise is wanted")]
        let hourly = price.hourly.as_f64() as f32;
        json!({"price_hourly": f64::from(hourly), "price_monthly": price.monthly.as_f64()})
    });
    catalog::with(size, fields.unwrap_or_default())
}

/// A region with the sizes that it offers.
fn with_sizes(region: &Value, sizes: &[Value]) -> Value {
    let offers = |size: &&Value| {
        let mut regions = size["regions"].as_array().into_iter().flatten();
        regions.any(|slug| *slug == region["slug"])
    };
    let slugs: Vec<_> = sizes.iter().filter(offers).map(slug_of).collect();
    catalog::with(region, json!({"sizes": slugs}))
}

fn slug_of(size: &Value) -> &str {
    size["slug"].as_str().unwrap_or_default()
}

fn priced_type(server_type: &Value, prices: &Prices) -> Value {
    let name = server_type["name"].as_str().unwrap_or_default();
    // The fields outside `locations` are old: they are set where every location's are.
    let locations = catalog::entries(&server_type["locations"]);
    let deprecations: Option<Vec<_>> = locations
        .map(|location| Some(&location["deprecation"]).filter(|found| !found.is_null()))
        .collect();
    let deprecation = deprecations.and_then(|every| every.last().copied());
    let fields = json!({
        "prices": prices.hetzner.shown(name),
        "deprecated": deprecation.is_some(),
        "deprecation": deprecation,
    });
    catalog::with(server_type, fields)
}
