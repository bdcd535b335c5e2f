//! Instants and durations as people write them.

mod length;
mod month;
mod when;

pub use length::{Length, NotALength};
pub use month::{Month, NotAMonth};
pub use when::{Asked, NotAWhen, Reader, When};

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use report::time::shared_zone;

    #[test]
    fn a_screen_has_the_zone_that_its_schedules_share() {
        let zone = |text: &str| {
            let parsed = crate::configuration_file::parse(text, "offhours.toml").unwrap();
            let zone = shared_zone(&parsed.configuration);
            zone.and_then(TimeZone::iana_name).unwrap_or_default().to_owned()
        };
        let shared = "timezone = \"Europe/Berlin\"\n\
                      schedules.a.periods = [{ begin = \"08:00\", end = \"19:00\" }]\n\
                      schedules.b.periods = [{ weekdays = \"sat\" }]\n";
        assert_eq!(zone(shared), "Europe/Berlin");
        let mixed = format!("{shared}schedules.b.timezone = \"Asia/Tokyo\"\n");
        assert_eq!(zone(&mixed), "");
        assert_eq!(zone(""), "");
    }
}
