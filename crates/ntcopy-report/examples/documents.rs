//! Writes what `docs/results`, README and the other documents have from records: `make docs`.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use ntcopy_report::documents;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match write(&root) {
        Ok(written) => {
            println!("docs: {written} files written anew");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("docs: {why}");
            ExitCode::FAILURE
        }
    }
}

/// How many files were not as they should be.
fn write(root: &Path) -> Result<usize, Box<dyn std::error::Error>> {
    let files = documents::all(root)?;
    let mut written = 0;
    for (path, text) in &files {
        let path = root.join(path);
        if fs::read_to_string(&path).ok().as_ref() != Some(text) {
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            fs::write(&path, text)?;
            written += 1;
        }
    }
    for path in documents::left_over(root, &files)? {
        fs::remove_file(root.join(path))?;
        written += 1;
    }
    Ok(written)
}
