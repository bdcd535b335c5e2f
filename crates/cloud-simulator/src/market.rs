//! The plans that an account can order, and their prices.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{answer::timestamp, catalog, prices::Prices};

/// The clouds' plans with the prices of one list. Their JSON is built once, since each Droplet and
/// each server repeats its own plan.
#[derive(Debug, Clone)]
pub(crate) struct Market {
    pub(crate) prices: Prices,
    /// As `GET /v2/sizes` shows them.
    pub(crate) sizes: Vec<Value>,
    /// As `GET /v2/regions` shows them.
    pub(crate) regions: Vec<Value>,
    /// As `GET /v1/server_types` shows them.
    pub(crate) server_types: Vec<Value>,
}

/// Whether a plan can be ordered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Offer {
    Available,
    /// It is sold out, or was never offered there.
    Unavailable,
    /// Hetzner has announced its end.
    Deprecated {
        /// When the end was announced.
        announced: Timestamp,
        /// The instant from which it cannot be ordered.
        unavailable_after: Timestamp,
    },
}

/// Why an [`Offer`] cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// Neither cloud has such a plan.
    #[error("no Droplet size or server type `{0}`")]
    UnknownPlan(String),
    #[error("`{plan}` is not known in `{place}`")]
    UnknownPlace {
        plan: String,
        /// The region or location.
        place: String,
    },
    /// `DigitalOcean` does not announce the end of a size.
    #[error("size `{0}` cannot be deprecated: only server types can")]
    NoDeprecation(String),
}

impl Market {
    pub(crate) fn new(prices: Prices) -> Self {
        let own = |list: &Value| catalog::entries(list).cloned().collect();
        let market = Self {
            sizes: own(&catalog::DROPLET_SIZES),
            regions: own(&catalog::REGIONS),
            server_types: own(&catalog::SERVER_TYPES),
            prices: prices.clone(),
        };
        market.priced(prices)
    }

    /// The same plans with the prices of another list.
    pub(crate) fn priced(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self.completed()
    }

    /// The same plans after a change of what is available, everywhere or in one region or location.
    pub(crate) fn offering(
        mut self,
        plan: &str,
        place: Option<&str>,
        offer: &Offer,
    ) -> Result<Self, OfferError> {
        let known = self.server_types.iter_mut().find(|entry| entry["name"] == plan);
        if let Some(server_type) = known {
            offer_type(server_type, place, offer)?;
        } else {
            let size = self.sizes.iter_mut().find(|size| size["slug"] == plan);
            let size = size.ok_or_else(|| OfferError::UnknownPlan(plan.to_owned()))?;
            offer_size(size, place, offer)?;
        }
        Ok(self.completed())
    }

    /// Fills in what follows from the plans and the prices.
    fn completed(mut self) -> Self {
        for size in &mut self.sizes {
            *size = priced_size(size, &self.prices);
        }
        for region in &mut self.regions {
            *region = with_sizes(region, &self.sizes);
        }
        for server_type in &mut self.server_types {
            *server_type = priced_type(server_type, &self.prices);
        }
        self
    }

    /// The server types that are listed: one that has ended in every location is not (HZSPEC).
    pub(crate) fn listed_types(&self, now: Timestamp) -> impl Iterator<Item = &Value> {
        let ends = |location: &Value| -> Option<Timestamp> {
            location["deprecation"]["unavailable_after"].as_str()?.parse().ok()
        };
        let is_listed = move |server_type: &&Value| {
            let mut locations = catalog::entries(&server_type["locations"]);
            locations.any(|location| ends(location).is_none_or(|end| end > now))
        };
        self.server_types.iter().filter(is_listed)
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

/// Reports whether a size of a [`Market`] can be ordered in a region.
pub(crate) fn is_sold_in(size: &Value, region: &str) -> bool {
    size["available"] == true && catalog::entries(&size["regions"]).any(|slug| slug == region)
}

/// A size with its price. The hourly price has the noise of the 32-bit float that `DigitalOcean`
/// sends it through.
fn priced_size(size: &Value, prices: &Prices) -> Value {
    let price = prices.digitalocean.sizes.get(slug_of(size));
    let fields = price.map(|price| {
        #[expect(clippy::cast_possible_truncation, reason = "the noise is wanted")]
        let hourly = price.hourly.as_f64() as f32;
        json!({"price_hourly": f64::from(hourly), "price_monthly": price.monthly.as_f64()})
    });
    catalog::with(size, fields.unwrap_or_default())
}

fn with_sizes(region: &Value, sizes: &[Value]) -> Value {
    let offers =
        |size: &&Value| catalog::entries(&size["regions"]).any(|slug| *slug == region["slug"]);
    let slugs: Vec<_> = sizes.iter().filter(offers).map(slug_of).collect();
    catalog::with(region, json!({"sizes": slugs}))
}

fn slug_of(size: &Value) -> &str {
    size["slug"].as_str().unwrap_or_default()
}

fn priced_type(server_type: &Value, prices: &Prices) -> Value {
    let name = server_type["name"].as_str().unwrap_or_default();
    // The fields outside `locations` are legacy: they are set if those of every location are.
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

/// Sets an offer as Hetzner does: for each location.
fn offer_type(
    server_type: &mut Value,
    place: Option<&str>,
    offer: &Offer,
) -> Result<(), OfferError> {
    let plan = server_type["name"].as_str().unwrap_or_default().to_owned();
    let locations = server_type["locations"].as_array_mut().into_iter().flatten();
    let mut chosen =
        locations.filter(|location| place.is_none_or(|place| location["name"] == place)).peekable();
    if let (None, Some(place)) = (chosen.peek(), place) {
        let place = place.to_owned();
        return Err(OfferError::UnknownPlace { plan, place });
    }
    for location in chosen {
        let is_available = *offer == Offer::Available;
        location["available"] = json!(is_available);
        location["recommended"] = json!(is_available);
        location["deprecation"] = match offer {
            Offer::Available | Offer::Unavailable => Value::Null,
            Offer::Deprecated { announced, unavailable_after } => json!({
                "announced": timestamp(*announced),
                "unavailable_after": timestamp(*unavailable_after),
            }),
        };
    }
    Ok(())
}

/// Sets an offer as `DigitalOcean` does: for a size, or in its list of the regions that offer it.
fn offer_size(size: &mut Value, place: Option<&str>, offer: &Offer) -> Result<(), OfferError> {
    let plan = slug_of(size).to_owned();
    if matches!(offer, Offer::Deprecated { .. }) {
        return Err(OfferError::NoDeprecation(plan));
    }
    let is_available = *offer == Offer::Available;
    let Some(place) = place else {
        size["available"] = json!(is_available);
        return Ok(());
    };
    if catalog::region(place).is_none() {
        let place = place.to_owned();
        return Err(OfferError::UnknownPlace { plan, place });
    }
    if let Some(regions) = size["regions"].as_array_mut() {
        regions.retain(|slug| slug != place);
        if is_available {
            regions.push(json!(place));
        }
    }
    Ok(())
}
