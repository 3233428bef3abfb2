//! What `--help` lists.

/// What stands above the names of commands; the program's own are in groups.
const LISTS: [&str; 5] = [
    "Commands:",
    "Experiments:",
    "What most people need:",
    "Measuring:",
    "Kernels, fleets and the rest:",
];

/// The commands that the help of one lists.
pub fn listed(help: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_list = false;
    for line in help.lines() {
        if !line.starts_with("  ") {
            is_list = LISTS.contains(&line);
        } else if is_list && !line.starts_with("   ") {
            // Deeper lines go on with what the one before says.
            names.extend(line.split_whitespace().next().map(str::to_owned));
        }
    }
    names.retain(|name| name != "help");
    names
}
