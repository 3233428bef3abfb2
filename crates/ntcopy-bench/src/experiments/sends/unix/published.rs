//! The published configurations of experiment `unix`, from `bench/published.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

const PUBLISHED_TOML: &str = include_str!("../../../../../../bench/published.toml");

/// One published configuration. Its figures are the report's business.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Published {
    /// What was special about it: which CPUs, which buffers.
    pub label: String,
    pub object_bytes: u64,
    pub iterations: u64,
    pub pipe_bytes: u64,
    pub sndbuf_bytes: u64,
}

impl Published {
    pub fn shares_l2(&self) -> bool {
        self.label.contains("shared L2") && !self.label.contains("no shared L2")
    }
}

/// The published configurations of experiment `unix`, in the file's order.
///
/// # Panics
///
/// When the embedded file is not what it was when the tests passed.
pub fn published() -> &'static [Published] {
    static UNIX: LazyLock<Vec<Published>> = LazyLock::new(|| {
        #[derive(Deserialize)]
        struct File {
            result: Vec<toml::Table>,
        }
        let file: File = toml::from_str(PUBLISHED_TOML).expect("bench/published.toml parses");
        file.result
            .into_iter()
            .filter(|row| row.get("experiment").and_then(toml::Value::as_str) == Some("unix"))
            .map(|row| row.try_into().expect("a unix row of bench/published.toml is whole"))
            .collect()
    });
    &UNIX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_published_configurations_are_there() {
        let sizes: Vec<_> = published()
            .iter()
            .map(|p| (p.object_bytes, p.iterations, p.pipe_bytes, p.sndbuf_bytes, p.shares_l2()))
            .collect();
        assert_eq!(
            sizes,
            [
                (1_048_576, 100_000, 524_288, 524_288, false),
                (1_048_576, 100_000, 524_288, 524_288, true),
                (1_048_576, 100_000, 131_072, 131_072, true),
            ]
        );
    }
}
