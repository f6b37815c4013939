//! Without the feature `openapi`, records and parts are not described in OpenAPI documents.

/// Accepts a record and generates nothing.
#[doc(hidden)]
#[macro_export]
macro_rules! record_openapi {
    ($($record:tt)*) => {};
}

/// Accepts a part and generates nothing.
#[doc(hidden)]
#[macro_export]
macro_rules! part_openapi {
    ($name:ident, $inner:ty) => {};
}
