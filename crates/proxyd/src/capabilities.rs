//! What can be had here, for tests that skip what can't.

use ntcopy::socket::{Support, kernel_support};

/// The words, in a fixed order; those that can't be had are left out.
pub fn capabilities() -> Vec<&'static str> {
    let support = kernel_support();
    [
        ("splice", crate::splice::probe()),
        ("nt-kernel", support == Support::Kernel),
        ("nt-module", support == Support::Module),
        ("tls", true),
        ("ktls", crate::tls::kernel_is_available()),
        ("quic", cfg!(feature = "quic")),
    ]
    .into_iter()
    .filter_map(|(word, had)| had.then_some(word))
    .collect()
}
