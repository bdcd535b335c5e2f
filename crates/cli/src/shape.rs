//! The JSON schemas of what programs read, from the types that are written.

use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::Value;

/// The schema of what a type is written as, complete in itself (draft 2020-12).
pub(crate) fn of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(RecursiveTransform(unfold));
    settings.into_generator().into_root_schema_for::<T>()
}

/// Makes one line of a description, which is folded as the code is.
fn unfold(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}
