//! A mistake in a declaration does not compile, and says in plain words what to write instead.
//! Each file in `ui/` is one mistake; the `.stderr` beside it is what its author reads.

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
