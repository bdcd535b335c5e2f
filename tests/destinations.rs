//! Where tokens and keys go: to a listener that waits for them, if anything sends them there.

use std::{
    fs,
    path::PathBuf,
    process::Output,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use local::engine::Engine;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    programs::{in_terminal, python},
    runtime::{Function, TOKEN, parameters},
    support::{any_port, monday, parse, program, root, run, serve, tables},
};

/// A host key of the right form, of no host.
const HOST_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID2MFepRAu6qdgmRqxbuktBQOdN2QdL0zSZ1xcsO/yTw";

/// An address at which someone waits for tokens: every request's `Authorization`, in order.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<String>>>);

impl Collector {
    async fn serve() -> (Self, String) {
        let collector = Self::default();
        let collect = async |State(collector): State<Self>, headers: HeaderMap| {
            let sent = headers.get("authorization");
            let sent = sent.map_or("", |value| value.to_str().unwrap()).to_owned();
            collector.0.lock().unwrap().push(sent);
            StatusCode::NOT_FOUND
        };
        let router = Router::new().fallback(collect);
        let address = serve(router.with_state(collector.clone())).await;
        (collector, format!("http://{address}"))
    }

    fn collected(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

// --- On AWS -------------------------------------------------------------------------------------

/// A configuration whose author sends two tokens of their choice to an address of theirs.
fn of_parameters(address: &str) -> String {
    format!(
        r#"
[accounts.first]
provider = "digitalocean"
token = "ssm:/offhours/acting/do-main"
url = "{address}"

[accounts.second]
provider = "hetzner"
token = "ssm:/offhours/acting/hz-eu"
read_token = "ssm:/offhours/hz-eu"
url = "{address}/gateway"

[schedules.office]
timezone = "UTC"
periods = [{{ begin = "08:00", end = "19:00" }}]
methods = {{ server = "rescale" }}
rescale_to = "cpx12"
resources = ["first/droplet/1", "second/server/2"]
"#
    )
}

/// The same for the credentials of the function.
fn of_variables(address: &str) -> String {
    of_parameters(address)
        .replace("ssm:/offhours/acting/do-main", "env:AWS_SECRET_ACCESS_KEY")
        .replace("ssm:/offhours/acting/hz-eu", "env:AWS_SECRET_ACCESS_KEY")
        .replace("ssm:/offhours/hz-eu", "env:AWS_SESSION_TOKEN")
}

/// Invokes the functions under a configuration in every form in which they ask a provider, and
/// returns what was collected.
async fn collected_from(
    functions: impl Fn(&str) -> PathBuf,
    configuration: fn(&str) -> String,
    allowed: bool,
) -> Vec<String> {
    let (collector, address) = Collector::serve().await;
    let engine = Engine::in_memory().unwrap();
    let store = engine.store(tables());
    store.create_tables().await.unwrap();
    let configuration = parse(&configuration(&address));
    let applied = store.apply(&configuration, "mallory", monday("12:00:00"));
    applied.await.unwrap();
    let engine = format!("http://{}", testing::serve(engine).await);
    let parameters = parameters().await;
    let urls = format!("{address}, {address}/gateway");
    let settings = [
        ("AWS_ENDPOINT_URL", engine.as_str()),
        ("AWS_ENDPOINT_URL_SSM", parameters.as_str()),
        ("OFFHOURS_ACCOUNT_URLS", if allowed { &urls } else { "" }),
    ];
    let both = json!(["first/droplet/1", "second/server/2"]);
    for (function, event) in [
        ("poll-status", json!({ "inventory": [] })),
        ("poll-status", json!({ "resources": both })),
        ("poll-status", json!({ "try": configuration.accounts })),
        ("poll-status", json!({ "moves": configuration })),
        ("stop", json!({ "resources": both })),
        ("start", json!({ "resources": both })),
    ] {
        let function = Function::start(functions(function), event, &settings);
        function.await.answer().await;
    }
    collector.collected()
}

async fn check_functions(functions: impl Fn(&str) -> PathBuf + Copy) {
    let none = Vec::<String>::new();
    for configuration in [of_parameters, of_variables] {
        assert_eq!(collected_from(functions, configuration, false).await, none);
    }
    assert_eq!(collected_from(functions, of_variables, true).await, none);
    // An address that the deployment lists gets the tokens: the collector does wait for them.
    let listed = collected_from(functions, of_parameters, true).await;
    assert!(listed.contains(&format!("Bearer {TOKEN}")), "{listed:?}");
}

#[test]
fn on_aws_no_configuration_chooses_where_a_token_goes() {
    run(check_functions(program));
}

#[test]
#[ignore = "needs the functions as `make build` builds them: `make test-stack`"]
fn on_aws_no_configuration_chooses_where_a_token_of_the_shipped_functions_goes() {
    run(check_functions(|function| root().join("target/lambda").join(function).join("bootstrap")));
}

// --- Without AWS --------------------------------------------------------------------------------

const OWN_ACCOUNT: &str = r#"
[accounts.do-main]
provider = "digitalocean"
token = "env:DO_TOKEN"
"#;

/// A folder with a store, in which commands run: the providers' own address is one collector, and a
/// hostile file names another, or a host over SSH.
struct Folder {
    directory: TempDir,
    own: (Collector, String),
    foreign: (Collector, String),
    host: std::net::TcpListener,
}

impl Folder {
    async fn new() -> Self {
        let host = std::net::TcpListener::bind(any_port()).unwrap();
        host.set_nonblocking(true).unwrap();
        Self {
            directory: TempDir::new().unwrap(),
            own: Collector::serve().await,
            foreign: Collector::serve().await,
            host,
        }
    }

    fn write(&self, name: &str, configuration: &str) {
        fs::write(self.directory.path().join(name), configuration).unwrap();
    }

    fn command(&self, program: PathBuf) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.directory.path())
            .env("OFFHOURS_DIGITALOCEAN_URL", &self.own.1)
            .env("OFFHOURS_DATA", "offhours.db")
            .env("DO_TOKEN", TOKEN)
            .kill_on_drop(true);
        command
    }

