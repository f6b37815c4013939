//! Typical mistakes in a transaction's body, and what their author reads. Each file in `ui/` is one mistake.

#[test]
fn mistakes_in_a_body_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
