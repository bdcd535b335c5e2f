//! What stored forms have in common.

/// Reports whether a value is the default of its type, which is not stored.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
