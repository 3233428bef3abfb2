//! Options that had another name: the old one works and is said to be old.

use std::ffi::OsString;

/// The words that lead to a command, the option's old name, and its name.
const OLD: [(&[&str], &str, &str); 8] = [
    (&["bench", "http"], "--data-set", "--dataset"),
    (&["bench", "memcpy"], "--peers", "--modes"),
    (&["bench", "memset"], "--peers", "--modes"),
    (&["bench", "order"], "--peers", "--modes"),
    (&["bench", "pages"], "--peers", "--modes"),
    (&["kernel", "build"], "--config", "--flavour"),
    (&["kernel", "boot"], "--config", "--flavour"),
    (&["survey", "run"], "--apply", "--submit"),
];

/// Notes on the old names among the words of a command line, the program's own name first.
pub fn notes(words: &[OsString]) -> Vec<String> {
    let words: Vec<&str> = words
        .iter()
        .skip(1)
        .map(|word| word.to_str().unwrap_or_default())
        .take_while(|word| *word != "--")
        .collect();
    // The inside of a booted kernel is started with the words that the outside has judged.
    if words.contains(&"--measure-only") {
        return Vec::new();
    }
    let is_given = |old: &str| words.iter().any(|word| word.split('=').next() == Some(old));
    let of_this = OLD.iter().filter(|(path, old, _)| words.starts_with(path) && is_given(old));
    of_this.map(|(_, old, new)| format!("note: {old} is called {new} now; both work")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Vec<String> {
        notes(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn an_old_name_is_said_to_be_old_and_a_new_one_is_not() {
        let note = "note: --data-set is called --dataset now; both work";
        assert_eq!(said("ntcopy bench http --data-set 1MiB"), [note]);
        assert_eq!(said("ntcopy bench http --data-set=1MiB"), [note]);
        assert_eq!(said("ntcopy bench http --dataset 1MiB"), [""; 0]);
        assert_eq!(said("ntcopy bench http --data-set 1MiB --measure-only"), [""; 0]);
    }

    #[test]
    fn words_of_another_command_or_program_are_not_looked_at() {
        assert_eq!(said("ntcopy advise --apply out"), [""; 0]);
        assert_eq!(said("ntcopy kernel package --config running"), [""; 0]);
        assert_eq!(said("ntcopy kernel boot -- proxyd --config x"), [""; 0]);
    }
}
