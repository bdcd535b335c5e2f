//! The JSON schemas of what programs read, derived from the types that are written.

use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::Value;

/// The self-contained schema (draft 2020-12) of a type's serialized form.
pub(crate) fn schema_of<T: JsonSchema>() -> Schema {
    let settings =
        SchemaSettings::draft2020_12().for_serialize().with_transform(RecursiveTransform(unfold));
    settings.into_generator().into_root_schema_for::<T>()
}

/// Joins a description into one line, because its source is wrapped like the code.
fn unfold(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}
