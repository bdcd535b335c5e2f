//! The control API under `/_simulator`, for tests that are no Rust program. The crate's
//! documentation lists it.

use axum::{
    Json, Router,
    extract::{FromRequest, Path, Query, Request, State as Shared},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use domain::ResourceRef;
use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    faults::{Fault, Hold, HoldId},
    people::{Act, PersonError},
    simulator::Simulator,
};

pub(crate) fn routes() -> Router<Simulator> {
    Router::new()
        .route("/_simulator/log", get(log))
        .route("/_simulator/exchanges", get(exchanges))
        .route("/_simulator/resources", get(resources))
        .route("/_simulator/clock", get(clock).post(move_clock))
        .route(
            "/_simulator/faults",
            get(faults).post(add_fault).delete(clear_faults),
        )
        .route("/_simulator/holds", get(holds).post(add_hold))
        .route("/_simulator/holds/{id}", get(hold).merge(delete(end_hold)))
        .route("/_simulator/people", post(people))
        .route(
            "/_simulator/{*unknown}",
            get(unknown).post(unknown).delete(unknown),
        )
}

/// A control request that cannot be done.
struct Failure(StatusCode, String);

impl Failure {
    fn of(status: StatusCode, error: &impl ToString) -> Self {
        Self(status, error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, Json(json!({"error": self.1}))).into_response()
    }
}

/// A JSON body; one that cannot be understood is a [`Failure`].
struct Given<T>(T);

impl<S, T> FromRequest<S> for Given<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
{
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        match Json::from_request(request, state).await {
            Ok(Json(body)) => Ok(Self(body)),
            Err(rejection) => Err(Failure(rejection.status(), rejection.body_text())),
        }
    }
}

#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: u64,
}

async fn log(
    Shared(simulator): Shared<Simulator>,
    Query(After { after }): Query<After>,
) -> Json<Value> {
    Json(json!({"entries": simulator.log_after(after)}))
}

async fn exchanges(
    Shared(simulator): Shared<Simulator>,
    Query(After { after }): Query<After>,
) -> Result<Response, Failure> {
    let mut lines = String::new();
    for entry in simulator
        .log_after(after)
        .iter()
        .filter(|entry| entry.answer.is_some())
    {
        let line = serde_json::to_string(entry)
            .map_err(|error| Failure::of(StatusCode::INTERNAL_SERVER_ERROR, &error))?;
        lines.push_str(&line);
        lines.push('\n');
    }
    Ok(([(header::CONTENT_TYPE, "application/jsonl")], lines).into_response())
}

async fn resources(Shared(simulator): Shared<Simulator>) -> Json<Value> {
    Json(json!({"now": simulator.now(), "resources": simulator.resources()}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Moved {
    now: Timestamp,
}

async fn clock(Shared(simulator): Shared<Simulator>) -> Json<Value> {
    Json(json!({"now": simulator.now(), "held": simulator.held_clock().is_some()}))
}

async fn move_clock(
    Shared(simulator): Shared<Simulator>,
    Given(Moved { now }): Given<Moved>,
) -> Result<Json<Value>, Failure> {
    let held = simulator.held_clock().ok_or_else(|| {
        Failure::of(
            StatusCode::CONFLICT,
            &"the clock is the machine's: start with --at to hold it",
        )
    })?;
    held.move_to(now)
        .map_err(|error| Failure::of(StatusCode::CONFLICT, &error))?;
    Ok(Json(json!({"now": simulator.now(), "held": true})))
}

async fn faults(Shared(simulator): Shared<Simulator>) -> Json<Value> {
    Json(json!({"faults": simulator.faults()}))
}

async fn add_fault(Shared(simulator): Shared<Simulator>, Given(fault): Given<Fault>) -> StatusCode {
    simulator.add_fault(fault);
    StatusCode::CREATED
}

async fn clear_faults(Shared(simulator): Shared<Simulator>) -> StatusCode {
    simulator.clear_faults();
    StatusCode::NO_CONTENT
}

async fn holds(Shared(simulator): Shared<Simulator>) -> Json<Value> {
    Json(json!({"holds": simulator.holds()}))
}

async fn add_hold(
    Shared(simulator): Shared<Simulator>,
    Given(hold): Given<Hold>,
) -> (StatusCode, Json<Value>) {
    (
        StatusCode::CREATED,
        Json(json!({"id": simulator.add_hold(hold)})),
    )
}

#[derive(Deserialize)]
struct Wait {
    #[serde(default)]
    wait: bool,
}

async fn hold(
    Shared(simulator): Shared<Simulator>,
    Path(id): Path<HoldId>,
    Query(Wait { wait }): Query<Wait>,
) -> Result<Json<Value>, Failure> {
    let gone = |error| Failure::of(StatusCode::NOT_FOUND, &error);
    if wait {
        simulator.wait_until_caught(id).await.map_err(gone)?;
    }
    let view = simulator.holds().into_iter().find(|view| view.id == id);
    let view = view.ok_or_else(|| gone(crate::faults::UnknownHoldError(id)))?;
    Ok(Json(json!(view)))
}

#[derive(Deserialize)]
struct Ending {
    #[serde(default)]
    discard: bool,
}

async fn end_hold(
    Shared(simulator): Shared<Simulator>,
    Path(id): Path<HoldId>,
    Query(Ending { discard }): Query<Ending>,
) -> Result<StatusCode, Failure> {
    let ended = if discard {
        simulator.discard(id)
    } else {
        simulator.release(id)
    };
    ended.map_err(|error| Failure::of(StatusCode::NOT_FOUND, &error))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Either an act on a resource, or a fleet's TOML to create.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Person {
    resource: Option<ResourceRef>,
    act: Option<Act>,
    create: Option<String>,
}

async fn people(
    Shared(simulator): Shared<Simulator>,
    Given(person): Given<Person>,
) -> Result<StatusCode, Failure> {
    match person {
        Person {
            resource: Some(resource),
            act: Some(act),
            create: None,
        } => {
            simulator.person(&resource, act).map_err(|error| {
                let status = match error {
                    PersonError::Unknown(_) => StatusCode::NOT_FOUND,
                    PersonError::Refused { .. } => StatusCode::CONFLICT,
                    PersonError::DoesNotFit { .. } => StatusCode::BAD_REQUEST,
                };
                Failure::of(status, &error)
            })?;
        }
        Person {
            resource: None,
            act: None,
            create: Some(description),
        } => {
            let refused = |error| Failure::of(StatusCode::BAD_REQUEST, &error);
            simulator.create(&description).map_err(refused)?;
        }
        Person { .. } => {
            let message = "give `resource` and `act`, or `create`";
            return Err(Failure::of(StatusCode::BAD_REQUEST, &message));
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn unknown() -> Failure {
    Failure::of(StatusCode::NOT_FOUND, &"no such control operation")
}
