//! Drop-in files that carry advice, as text. Nothing is written here.

use std::borrow::Cow;
use std::path::Path;

use ntcopy_record::advice::{Advice, Decision, Topic, Value};

use super::figure;
use crate::text;

/// The first words of each file: what has them may be replaced by a newer one.
pub const MARK: &str = "# Written by ntcopy advise.";

/// The folder of the example for a service: nothing is called so, so that it does nothing by
/// itself.
pub const EXAMPLE: &str = "systemd/system/EXAMPLE.service.d/60-ntcopy.conf";
pub const SYSCTL: &str = "sysctl.d/60-ntcopy.conf";
pub const ENVIRONMENT: &str = "environment.d/60-ntcopy.conf";

pub const ALL: [&str; 3] = [SYSCTL, ENVIRONMENT, EXAMPLE];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropIn {
    /// Where it belongs, below the folder that was named.
    pub path: Cow<'static, str>,
    pub text: String,
    pub then: Cow<'static, str>,
}

/// A service of systemd's whose sends are to be hinted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The unit: `nginx.service`.
    pub name: String,
    /// What stands before the command in `ExecStart=`, such as `-`.
    pub prefix: String,
    /// The command, in systemd's own words.
    pub command: String,
}

/// The files that the advice gives; a file without evidence is none. `others` is what
/// `GLIBC_TUNABLES` holds already, which is kept; `program` is where ntcopy is.
pub fn files(all: &[Advice], others: &str, program: &Path) -> Vec<DropIn> {
    let files = [sysctl(all), environment(all, others), example(all, others, program)];
    files.into_iter().flatten().collect()
}

/// Tunables as `GLIBC_TUNABLES` wants them: those that are not ours first, since of two glibc takes
/// the last.
pub fn tunables(all: &[Advice], others: &str) -> String {
    let ours: Vec<(&str, u64)> = all
        .iter()
        .filter_map(|advice| match &advice.value {
            Some(Value::Tunable(name, value)) => Some((name.as_str(), *value)),
            _ => None,
        })
        .collect();
    let is_other = |part: &&str| {
        let name = part.split('=').next().unwrap_or_default();
        !part.is_empty() && !ours.iter().any(|(ours, _)| *ours == name)
    };
    let mut parts: Vec<String> = others.split(':').filter(is_other).map(str::to_owned).collect();
    parts.extend(ours.iter().map(|(name, value)| format!("{name}={value}")));
    parts.join(":")
}

fn sysctl(all: &[Advice]) -> Option<DropIn> {
    let mut text = head(
        "Settings of the kernel, read at boot: sysctl.d(5). A leading - lets kernels \
                         without the setting pass.",
    );
    let mut any = false;
    for advice in all {
        if let Some(Value::Sysctl(name, value)) = &advice.value {
            text.push('\n');
            text.push_str(&comment(advice));
            text.push_str(&format!("-{name} = {value}\n"));
            any = true;
        }
    }
    any.then_some(DropIn {
        path: SYSCTL.into(),
        text,
        then: "copy it to /etc/sysctl.d, then: sysctl --system".into(),
    })
}

fn has_tunable(advice: &&Advice) -> bool {
    matches!(advice.value, Some(Value::Tunable(..)))
}

fn environment(all: &[Advice], others: &str) -> Option<DropIn> {
    let with: Vec<&Advice> = all.iter().filter(has_tunable).collect();
    if with.is_empty() {
        return None;
    }
    let mut text = head("glibc's thresholds for sessions that systemd starts: environment.d(5).");
    text.push('\n');
    text.extend(with.into_iter().map(comment));
    text.push_str(&format!("GLIBC_TUNABLES={}\n", tunables(all, others)));
    Some(DropIn {
        path: ENVIRONMENT.into(),
        text,
        then: "copy it to ~/.config/environment.d (yours) or /etc/environment.d (everybody's); \
               sessions that begin later have it. Services do not: see the example"
            .into(),
    })
}

fn example(all: &[Advice], others: &str, program: &Path) -> Option<DropIn> {
    let with: Vec<&Advice> = all.iter().filter(has_tunable).collect();
    let run = run(all);
    if with.is_empty() && run.is_none() {
        return None;
    }
    let mut text = head(
        "An example for one service: systemd.unit(5), systemd.exec(5). Name the folder after the \
         service.",
    );
    text.push_str("\n[Service]\n");
    text.extend(with.iter().copied().map(comment));
    if !with.is_empty() {
        text.push_str(&format!("Environment=GLIBC_TUNABLES={}\n", tunables(all, others)));
    }
    if let Some(run) = run {
        text.push_str(&comment(run));
        let command = options(run);
        text.push_str(
            "# To hint the service's sends, take the # from both lines and put its own \
                       command in:\n",
        );
        text.push_str("#ExecStart=\n");
        text.push_str(&format!(
            "#ExecStart={} {command} --anyway -- /usr/sbin/PROGRAM ARGUMENTS\n",
            executable(program)
        ));
    }
    Some(DropIn {
        path: EXAMPLE.into(),
        text,
        then:
            "copy it to /etc/systemd/system/SERVICE.service.d, then: systemctl daemon-reload and \
               restart the service"
                .into(),
    })
}

