//! Defaults for keys that a fleet may leave out.

use jiff::SignedDuration;

pub(crate) fn seconds<const SECONDS: i64>() -> SignedDuration {
    SignedDuration::from_secs(SECONDS)
}

pub(crate) fn one() -> u32 {
    1
}

pub(crate) fn region() -> String {
    "fra1".to_owned()
}

pub(crate) fn droplet_size() -> String {
    "s-1vcpu-2gb".to_owned()
}

pub(crate) fn node_size() -> String {
    "s-2vcpu-4gb".to_owned()
}

pub(crate) fn location() -> String {
    "fsn1".to_owned()
}

pub(crate) fn server_type() -> String {
    "cx22".to_owned()
}

pub(crate) fn snapshot_gb() -> f64 {
    4.5
}
