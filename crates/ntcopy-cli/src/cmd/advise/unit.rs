//! `--unit NAME`: a service as systemd knows it, and the command that starts it.

use std::fs;
use std::path::{Path, PathBuf};

use ntcopy_report::advice::dropins::{MARK, Service};

use crate::cmd::run;

/// Where units are, in the order in which systemd looks.
const FOLDERS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
/// Where systemd looks for a program that has no path.
const PROGRAMS: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// What may stand before a command and is kept there; systemd.service(5).
const PREFIXES: [char; 5] = ['-', ':', '+', '!', '|'];

/// The service of this name, or in this unit file, whose program can be hinted.
pub fn find(name: &str) -> Result<Service, String> {
    let (name, texts) = read(name)?;
    let command = start(&name, &texts)?;
    let (prefix, command) = split(&name, &command)?;
    reachable(&name, &command)?;
    Ok(Service { name, prefix, command })
}

/// Its name in full, and what its file and the drop-ins after it say.
fn read(name: &str) -> Result<(String, Vec<String>), String> {
    if name.contains('/') {
        let path = Path::new(name);
        let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        return Ok((in_full(name)?, vec![text]));
    }
    let name = in_full(name)?;
    let mut text = None;
    for file in [Some(name.clone()), template(&name)].into_iter().flatten() {
        for path in FOLDERS.map(|folder| Path::new(folder).join(&file)) {
            if text.is_none() && path.exists() {
                text = Some((
                    fs::read_to_string(&path)
                        .map_err(|error| format!("{}: {error}", path.display()))?,
                    path,
                ));
            }
        }
    }
    let Some((text, path)) = text else {
        return Err(format!(
            "there is no unit {name} in {}: install the program's package first, or name the \
             unit's file by its path",
            FOLDERS.join(", ")
        ));
    };
    if text.is_empty() {
        return Err(format!("{} is masked: systemctl unmask {name}", path.display()));
    }
    let mut texts = vec![text];
    for path in drop_ins(&name) {
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        // What was written here earlier is about to be written anew.
        if !text.starts_with(MARK) {
            texts.push(text);
        }
    }
    Ok((name, texts))
}

/// `nginx` is `nginx.service`, and nothing else is a service.
fn in_full(name: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!("`{name}` is no name of a unit"));
    }
    let kind = Path::new(name).extension().and_then(|kind| kind.to_str());
    match kind {
        Some("service") => Ok(name.to_owned()),
        Some("socket" | "timer" | "target" | "mount" | "path" | "slice" | "scope" | "swap") => {
            Err(format!("{name} starts no program: name a .service"))
        }
        _ => Ok(format!("{name}.service")),
    }
}

/// `postgresql@.service` of `postgresql@15-main.service`.
fn template(name: &str) -> Option<String> {
    let (before, _) = name.split_once('@')?;
    Some(format!("{before}@.service"))
}

/// In the order in which they count: by their names, and of one name the first folder's.
fn drop_ins(name: &str) -> Vec<PathBuf> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for folder in FOLDERS {
        let folder = Path::new(folder).join(format!("{name}.d"));
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            if file.ends_with(".conf") && !found.iter().any(|(name, _)| *name == file) {
                found.push((file, entry.path()));
            }
        }
    }
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

fn start(name: &str, texts: &[String]) -> Result<String, String> {
    let mut commands: Vec<String> = Vec::new();
    for text in texts {
        let mut section = String::new();
        for line in logical_lines(text) {
            if line.starts_with('[') {
                section = line;
            } else if let Some(("ExecStart", command)) = assignment(&line)
                && section == "[Service]"
            {
                match command {
                    "" => commands.clear(),
                    command => commands.push(command.to_owned()),
                }
            }
        }
    }
    match <[String; 1]>::try_from(commands) {
        Ok([command]) => Ok(command),
        Err(commands) if commands.is_empty() => Err(format!("{name} has no ExecStart=")),
        Err(commands) => Err(format!(
            "{name} has {} commands of ExecStart=, and it takes a person to say which of them to \
             hint",
            commands.len()
        )),
    }
}

/// Lines without comments, those that end with a backslash joined to the next.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = String::new();
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with(['#', ';']) || (line.is_empty() && open.is_empty()) {
            continue;
        }
        match line.strip_suffix('\\') {
            Some(part) => open.push_str(&format!("{} ", part.trim_end())),
            None => lines.push(std::mem::take(&mut open) + line),
        }
    }
    if !open.is_empty() {
        lines.push(open.trim_end().to_owned());
    }
    lines
}

fn assignment(line: &str) -> Option<(&str, &str)> {
    line.split_once('=').map(|(key, value)| (key.trim(), value.trim()))
}

