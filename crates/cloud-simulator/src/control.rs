//! The control API under `/_simulator`, for tests that are not Rust programs. The crate's
//! documentation lists its operations.

use std::fmt::Display;

use axum::{
    Json, Router,
    extract::{FromRequest, Path, Query, Request, State as Shared, rejection::QueryRejection},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use domain::{AccountName, ResourceRef};
use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    bill::BillQuery,
    faults::{Fault, Hold, HoldId, UnknownHoldError},
    market::{Offer, OfferError},
    people::{Act, PersonError},
    simulator::Simulator,
};

pub(crate) fn routes() -> Router<Simulator> {
    let faults = get(faults).post(add_fault).delete(clear_faults);
    let unknown = get(unknown).post(unknown).delete(unknown);
    Router::new()
        .route("/_simulator/log", get(log))
        .route("/_simulator/exchanges", get(exchanges))
        .route("/_simulator/resources", get(resources))
        .route("/_simulator/clock", get(clock).post(move_clock))
        .route("/_simulator/bill", get(bill))
        .route("/_simulator/faults", faults)
        .route("/_simulator/holds", get(holds).post(add_hold))
        .route("/_simulator/holds/{id}", get(hold).delete(end_hold))
        .route("/_simulator/people", post(people))
        .route("/_simulator/plans", post(set_offer))
        .route("/_simulator/{*unknown}", unknown)
}

/// Why a control request is refused.
struct Failure(StatusCode, String);

type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    fn of(status: StatusCode, error: &impl ToString) -> Self {
        Self(status, error.to_string())
    }
}

impl From<UnknownHoldError> for Failure {
    fn from(error: UnknownHoldError) -> Self {
        Self::of(StatusCode::NOT_FOUND, &error)
    }
}

impl From<PersonError> for Failure {
    fn from(error: PersonError) -> Self {
        let status = match error {
            PersonError::Unknown(_) => StatusCode::NOT_FOUND,
            PersonError::Refused { .. } => StatusCode::CONFLICT,
            PersonError::DoesNotFit { .. } => StatusCode::BAD_REQUEST,
        };
        Self::of(status, &error)
    }
}

impl From<OfferError> for Failure {
    fn from(error: OfferError) -> Self {
        let status = match error {
            OfferError::UnknownPlan(_) => StatusCode::NOT_FOUND,
            OfferError::UnknownPlace { .. } | OfferError::NoDeprecation(_) => {
                StatusCode::BAD_REQUEST
            }
        };
        Self::of(status, &error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, Json(json!({"error": self.1}))).into_response()
    }
}

/// A JSON body; a malformed one is a [`Failure`].
struct Body<T>(T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        match Json::from_request(request, state).await {
            Ok(Json(body)) => Ok(Self(body)),
            Err(rejection) => Err(Failure(rejection.status(), rejection.body_text())),
        }
    }
}

/// The query parameters of all operations but the bill.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Parameters {
    after: u64,
    most: Option<usize>,
    wait: bool,
    discard: bool,
}

type Simulated = Shared<Simulator>;

async fn log(Shared(simulator): Simulated, Query(query): Query<Parameters>) -> Json<Value> {
    let most = query.most.unwrap_or(usize::MAX);
    Json(json!({"entries": simulator.log_page(query.after, most)}))
}

async fn exchanges(Shared(simulator): Simulated, Query(query): Query<Parameters>) -> Response {
    let entries = simulator.log_after(query.after);
    let answered = entries.iter().filter(|entry| entry.answer.is_some());
    json_lines(answered.map(|entry| json!(entry)))
}

/// Responds with a line for each item, then a line with the total in each currency.
async fn bill(
    Shared(simulator): Simulated,
    query: std::result::Result<Query<BillQuery>, QueryRejection>,
) -> Result<Response> {
    let malformed = |error: QueryRejection| Failure(error.status(), error.body_text());
    let Query(query) = query.map_err(malformed)?;
    let bill = simulator.bill(&query);
    let totals = bill.totals().into_iter();
    let totals = totals.map(|(currency, total)| json!({"total": total, "currency": currency}));
    let lines = bill.lines.iter().map(|line| json!(line)).chain(totals);
    Ok(json_lines(lines))
}

