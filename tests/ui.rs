//! `offhours ui`: its buttons run commands, and only its own page presses them.

use std::process::Stdio;

use reqwest::{Client, Response, StatusCode};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Child,
};

use crate::{programs::Terminal, support::office_hours};

const WEB: &str = "do-main/droplet/1";

/// The page of a store, open in a browser.
struct Open {
    terminal: Terminal,
    /// The address that was printed, and where it led.
    printed: String,
    page: String,
    origin: String,
    browser: Client,
    _ui: Child,
}

impl Open {
    /// On a Monday evening, when everything is off.
    async fn new() -> Self {
        let terminal = Terminal::new("16:00:00").await;
        terminal.local(&office_hours("", "", ""), "18:30:00").await;
        let mut ui =
            terminal.prepared(&["ui"]).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(ui.stdout.take().unwrap()).lines();
        let printed = lines.next_line().await.unwrap().unwrap();
        let browser = provider::http_client().unwrap();
        let opened = browser.get(&printed).send().await.unwrap();
        let (origin, _) = printed.rsplit_once('/').unwrap();
        let page = format!("{origin}{}", leads_to(&opened));
        Self { terminal, origin: origin.to_owned(), printed, page, browser, _ui: ui }
    }

    /// The address to which a button leads, whose command has `+` for blanks.
    fn button(&self, command: &str) -> String {
        format!("{}act?command={command}", self.page)
    }

    fn keep_running(&self) -> String {
        self.button(&format!("override+running+{WEB}+--for+2h"))
    }

    async fn get(&self, address: &str) -> Response {
        self.browser.get(address).send().await.unwrap()
    }

    async fn post(&self, address: &str, origin: &str) -> Response {
        self.browser.post(address).header("origin", origin).send().await.unwrap()
    }

    async fn overrides(&self) -> String {
        self.terminal.run(&["override", "list", "-o", "json"]).await.stdout
    }
}

fn leads_to(response: &Response) -> &str {
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    response.headers()["location"].to_str().unwrap()
}

#[tokio::test]
async fn a_button_shows_its_command_and_runs_it_once_agreed() {
    let open = Open::new().await;
    let button = open.keep_running();
    let question = open.get(&button).await.text().await.unwrap();
    let command = format!("offhours override running {WEB} --for 2h");
    assert!(question.contains(&command), "{question}");
    assert!(!open.overrides().await.contains(WEB));

    let done = open.post(&button, &open.origin).await;
    assert_eq!(leads_to(&done), "./");
    let overrides = open.overrides().await;
    assert!(overrides.contains(WEB), "{overrides}");
    let page = open.get(&open.page).await.text().await.unwrap();
    assert!(page.contains("override until"), "{page}");

    open.post(&open.button(&format!("override+clear+{WEB}")), &open.origin).await;
    assert!(!open.overrides().await.contains(WEB));
}

#[tokio::test]
async fn the_printed_address_opens_once_and_nothing_else_does() {
    let open = Open::new().await;
    let button = open.keep_running();
    let elsewhere = button.replace(&open.page, &format!("{}/", open.printed));
    for refused in [
        open.get(&open.printed).await,
        open.get(&format!("{}/", open.printed)).await,
        open.post(&elsewhere, &open.origin).await,
        open.post(&button, "https://page.example").await,
        open.post(&button, "null").await,
        open.browser.post(&button).send().await.unwrap(),
        open.browser.get(&open.page).header("host", "rebound.example").send().await.unwrap(),
        open.browser.get(&open.page).header("sec-fetch-site", "cross-site").send().await.unwrap(),
    ] {
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{}", refused.url());
        let policies = refused.headers().get_all("content-security-policy");
        let policies: Vec<_> = policies.iter().map(|policy| policy.to_str().unwrap()).collect();
        assert!(policies[0].starts_with("default-src 'none'"), "{policies:?}");
        assert!(policies[1].contains("frame-ancestors 'none'"), "{policies:?}");
    }
    assert!(!open.overrides().await.contains(WEB));
}

#[tokio::test]
async fn a_bad_end_is_an_error_that_says_so() {
    let open = Open::new().await;
    let button = open.button(&format!("override+stopped+{WEB}&until=soonish"));
    let answer = open.get(&button).await;
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let text = answer.text().await.unwrap();
    assert!(text.contains("soonish"), "{text}");
}

/// The values of the attributes of this name, unescaped.
fn attributes<'a>(html: &'a str, before: &str) -> Vec<&'a str> {
    let after = html.split(before).skip(1);
    after.map(|rest| rest.split_once('"').unwrap().0).collect()
}

#[tokio::test]
async fn each_button_of_the_page_leads_to_a_question() {
    let open = Open::new().await;
    let page = open.get(&open.page).await.text().await.unwrap();
    let commands = attributes(&page, "name=\"command\" value=\"");
    for command in &commands {
        let until = if command.contains("stopped") { "&until=next-edge" } else { "" };
        let button = open.button(&(command.replace(' ', "+") + until));
        let question = open.get(&button).await;
        assert_eq!(question.status(), StatusCode::OK, "{button}");
        let question = question.text().await.unwrap();
        assert!(question.contains("<form method=\"post\">"), "{question}");
    }
    for target in [WEB, "--schedule=office"] {
        for command in ["override running T --for 2h", "override stopped T", "start T --no-wait"] {
            let command = command.replace('T', target);
            assert!(commands.contains(&command.as_str()), "{commands:?}");
        }
    }
    let report = open.terminal.run(&["report"]).await.stdout;
    assert!(!report.contains("<form"), "only a live page has buttons");
}
