//! The program's own commands where a booted kernel is all that they have: no vDSO to speak of, no
//! modules, few file systems.

use crate::common::{PROGRAM, guest::Guest, preload::library, text};

/// A command as it is typed, and how it ends in a user-mode kernel. `$N` is the program, `$L` the
/// library of `ntcopy run`, and records are in `$HOME/a` and `$HOME/b`.
const COMMANDS: [(&str, &[i32]); 22] = [
    ("probe", &[0]),
    ("probe --json", &[0]),
    ("bench list", &[0]),
    ("bench unix --quick --sockets 1 --object 64KiB --dataset 1MiB --pairs 5 --out $HOME/a", &[0]),
    ("bench unix --quick --sockets 1 --object 64KiB --dataset 1MiB --pairs 5 --out $HOME/b", &[0]),
    ("bench memcpy --quick --size 64KiB --threads 1 --pairs 5 --out $HOME/m", &[0]),
    ("advise", &[0]),
    ("advise $HOME/a --json", &[0]),
    ("advise --pid $$ --seconds 1", &[0]),
    ("advise --all --seconds 1 --json", &[0]),
    ("stat", &[0]),
    ("stat --json --pid $$", &[0]),
    ("report $HOME/a", &[0]),
    ("report $HOME/a --against $HOME/b", &[0]),
    ("report $HOME/a --out $HOME/page.html", &[0]),
    ("run --library $L -- true", &[0]),
    ("try --library $L --anyway --pairs 5 --out $HOME/t -- true", &[0]),
    // On a machine under load no clock may tell its caches apart.
    ("footprint --quick copy:64KiB --out $HOME/f", &[0, 3]),
    ("kernel list", &[0]),
    ("module status", &[0]),
    ("survey --store $HOME/s add $HOME/a", &[0]),
    ("unix-nt-bench 65536 16 0 524288 524288", &[0]),
];

/// What is for servers with cards, and what tests/booted/set.rs tries.
const LEFT_OUT: [&str; 2] = ["ddio", "set"];

#[test]
fn every_command_works_in_a_booted_kernel() {
    let verb = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    for command in ntcopy_cli::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let name = command.get_name();
        let is_tried = COMMANDS.iter().any(|(line, _)| verb(line) == name);
        assert!(is_tried || LEFT_OUT.contains(&name), "{name} is not tried in a booted kernel");
    }
    let mut script = format!("export HOME=/run/home N={PROGRAM} L={}; mkdir $HOME\n", library());
    for (line, codes) in COMMANDS {
        let codes: Vec<String> = codes.iter().map(i32::to_string).collect();
        script += &format!(
            "\"$N\" {line} >$HOME/out 2>&1; c=$?\n\
             if case $c in {}) grep -q panicked $HOME/out ;; esac; then\n\
             echo \"{}: $c\"; tail -n 20 $HOME/out; fi\n",
            codes.join("|"),
            line.replace('$', "\\$")
        );
    }
    let output = Guest::new("um", &["--mem", "768M", "--timeout", "900"]).shell(&script);
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
