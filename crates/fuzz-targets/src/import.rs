//! AWS Instance Scheduler's configuration.

use offhours::{
    configuration_file::parse,
    import::{Source, import},
};

use crate::check;

/// The translation is an accepted configuration with the same schedules; what is left out is named.
pub(crate) fn run(data: &[u8]) {
    let source =
        Source { name: "export.json".to_owned(), text: String::from_utf8_lossy(data).into_owned() };
    let imported = match import(&[source], None) {
        Ok(imported) => imported,
        Err(error) => return check::has_message(&error),
    };
    for remark in &imported.remarks {
        assert!(!remark.about.is_empty() && !remark.message.is_empty(), "{remark}");
    }
    let left_out = imported.remarks.iter().any(|remark| remark.left_out);
    assert!(left_out || !imported.schedules.is_empty());
    let text = imported.to_toml();
    let parsed = parse(&text, "offhours.toml");
    let parsed = parsed.unwrap_or_else(|problems| panic!("{problems:#?}\n{text}"));
    let read = &parsed.configuration.schedules;
    assert!(read.keys().eq(imported.schedules.keys()), "{text}");
    for (read, translated) in read.values().zip(imported.schedules.values()) {
        assert_eq!(read.schedule.definition(), translated.schedule.definition());
        assert_eq!(read.policy, translated.policy);
    }
}
