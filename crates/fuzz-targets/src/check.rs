//! Properties of everything that is read and written.

use std::{
    error::Error,
    fmt::{Debug, Display},
    str::FromStr,
};

use serde::{Serialize, de::DeserializeOwned};
use testing::everything;

/// Stands for a secret: whatever repeats it leaks one.
pub(crate) const SECRET: &str = "pasted/by/mistake-5ec2e7";

/// Parses a text. A parsed value must survive a round trip through text, and an error must have a
/// message.
pub(crate) fn read<T>(text: &str) -> Option<T>
where
    T: FromStr<Err: Error + 'static> + Display + PartialEq + Debug,
{
    match text.parse::<T>() {
        Ok(read) => {
            let written = read.to_string();
            let again = written.parse::<T>();
            assert_eq!(again.as_ref().ok(), Some(&read), "written as {written:?}");
            Some(read)
        }
        Err(error) => {
            has_message(&error);
            None
        }
    }
}

/// Parses a text that may be a secret by mistake: an error must not repeat it.
pub(crate) fn does_not_repeat_secret<T>(text: &str)
where
    T: FromStr<Err: Error + 'static>,
{
    if let Err(error) = format!("{text}{SECRET}").parse::<T>() {
        has_message(&error);
        let said = everything(&error);
        assert!(!said.contains(SECRET), "{said}");
    }
}

/// Checks that a value survives a round trip through JSON.
pub(crate) fn json_round_trips<T>(value: &T)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let json = serde_json::to_string(value).expect("what was read can be written");
    let again: T = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(again, *value, "written as {json}");
}

/// Checks that an error has a message.
pub(crate) fn has_message(error: &(dyn Error + 'static)) {
    assert!(!error.to_string().trim().is_empty(), "{error:?}");
}
