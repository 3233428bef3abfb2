//! The documents have the figures of the records that the index names, and no others.

use std::path::Path;

use xtask::documents;

#[test]
fn every_generated_page_picture_and_figure_is_that_of_its_record() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let stale = documents::stale(&root).unwrap_or_else(|why| panic!("{why}"));
    let names: Vec<String> = stale.iter().map(|path| path.display().to_string()).collect();
    assert!(names.is_empty(), "not as the records are: {}; run make docs", names.join(", "));
}