fn json_lines(lines: impl Iterator<Item = Value>) -> Response {
    let lines = lines.map(|line| line.to_string());
    let text: String = lines.flat_map(|line| [line, "\n".to_owned()]).collect();
    ([(header::CONTENT_TYPE, "application/jsonl")], text).into_response()
}

async fn resources(Shared(simulator): Simulated) -> Json<Value> {
    Json(json!({
        "now": simulator.now(),
        "resources": simulator.resources(),
        "images": simulator.images(),
    }))
}

async fn clock(Shared(simulator): Simulated) -> Json<Value> {
    Json(json!({"now": simulator.now(), "held": simulator.held_clock().is_some()}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Moved {
    now: Timestamp,
}

async fn move_clock(
    Shared(simulator): Simulated,
    Body(Moved { now }): Body<Moved>,
) -> Result<Json<Value>> {
    let conflict = |error: &dyn Display| Failure::of(StatusCode::CONFLICT, &error);
    let held = simulator.held_clock();
    let held =
        held.ok_or_else(|| conflict(&"the clock is not held: start with --at to hold it"))?;
    held.move_to(now).map_err(|error| conflict(&error))?;
    Ok(Json(json!({"now": simulator.now(), "held": true})))
}

async fn faults(Shared(simulator): Simulated) -> Json<Value> {
    Json(json!({"faults": simulator.faults()}))
}

async fn add_fault(Shared(simulator): Simulated, Body(fault): Body<Fault>) -> StatusCode {
    simulator.add_fault(fault);
    StatusCode::CREATED
}

async fn clear_faults(Shared(simulator): Simulated) -> StatusCode {
    simulator.clear_faults();
    StatusCode::NO_CONTENT
}

async fn holds(Shared(simulator): Simulated) -> Json<Value> {
    Json(json!({"holds": simulator.holds()}))
}

async fn add_hold(Shared(simulator): Simulated, Body(hold): Body<Hold>) -> impl IntoResponse {
    let id = simulator.add_hold(hold);
    (StatusCode::CREATED, Json(json!({"id": id})))
}

async fn hold(
    Shared(simulator): Simulated,
    Path(id): Path<HoldId>,
    Query(query): Query<Parameters>,
) -> Result<Json<Value>> {
    if query.wait {
        simulator.wait_until_caught(id).await?;
    }
    let view = simulator.holds().into_iter().find(|view| view.id == id);
    Ok(Json(json!(view.ok_or(UnknownHoldError(id))?)))
}

async fn end_hold(
    Shared(simulator): Simulated,
    Path(id): Path<HoldId>,
    Query(query): Query<Parameters>,
) -> Result<StatusCode> {
    if query.discard {
        simulator.discard(id)?;
    } else {
        simulator.release(id)?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// An act on a resource, a fleet's TOML to create, or an image to delete.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Person {
    resource: Option<ResourceRef>,
    act: Option<Act>,
    create: Option<String>,
    delete_image: Option<ImageOf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageOf {
    account: AccountName,
    id: u64,
}

async fn people(Shared(simulator): Simulated, Body(person): Body<Person>) -> Result<StatusCode> {
    let refused = |error: &dyn Display| Failure::of(StatusCode::BAD_REQUEST, &error);
    let Person { resource, act, create, delete_image } = person;
    match (resource, act, create, delete_image) {
        (Some(resource), Some(act), None, None) => simulator.person(&resource, act)?,
        (None, None, Some(description), None) => {
            let created = simulator.create(&description);
            created.map_err(|error| refused(&error))?;
        }
        (None, None, None, Some(ImageOf { account, id })) => {
            if !simulator.delete_image(&account, id) {
                let unknown = format!("{account} has no image {id}");
                return Err(Failure(StatusCode::NOT_FOUND, unknown));
            }
        }
        _ => {
            let usage = "give `resource` and `act`, or `create`, or `delete_image`";
            return Err(refused(&usage));
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The offer of a plan; it applies everywhere if no place is named.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfferOfPlan {
    plan: String,
    place: Option<String>,
    offer: Offer,
}

async fn set_offer(
    Shared(simulator): Simulated,
    Body(made): Body<OfferOfPlan>,
) -> Result<StatusCode> {
    simulator.set_offer(&made.plan, made.place.as_deref(), &made.offer)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn unknown() -> Failure {
    Failure(StatusCode::NOT_FOUND, "no such control operation".to_owned())
}
