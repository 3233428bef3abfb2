//! The site's own tool, called once for each node: `srun`, `kubectl`, `ssh`, or any other.
//!
//! A [`Tool`] is a command line with placeholders. What it starts on the node prints frames, and the
//! tool hands them on by its standard output.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::lines::{self, Tail};
use super::{Ask, Piece, frame, node};
use crate::store::STORE_VARIABLE;

/// The templates that have a name.
///
/// `srun` and `kubectl` take more from where they always do: `SLURM_PARTITION` and `SLURM_ACCOUNT`,
/// the context's namespace.
pub const TEMPLATES: [(&str, &str); 3] = [
    // Alone on the node, with all of its CPUs and memory: neighbours would be measured too.
    (
        "slurm",
        "srun --nodes=1 --ntasks=1 --nodelist={node} --exclusive --mem=0 --cpu-bind=none \
         --input=none --job-name=ntcopy-survey -- {ntcopy}",
    ),
    // No privilege, no token. No limit of CPU time: a throttled sample would be no timing.
    (
        "kubernetes",
        r#"kubectl run ntcopy-survey-{node} --image={image} --restart=Never --attach --rm --quiet
        --override-type=strategic --overrides='{"spec": {"nodeName": "{node}",
        "automountServiceAccountToken": false, "securityContext": {"runAsNonRoot": true,
        "runAsUser": 65534, "runAsGroup": 65534, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "ntcopy-survey-{node}", "env": [{"name": "HOME", "value": "/tmp"}],
        "resources": {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"memory": "4Gi"}},
        "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]}}, "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}]}}' --command -- {ntcopy}"#,
    ),
    ("ssh", "ssh -o BatchMode=yes {node} {ntcopy}"),
];

/// How often a call is looked after.
const LOOK: Duration = Duration::from_millis(100);
/// How long a tool may take to end once it was told to.
const GOODBYE: Duration = Duration::from_secs(20);
/// Lines that wait to be read; a node that prints faster is held up.
const WAITING_LINES: usize = 64;

/// How a node is reached.
#[derive(Debug, Clone)]
pub struct Tool {
    words: Vec<String>,
    fleet: String,
    program: String,
}

impl Tool {
    /// Reads a template: words as a shell takes them apart, in which `{node}` stands for the node's
    /// name and `{image}` for the image; the word `{ntcopy}` stands for the words of the command
    /// that measures.
    ///
    /// # Errors
    ///
    /// Says what is missing in it, or what its values may not hold.
    pub fn new(
        template: &str,
        image: Option<&str>,
        fleet: &str,
        program: &str,
    ) -> Result<Tool, String> {
        let mut words = shlex::split(template)
            .ok_or_else(|| format!("a quotation mark without its other in: {template}"))?;
        if !words.iter().any(|word| word == "{ntcopy}") {
            return Err(format!("{{ntcopy}} as a word of its own is missing in: {template}"));
        }
        if !words.iter().any(|word| word.contains("{node}")) {
            return Err(format!("{{node}} is missing in: {template}"));
        }
        for word in &mut words {
            if word.contains("{image}") {
                let image = image.ok_or("the image with ntcopy in it is missing: say --image")?;
                *word = word.replace("{image}", image);
            }
        }
        is_plain("fleet", fleet)?;
        is_plain("program", program)?;
        Ok(Tool { words, fleet: fleet.to_owned(), program: program.to_owned() })
    }

