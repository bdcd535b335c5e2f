//! Mail over SMTP, encrypted except on loopback.

use std::{error::Error, time::SystemTime};

use domain::configuration::notify::NotifyTarget;
use lettre::{
    AsyncSmtpTransport, AsyncTransport as _, Message as Mail, Tokio1Executor, message::Mailbox,
};
use provider::is_loopback;
use reqwest::Url;

use super::{
    PATIENCE, SendError,
    message::{Message, shortened},
};

/// The longest subject, in characters.
const LONGEST_SUBJECT: usize = 120;

pub(super) async fn send(
    address: &str,
    target: &NotifyTarget,
    message: &Message,
) -> Result<(), SendError> {
    let mail = mail(target, message)
        .map_err(|error| SendError::of("the mail cannot be written", &*error))?;
    let url = encrypted(address).ok_or_else(|| {
        let what = "its address is not smtps://USER:PASSWORD@HOST, or smtp:// for STARTTLS";
        SendError::NotAccepted(what.to_owned())
    })?;
    let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.as_str())
        .map_err(|error| SendError::of("its address cannot be used", &error))?
        .timeout(Some(PATIENCE))
        .build();
    let sent = transport.send(mail).await;
    sent.map(drop).map_err(|error| SendError::of("the mail is not accepted", &error))
}

/// Returns the address of a server, with the word that makes lettre refuse to go on without
/// encryption.
fn encrypted(address: &str) -> Option<Url> {
    let mut url = Url::parse(address).ok()?;
    let query = match url.scheme() {
        "smtps" => None,
        "smtp" if is_loopback(&url) => None,
        "smtp" => Some("tls=required"),
        _ => return None,
    };
    url.set_query(query);
    Some(url)
}

fn mail(target: &NotifyTarget, message: &Message) -> Result<Mail, Box<dyn Error>> {
    let from: Mailbox = target.from.as_deref().unwrap_or_default().parse()?;
    let mut mail = Mail::builder()
        .from(from)
        .subject(shortened(&format!("Offhours: {}", message.text), LONGEST_SUBJECT))
        .message_id(Some(format!("<{}@offhours>", message.id)))
        .date(SystemTime::from(message.at));
    for to in &target.to {
        mail = mail.to(to.parse()?);
    }
    Ok(mail.body(format!("{}\n", message.text))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_sent_encrypted_except_on_loopback() {
        let encrypted = |address: &str| encrypted(address).map(|url| url.to_string());
        let starttls = encrypted("smtp://u:p@mail.example.com:587?tls=none");
        assert_eq!(starttls.as_deref(), Some("smtp://u:p@mail.example.com:587?tls=required"));
        for address in ["smtps://u:p@mail.example.com", "smtp://127.0.0.1:2525"] {
            assert_eq!(encrypted(address).as_deref(), Some(address));
        }
        assert_eq!(encrypted("http://127.0.0.1"), None);
        assert_eq!(encrypted("mail.example.com"), None);
    }
}