/// What stands before the command, and the command.
fn split(name: &str, command: &str) -> Result<(String, String), String> {
    let bare = command.trim_start_matches(PREFIXES);
    let prefix = &command[..command.len() - bare.len()];
    let by_hand = |why: &str| {
        Err(format!("{name}: ExecStart={command}: {why}; put `ntcopy run -- ` before it by hand"))
    };
    if bare.starts_with('@') {
        return by_hand("@ gives the program another name");
    }
    let program = bare.split_whitespace().next().unwrap_or_default();
    if program.contains(['"', '\'', '$', '%', '\\', '@']) {
        return by_hand("the program is quoted, or stands for another one");
    }
    if Path::new(program).file_name().is_some_and(|file| file == "ntcopy")
        && bare.split_whitespace().nth(1) == Some("run")
    {
        return Err(format!("{name} is started by `ntcopy run` already: {command}"));
    }
    if bare.contains(" ; ") {
        return by_hand("several commands in one");
    }
    Ok((prefix.to_owned(), bare.to_owned()))
}

/// Whether its program is there, and can be hinted.
fn reachable(name: &str, command: &str) -> Result<(), String> {
    let program = command.split_whitespace().next().unwrap_or_default();
    let path = if program.starts_with('/') {
        Some(PathBuf::from(program))
    } else {
        let there = PROGRAMS.map(|folder| Path::new(folder).join(program));
        there.into_iter().find(|path| path.exists())
    };
    let Some(path) = path.filter(|path| path.exists()) else {
        return Err(format!(
            "{name} starts {program}, which is not there: install it first; nothing was written"
        ));
    };
    match run::obstacle(path.as_os_str()) {
        None => Ok(()),
        Some(why) => Err(format!("{name}: {why}; `ntcopy run` can't hint it; nothing was written")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NGINX: &str = "[Unit]\nDescription=A web server\n\n[Service]\nType=forking\n\
        PIDFile=/run/nginx.pid\n# ExecStart=/not/this\n\
        ExecStartPre=/usr/sbin/nginx -t -q -g 'daemon on; master_process on;'\n\
        ExecStart=/usr/sbin/nginx -g 'daemon on; master_process on;'\n\
        ExecReload=/usr/sbin/nginx -g 'daemon on;' -s reload\n";
    const HAPROXY: &str = "[Service]\nEnvironment=\"CONFIG=/etc/haproxy/haproxy.cfg\"\n\
        ExecStartPre=/usr/sbin/haproxy -Ws -f $CONFIG -c -q $EXTRAOPTS\n\
        ExecStart=/usr/sbin/haproxy -Ws -f $CONFIG \\\n    -p $PIDFILE $EXTRAOPTS\n\
        [Install]\nExecStart=/not/this\n";

    fn started(texts: &[&str]) -> Result<(String, String), String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        split("x.service", &start("x.service", &texts)?)
    }

    #[test]
    fn the_command_is_the_units_own() {
        for (texts, prefix, command) in [
            (&[NGINX][..], "", "/usr/sbin/nginx -g 'daemon on; master_process on;'"),
            (&[HAPROXY], "", "/usr/sbin/haproxy -Ws -f $CONFIG -p $PIDFILE $EXTRAOPTS"),
            (&[NGINX, "[Service]\nExecStart=\nExecStart = -:cat %n\n"], "-:", "cat %n"),
        ] {
            assert_eq!(started(texts), Ok((prefix.to_owned(), command.to_owned())));
        }
    }

    #[test]
    fn what_cannot_be_wrapped_is_refused_in_words() {
        for (unit, says) in [
            ("[Unit]\nExecStart=/bin/cat\n", "no ExecStart="),
            ("[Service]\nExecStart=/bin/a\nExecStart=/bin/b\n", "2 commands"),
            ("[Service]\nExecStart=@/bin/sh sh\n", "another name"),
            ("[Service]\nExecStart=\"/opt/my program\" -x\n", "quoted"),
            ("[Service]\nExecStart=/usr/bin/ntcopy run -- cat\n", "already"),
            ("[Service]\nExecStart=/bin/a ; /bin/b\n", "several"),
        ] {
            let why = started(&[unit]).expect_err(unit);
            assert!(why.contains(says), "{says}: {why}");
        }
    }

    #[test]
    fn names_are_those_of_services() {
        assert_eq!(in_full("nginx"), Ok("nginx.service".into()));
        assert_eq!(in_full("php8.2-fpm.service"), Ok("php8.2-fpm.service".into()));
        assert_eq!(in_full("php8.2-fpm"), Ok("php8.2-fpm.service".into()));
        assert_eq!(template("postgresql@15-main.service"), Some("postgresql@.service".into()));
        for name in ["", "../etc", "a b", "ssh.socket"] {
            assert!(in_full(name).is_err(), "{name}");
        }
    }
}
