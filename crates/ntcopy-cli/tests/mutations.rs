//! Would the suite notice? The mistakes that matter most, put into the kernel one at a time.
//! `make mutations` tries all of `kernel/selftests/mutations.txt`.

use std::path::Path;
use std::process::Command;

/// No fence, a wrong byte at a page's end, a hint kept for TLS, a counter not bumped.
const WORST: [&str; 4] =
    ["no-fence", "wrong-byte-at-page-end", "hint-kept-for-tls", "counter-not-bumped"];

#[test]
fn the_suite_notices_the_worst_mistakes() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mutations.sh");
    let output = Command::new(script)
        .arg(env!("CARGO_BIN_EXE_ntcopy"))
        .args(WORST)
        .output()
        .expect("scripts/mutations.sh can be run");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}\n{said}\n{complained}", output.status);
    for name in WORST {
        let noticed =
            |line: &str| line.contains(&format!(" {name} (")) && line.contains("): noticed");
        assert!(said.lines().any(noticed), "{name}: {said}\n{complained}");
    }
}
