//! The four functions as programs, as Lambda runs them: behind its runtime API, with settings and
//! credentials in their variables, and with a parameter store.

use std::{
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::StatusCode,
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::{
    process::{Child, Command},
    sync::mpsc,
};

use crate::support::serve;

/// What every parameter holds, and every variable that may hold a secret.
pub(crate) const TOKEN: &str = "secret-collected-token";

/// A runtime API that hands out one event, and the answer to it.
#[derive(Clone)]
struct Runtime {
    events: Arc<Mutex<Option<Value>>>,
    answers: mpsc::UnboundedSender<Value>,
}

/// A function as Lambda runs it: settings from the template, credentials in its variables.
pub(crate) struct Function {
    _child: Child,
    answers: mpsc::UnboundedReceiver<Value>,
}

impl Function {
    pub(crate) async fn start(program: PathBuf, event: Value, settings: &[(&str, &str)]) -> Self {
        let (sender, answers) = mpsc::unbounded_channel();
        let runtime = Runtime { events: Arc::new(Mutex::new(Some(event))), answers: sender };
        let next = async |State(runtime): State<Runtime>| {
            let event = runtime.events.lock().unwrap().take();
            let Some(event) = event else {
                return std::future::pending().await;
            };
            let deadline = "32503680000000";
            let headers = [
                ("lambda-runtime-aws-request-id", "one"),
                ("lambda-runtime-deadline-ms", deadline),
                (
                    "lambda-runtime-invoked-function-arn",
                    "arn:aws:lambda:eu-central-1:123456789012:function:offhours-function",
                ),
            ];
            (headers, Json(event))
        };
        let answer = async |State(runtime): State<Runtime>, answer: Bytes| {
            let answer = serde_json::from_slice(&answer).unwrap();
            runtime.answers.send(answer).unwrap();
            StatusCode::ACCEPTED
        };
        let invocations = "/2018-06-01/runtime/invocation";
        let router = Router::new()
            .route(&format!("{invocations}/next"), get(next))
            .route(&format!("{invocations}/one/response"), post(answer))
            .route(&format!("{invocations}/one/error"), post(answer))
            .route("/2018-06-01/runtime/init/error", post(answer));
        let api = serve(router.with_state(runtime)).await;
        let child = Command::new(program)
            .env_clear()
            .envs([
                ("AWS_LAMBDA_RUNTIME_API", api.to_string().as_str()),
                ("AWS_LAMBDA_FUNCTION_NAME", "offhours-function"),
                ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
                ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
                ("AWS_LAMBDA_LOG_GROUP_NAME", "group"),
                ("AWS_LAMBDA_LOG_STREAM_NAME", "stream"),
                ("AWS_REGION", "eu-central-1"),
                ("AWS_ACCESS_KEY_ID", "local"),
                ("AWS_SECRET_ACCESS_KEY", TOKEN),
                ("OFFHOURS_STOP_FUNCTION", "offhours-stop"),
                ("OFFHOURS_START_FUNCTION", "offhours-start"),
                ("OFFHOURS_EVENT_BUS", "none"),
                ("RUST_LOG", "info"),
            ])
            .envs(settings.iter().copied())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { _child: child, answers }
    }

    pub(crate) async fn answer(mut self) -> Value {
        self.answers.recv().await.unwrap()
    }
}

/// A parameter store that has every parameter.
pub(crate) async fn parameters() -> String {
    let router = Router::new()
        .fallback(async || Json(json!({ "Parameter": { "Name": "/any", "Value": TOKEN } })));
    format!("http://{}", serve(router).await)
}