    /// Runs a command whose standard input is no terminal, and returns its exit code and output.
    async fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = self.command(program("offhours"));
        printed(command.args(arguments).output().await.unwrap())
    }

    /// Runs a command in a terminal, and answers its question.
    async fn answer(&self, answer: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = self.command(python());
        printed(in_terminal(&mut command, arguments, answer).await)
    }

    /// Fails if a token was sent to the foreign address, or a connection made to the host.
    #[track_caller]
    fn nothing_was_sent(&self, shown: &str) {
        assert_eq!(self.foreign.0.collected(), Vec::<String>::new(), "{shown}");
        let connected = self.host.accept();
        assert!(connected.is_err(), "{shown}");
        // The key's file does not exist: an attempt to read it would be shown.
        assert!(!shown.contains("the key's file"), "{shown}");
    }

    fn hostile_accounts(&self) -> [String; 2] {
        let port = self.host.local_addr().unwrap().port();
        [
            format!("{}url = \"{}\"\n", OWN_ACCOUNT, self.foreign.1),
            format!(
                "[accounts.lab]\nprovider = \"ssh\"\nhost = \"127.0.0.1\"\nport = {port}\n\
                 user = \"offhours\"\nkey = \"file:/missing-key\"\nhost_keys = [\"{HOST_KEY}\"]\n\
                 allow_private_hosts = true\n\
                 [accounts.lab.machines.build]\nstatus = \"gate status build\"\n\
                 stop = \"gate stop build\"\nstart = \"gate start build\"\n"
            ),
        ]
    }
}

fn printed(output: Output) -> (Option<i32>, String) {
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn what_is_only_shown_or_declined_sends_no_token_to_a_new_address() {
    run(async {
        for in_force in [false, true] {
            for hostile in 0..2 {
                let folder = Folder::new().await;
                folder.write("offhours.toml", OWN_ACCOUNT);
                if in_force {
                    let (code, shown) = folder.run(&["apply", "--yes"]).await;
                    // Its provider answers 404 to everything.
                    assert_eq!(code, Some(3), "{shown}");
                    assert_ne!(folder.own.0.collected().len(), 0);
                }
                folder.write("offhours.toml", &folder.hostile_accounts()[hostile]);
                let (_, shown) = folder.run(&["validate"]).await;
                folder.nothing_was_sent(&shown);
                let place = [folder.foreign.1.as_str(), "127.0.0.1"][hostile];
                assert!(shown.contains(place), "{shown}");

                let (code, shown) = folder.run(&["apply", "--dry-run"]).await;
                assert_eq!(code, Some(0), "{shown}");
                folder.nothing_was_sent(&shown);
                let account = ["do-main", "lab"][hostile];
                let later = format!("account {account} is not tried before it is applied");
                assert!(shown.contains(&later) && shown.contains(place), "{shown}");

                let (code, shown) = folder.run(&["apply"]).await;
                assert_eq!(code, Some(2), "{shown}");
                folder.nothing_was_sent(&shown);

                let (code, shown) = folder.answer("n\n", &["apply"]).await;
                assert_eq!(code, Some(1), "{shown}");
                assert!(shown.contains("nothing was applied"), "{shown}");
                folder.nothing_was_sent(&shown);

                let serve = ["serve", "--config", "offhours.toml", "--once"];
                let (code, shown) = folder.run(&serve).await;
                assert_eq!(code, Some(2), "{shown}");
                assert!(shown.contains(place), "{shown}");
                folder.nothing_was_sent(&shown);
            }
        }
    });
}

#[test]
fn an_account_is_tried_at_its_new_address_once_a_person_has_confirmed_it() {
    run(async {
        let folder = Folder::new().await;
        folder.write("offhours.toml", &folder.hostile_accounts()[0]);
        let (code, shown) = folder.answer("y\n", &["apply"]).await;
        assert_eq!(code, Some(3), "{shown}");
        assert!(shown.contains("Applied as generation 1: "), "{shown}");
        let expected = format!("Bearer {TOKEN}");
        assert!(folder.foreign.0.collected().contains(&expected));
    });
}

#[test]
fn what_stopping_would_save_is_asked_at_trusted_addresses_alone() {
    run(async {
        let folder = Folder::new().await;
        folder.write("other.toml", &folder.hostile_accounts()[0]);
        let place = folder.foreign.1.clone();
        let (code, shown) = folder.run(&["savings", "--config", "other.toml"]).await;
        assert_eq!(code, Some(1), "{shown}");
        folder.nothing_was_sent(&shown);
        assert!(shown.contains(&format!("--trust {place}")), "{shown}");
        let trusting = ["savings", "--config", "other.toml", "--trust", &place];
        folder.run(&trusting).await;
        let expected = format!("Bearer {TOKEN}");
        assert!(folder.foreign.0.collected().contains(&expected));
    });
}