    fn command(&self, node: &str, ask: &Ask) -> Command {
        let mut words = Vec::new();
        for word in &self.words {
            if word == "{ntcopy}" {
                words.push(self.program.clone());
                words.extend(ask.command(&self.fleet, node));
            } else {
                words.push(word.replace("{node}", node));
            }
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_remove(STORE_VARIABLE);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C at a terminal is for this program, which then ends the tool.
        command.process_group(0);
        command
    }

    /// Measures on one node; returns when it is done, with or without success.
    ///
    /// # Errors
    ///
    /// When the node could not be brought to do it, or fell silent before it was done.
    pub fn measure(
        &self,
        node: &str,
        ask: &Ask,
        cancelled: &dyn Fn() -> bool,
        each: &mut dyn FnMut(Piece),
    ) -> Result<(), String> {
        is_plain("node", node)?;
        let name = &self.words[0];
        let child = self.command(node, ask).spawn();
        let child = child.map_err(|error| format!("{name} cannot be started: {error}"))?;
        let (status, is_done, tail) = self.follow(child, cancelled, each);
        if cancelled() {
            return Err("cancelled".to_owned());
        }
        match status {
            // However the tool ended: the node said all that it had to say, failures included.
            Ok(_) if is_done => Ok(()),
            Ok(status) => {
                let said = tail.text();
                let said = if said.is_empty() { "it said nothing".to_owned() } else { said };
                Err(format!("{name} ended before the node was done ({status}): {said}"))
            }
            Err(error) => Err(format!("{name}: {error}")),
        }
    }

    /// Listens to a call until its end, or ends it: how it ended, whether the node was done, and
    /// what was said last.
    fn follow(
        &self,
        mut child: Child,
        cancelled: &dyn Fn() -> bool,
        each: &mut dyn FnMut(Piece),
    ) -> (std::io::Result<ExitStatus>, bool, Tail) {
        let tail = Arc::new(Mutex::new(Tail::default()));
        let (send, lines) = sync_channel::<String>(WAITING_LINES);
        let stdout = child.stdout.take().expect("the command has pipes");
        let stderr = child.stderr.take().expect("the command has pipes");
        let said = Arc::clone(&tail);
        let (all_said, is_all_said) = sync_channel::<()>(0);
        thread::spawn(move || {
            lines::each(stderr, |line| {
                said.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            });
            drop(all_said);
        });
        thread::spawn(move || {
            // It fails when the receiver is gone: the output is drained all the same.
            lines::each(stdout, |line| drop(send.send(line.to_owned())));
        });
        let mut reader = frame::Reader::default();
        loop {
            match lines.recv_timeout(LOOK) {
                Ok(line) => reader.line(&line).into_iter().for_each(&mut *each),
                Err(RecvTimeoutError::Timeout) if !cancelled() => {}
                Err(_) => break,
            }
            if cancelled() {
                break;
            }
        }
        if cancelled() {
            node::terminate_group(&child);
        } else {
            reader.cut_short().into_iter().for_each(&mut *each);
        }
        drop(lines);
        let status = end(&mut child);
        // Its last line may come after its end, or never, from what it left in the background.
        if !reader.is_done() && !cancelled() {
            let _ = is_all_said.recv_timeout(GOODBYE);
        }
        let tail = tail.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (status, reader.is_done(), tail)
    }
}

/// Refuses what the node's shell, which `ssh` asks, would take apart, and what an option looks like.
fn is_plain(what: &str, name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@+".contains(c);
    if !name.is_empty() && !name.starts_with('-') && name.chars().all(plain) {
        return Ok(());
    }
    let name = name.escape_default();
    Err(format!("the {what} `{name}` may have letters, digits and . _ - / : @ + alone"))
}

/// Waits for the tool's end, which is near.
fn end(child: &mut Child) -> std::io::Result<ExitStatus> {
    let until = Instant::now() + GOODBYE;
    while Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(LOOK);
    }
    child.kill()?;
    child.wait()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(template: &str, image: Option<&str>) -> Result<Tool, String> {
        Tool::new(template, image, "web", "/opt/ntcopy")
    }

    fn words(name: &str) -> Vec<String> {
        let template = TEMPLATES.iter().find(|(known, _)| *known == name).unwrap().1;
        let ask = Ask { experiments: vec!["memcpy".into()], quick: true, kernel: None };
        let command = tool(template, Some("registry/ntcopy:1")).unwrap().command("n1", &ask);
        let words = [command.get_program()].into_iter().chain(command.get_args());
        words.map(|word| word.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_template_ends_in_the_command_that_measures() {
        let measure =
            "/opt/ntcopy survey measure --fleet web --node n1 --experiments memcpy --quick";
        for (name, _) in TEMPLATES {
            let line = words(name).join(" ");
            assert!(line.ends_with(measure) && !line.contains("{node}"), "{line}");
        }
        assert!(words("slurm").contains(&"--nodelist=n1".to_owned()));
        assert_eq!(words("ssh")[..4], ["ssh", "-o", "BatchMode=yes", "n1"]);
    }

    #[test]
    fn a_pod_is_on_its_node_and_has_no_privilege() {
        let words = words("kubernetes");
        let overrides = words.iter().find_map(|word| word.strip_prefix("--overrides=")).unwrap();
        let pod: serde_json::Value = serde_json::from_str(overrides).unwrap();
        let (spec, container) = (&pod["spec"], &pod["spec"]["containers"][0]);
        assert_eq!(
            (&spec["nodeName"], &container["name"]),
            (&"n1".into(), &words[2].clone().into())
        );
        assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
        assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL");
        assert!(words.contains(&"--image=registry/ntcopy:1".to_owned()));
    }

    #[test]
    fn what_is_missing_in_a_template_is_said() {
        for (template, missing) in [
            ("ssh {node}", "{ntcopy}"),
            ("ssh {node} 'x {ntcopy}'", "{ntcopy}"),
            ("ssh n1 {ntcopy}", "{node}"),
            ("ssh '{node} {ntcopy}", "quotation"),
            ("run {image} {node} {ntcopy}", "--image"),
        ] {
            let why = tool(template, None).unwrap_err();
            assert!(why.contains(missing), "{template}: {why}");
        }
    }

    #[test]
    fn a_name_is_no_option_and_no_shells_word() {
        for name in ["-oProxyCommand=x", "a b", "a;b", "$(x)", "", "a\nb", "\u{1b}[31m"] {
            assert!(is_plain("node", name).is_err(), "{name}");
        }
        assert!(is_plain("node", "admin@web-7.example.org").is_ok());
    }
}