/// The file by which a service is started under `ntcopy run`: with the smallest send that was said
/// by hand, else with what the records say; none where they don't say that hinted sends pay.
pub fn service(
    all: &[Advice],
    program: &Path,
    service: &Service,
    min_bytes: Option<&str>,
) -> Option<DropIn> {
    let (why, options) = match (min_bytes, run(all)) {
        (Some(size), advice) => {
            let said = match advice {
                Some(_) => "said by hand; ntcopy advise has what the records say",
                None => "said by hand: no record says that it pays here; ntcopy try measures it",
            };
            (hashed(&format!("--min-bytes {size} was {said}")), format!("run --min-bytes {size}"))
        }
        (None, advice) => (comment(advice?), options(advice?).to_owned()),
    };
    let Service { name, prefix, command } = service;
    let mut text = head(&format!(
        "{name}, its large sends hinted; on a kernel without the flag it starts all the same."
    ));
    text.push_str("\n[Service]\n");
    text.push_str(&why);
    text.push_str(&format!(
        "ExecStart=\nExecStart={prefix}{} {options} --anyway -- {command}\n",
        executable(program)
    ));
    Some(DropIn {
        path: format!("systemd/system/{name}.d/60-ntcopy.conf").into(),
        text,
        then: format!(
            "copy it to /etc/systemd/system/{name}.d, then: systemctl daemon-reload && systemctl \
             restart {name}"
        )
        .into(),
    })
}

/// Whether the records say that `ntcopy run` pays.
pub fn has_run(all: &[Advice]) -> bool {
    run(all).is_some()
}

/// What the records say of `ntcopy run`, if they say that it pays.
fn run(all: &[Advice]) -> Option<&Advice> {
    all.iter().find(|advice| advice.topic == Topic::Run && advice.decision == Decision::Set)
}

/// `run` and its options, as the advice has them.
fn options(run: &Advice) -> &str {
    let words = run.setting.as_deref().unwrap_or("ntcopy run -- PROGRAM");
    words.trim_start_matches("ntcopy ").trim_end_matches(" -- PROGRAM")
}

/// A path as the first word of a command of systemd.service(5). One that it could not hold is the
/// bare name, which systemd looks up in a path of its own.
fn executable(program: &Path) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,=%".contains(c);
    match program.to_str() {
        // Every % begins a specifier of systemd, but for two of them.
        Some(path) if path.chars().all(is_plain) => path.replace('%', "%%"),
        Some(path) if !path.contains(|c: char| c.is_control() || c == '$') => {
            let path = path.replace('%', "%%").replace('\\', "\\\\").replace('"', "\\\"");
            format!("\"{path}\"")
        }
        _ => "ntcopy".to_owned(),
    }
}

fn head(what: &str) -> String {
    let mut text = format!("{MARK} Nothing reads it where it was written.\n");
    text.push_str(&hashed(what));
    text
}

fn comment(advice: &Advice) -> String {
    let gain = advice.gain.map_or(String::new(), |gain| format!("{}, ", figure(&gain)));
    hashed(&format!(
        "{}: {gain}{} cells, record {}",
        advice.topic.slug(),
        advice.gain.map_or(0, |gain| gain.cells),
        advice.records.join(" "),
    ))
}

fn hashed(words: &str) -> String {
    // Nothing of a record's text may end the comment; words have no newline.
    let words: String = words.chars().filter(|c| c.is_whitespace() || !c.is_control()).collect();
    text::hanging("", &words, 94).lines().map(|line| format!("# {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_as_a_unit_takes_it() {
        for (path, word) in [
            ("/usr/bin/ntcopy", "/usr/bin/ntcopy"),
            ("/opt/50%/ntcopy", "/opt/50%%/ntcopy"),
            ("/opt/my tools/nt\"copy", "\"/opt/my tools/nt\\\"copy\""),
            ("/opt/$HOME/ntcopy", "ntcopy"),
            ("/opt/a\nExecStart=/bin/evil", "ntcopy"),
        ] {
            assert_eq!(executable(Path::new(path)), word);
        }
    }
}
