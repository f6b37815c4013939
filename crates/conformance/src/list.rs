//! The macro behind the one list of cases.

/// Declares the list from the names of the functions, so that a case cannot be named and not run.
macro_rules! cases {
    ($($module:ident: [$($case:ident),* $(,)?],)*) => {
        /// Every case, by name.
        pub const CASES: &[(&str, CaseFn)] = &[$($(
            (concat!(stringify!($module), "::", stringify!($case)), |context| Box::pin(cases::$module::$case(context))),
        )*)*];
    };
}
