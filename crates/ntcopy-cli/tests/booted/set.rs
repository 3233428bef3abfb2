//! `ntcopy set` on programs that run in a kernel that has the option: `tests/guest/set.py` is both.

use crate::common::{PROGRAM, good, guest::Guest, project};

/// What set.py tries, each by itself.
const TESTS: [&str; 7] = [
    "there_and_back",
    "what_was_accepted_gets_its_listeners",
    "descendants_and_shared_sockets",
    "watch_sets_what_is_made_later_and_ends",
    "a_peer_sees_the_end_while_it_watches",
    "stopped_or_killed_at_any_point_it_holds_nothing",
    "on_and_off_under_load_nothing_is_lost",
];

#[test]
fn sockets_of_a_running_program_are_set_watched_and_put_back() {
    let guest = Guest::new("um", &["--timeout", "1200"]);
    let script = project().join("crates/ntcopy-cli/tests/guest/set.py");
    let script = script.to_str().expect("a path in UTF-8");
    let output = guest.run(&[&["python3", script, PROGRAM], &TESTS[..]].concat());
    let said = good(&output);
    let passed: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("ok ")).collect();
    assert_eq!(passed, TESTS, "{said}");
}
