//! Slurm: one task a node, by `srun`, its records on standard output.
//!
//! Every node is a job of its own, so that a node that is slow, busy or broken holds up no other.
//! A job is found again by its name, which is unique, and cancelled by its id.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::lines::{self, Tail};
use super::{Ask, Engine, NodeError, Piece, frame, node};
use crate::store::STORE_VARIABLE;

/// How often a task is looked after.
const LOOK: Duration = Duration::from_millis(100);
/// How long `srun` may take to end once its job was cancelled.
const GOODBYE: Duration = Duration::from_secs(20);

/// How to use Slurm.
#[derive(Debug, Clone)]
pub struct Slurm {
    /// The fleet's name, for the nodes to state.
    pub fleet: String,
    /// The partition, if not the default one.
    pub partition: Option<String>,
    /// The program `ntcopy` on the nodes.
    pub program: PathBuf,
    /// Seconds that a node may keep a task waiting before it counts as failed.
    pub patience_s: u32,
    /// Minutes after which Slurm ends a task, if not its own default.
    pub minutes: Option<u32>,
    /// More options for `srun`: an account, a quality of service.
    pub options: Vec<String>,
}

/// A node as Slurm sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Why no task is to be sent there now, if so.
    pub why_not: Option<String>,
}

/// Why Slurm could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum SlurmError {
    /// Its programs are not there.
    #[error("Slurm's {program} is not to be had here ({error}): run this where srun works")]
    NotHere {
        /// The program.
        program: &'static str,
        /// Why.
        error: io::Error,
    },
    /// It answered that it could not.
    #[error("{program} failed: {why}")]
    Failed {
        /// The program.
        program: &'static str,
        /// Its own words.
        why: String,
    },
}

/// Runs one of Slurm's programs: what it prints.
fn ask(program: &'static str, arguments: &[&str]) -> Result<String, SlurmError> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| SlurmError::NotHere { program, error })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let mut tail = Tail::default();
    String::from_utf8_lossy(&output.stderr).lines().for_each(|line| tail.push(line));
    Err(SlurmError::Failed { program, why: tail.text() })
}

/// The cluster's name.
///
/// # Errors
///
/// When Slurm is not to be had, or does not answer.
pub fn cluster() -> Result<String, SlurmError> {
    let config = ask("scontrol", &["show", "config"])?;
    let name = config.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "ClusterName").then(|| value.trim().to_owned())
    });
    Ok(name.filter(|name| !name.is_empty()).unwrap_or_else(|| "slurm".to_owned()))
}

impl Slurm {
    /// The names of the nodes: those of a list as Slurm writes them (`n[1-3],m7`), or all of the
    /// partition.
    ///
    /// # Errors
    ///
    /// When Slurm is not to be had, or cannot read the list.
    pub fn nodes(&self, list: Option<&str>) -> Result<Vec<String>, SlurmError> {
        match list {
            // Expanded, not looked up: a node that Slurm does not know has to be reported.
            Some(list) => {
                let mut names = Vec::new();
                for name in ask("scontrol", &["show", "hostnames", list])?.lines() {
                    if !names.iter().any(|known| known == name) {
                        names.push(name.to_owned());
                    }
                }
                Ok(names)
            }
            None => Ok(self.states(None)?.into_iter().map(|node| node.name).collect()),
        }
    }

    /// The nodes' states.
    fn states(&self, node: Option<&str>) -> Result<Vec<Node>, SlurmError> {
        let mut arguments = vec!["--noheader", "--Node", "--format=%N|%T|%E"];
        if let Some(partition) = &self.partition {
            arguments.extend(["--partition", partition]);
        }
        arguments.extend(node.into_iter().flat_map(|node| ["--nodes", node]));
        Ok(states(&ask("sinfo", &arguments)?))
    }

    fn check(&self, node: &str) -> Result<(), NodeError> {
        let not_now = |why: String| NodeError { why, is_final: false };
        let found = self.states(Some(node)).map_err(|error| not_now(error.to_string()))?;
        match found.into_iter().find(|found| found.name == node) {
            None => Err(NodeError { why: self.unknown(), is_final: true }),
            Some(Node { why_not: Some(why), .. }) => Err(not_now(why)),
            Some(_) => Ok(()),
        }
    }

    fn unknown(&self) -> String {
        match &self.partition {
            Some(partition) => format!("Slurm knows no such node in partition {partition}"),
            None => "Slurm knows no such node".to_owned(),
        }
    }

    fn command(&self, node: &str, job: &str, words: &[String]) -> Command {
        let mut command = Command::new("srun");
        command.args([
            "--nodes=1",
            "--ntasks=1",
            &format!("--nodelist={node}"),
            // Alone, with all of its CPUs and memory: neighbours would be measured too, and
            // suffer from it.
            "--exclusive",
            "--mem=0",
            "--cpu-bind=none",
            "--input=none",
            &format!("--immediate={}", self.patience_s),
            &format!("--job-name={job}"),
        ]);
        if let Some(partition) = &self.partition {
            command.arg(format!("--partition={partition}"));
        }
        if let Some(minutes) = self.minutes {
            command.arg(format!("--time={minutes}"));
        }
        command.args(&self.options).arg("--").arg(&self.program).args(words);
        // Inside of an allocation it would be a step of that, on its nodes alone.
        for (name, _) in std::env::vars_os() {
            let is_slurms = name.to_str().is_some_and(|name| name.starts_with("SLURM_"));
            if is_slurms && name != "SLURM_CONF" {
                command.env_remove(name);
            }
        }
        // The store's password is not for the nodes; srun hands on the whole environment.
        command.env_remove(STORE_VARIABLE).env_remove("PGPASSWORD");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// The nodes that `sinfo` prints; a node is named once for each partition that it is in.
fn states(text: &str) -> Vec<Node> {
    let mut nodes: BTreeMap<&str, Option<String>> = BTreeMap::new();
    let mut order = Vec::new();
    for line in text.lines() {
        let mut fields = line.trim().splitn(3, '|');
        let (Some(name), Some(state)) = (fields.next(), fields.next()) else { continue };
        let reason = fields.next().filter(|reason| !reason.is_empty() && *reason != "none");
        if !nodes.contains_key(name) {
            order.push(name);
        }
        nodes.insert(name, why_not(state, reason));
    }
    let of = |name: &str| Node { name: name.to_owned(), why_not: nodes[name].clone() };
    order.into_iter().map(of).collect()
}

/// Why no task is to be sent to a node in this state. A busy one is waited for, in Slurm's queue.
fn why_not(state: &str, reason: Option<&str>) -> Option<String> {
    let bare = state.trim_end_matches(['*', '~', '#', '!', '%', '$', '@', '^', '-', '+']);
    let usable = ["idle", "mixed", "allocated", "completing", "reserved", "planned"];
    // An asterisk: it does not answer Slurm.
    if usable.contains(&bare) && !state.contains('*') {
        return None;
    }
    let told =
        if state.contains('*') { format!("{bare}, not responding") } else { bare.to_owned() };
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    Some(format!("Slurm has it as {told}{reason}"))
}

impl Engine for Slurm {
    fn measure(
        &self,
        node: &str,
        ask: &Ask,
        cancelled: &dyn Fn() -> bool,
        each: &mut dyn FnMut(Piece),
    ) -> Result<(), NodeError> {
        self.check(node)?;
        let failed = |why: String| NodeError { why, is_final: false };
        let job = job_name(node);
        let words = ask.command(&self.fleet, node);
        let child = self.command(node, &job, &words).spawn();
        let child = child.map_err(|error| NodeError {
            why: format!("srun cannot be started: {error}"),
            is_final: true,
        })?;
        let (status, is_done, tail) = follow(child, &job, cancelled, each);
        if cancelled() {
            return Err(failed("cancelled".to_owned()));
        }
        match status {
            // Whatever srun thinks of it: the node said all that it had to say, failures included.
            Ok(_) if is_done => Ok(()),
            Ok(status) => {
                let said = tail.text();
                let said = if said.is_empty() { "it said nothing".to_owned() } else { said };
                Err(failed(format!("srun ended before the node was done ({status}): {said}")))
            }
            Err(error) => Err(failed(format!("srun: {error}"))),
        }
    }
}

/// A name that no other job has.
fn job_name(node: &str) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let text = format!("{node} {} {}", std::process::id(), now.as_nanos());
    format!("ntcopy-survey-{}", &blake3::hash(text.as_bytes()).to_hex()[..12])
}

/// Listens to a task until its end, or cancels it: how srun ended, whether the node was done, and
/// what was said last.
fn follow(
    mut child: Child,
    job: &str,
    cancelled: &dyn Fn() -> bool,
    each: &mut dyn FnMut(Piece),
) -> (io::Result<ExitStatus>, bool, Tail) {
    let tail = Arc::new(Mutex::new(Tail::default()));
    let (send, lines) = channel::<String>();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let said = Arc::clone(&tail);
    thread::spawn(move || {
        if let Some(stderr) = stderr {
            lines::each(stderr, |line| {
                said.lock().unwrap_or_else(PoisonError::into_inner).push(line)
            });
        }
    });
    thread::spawn(move || {
        if let Some(stdout) = stdout {
            lines::each(stdout, |line| {
                // It fails when the receiver is gone: the output is drained all the same.
                let _ = send.send(line.to_owned());
            });
        }
    });
    let mut reader = frame::Reader::default();
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(line) => {
                if let Some(piece) = reader.line(&line) {
                    each(piece);
                }
            }
            Err(RecvTimeoutError::Timeout) if !cancelled() => {}
            Err(_) => break,
        }
    }
    if cancelled() {
        cancel(job, &child);
    }
    if let Some(piece) = reader.cut_short().filter(|_| !cancelled()) {
        each(piece);
    }
    let status = end(&mut child);
    let tail = tail.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (status, reader.is_done(), tail)
}

/// Cancels a job by its id, wherever it stands; srun gets to know by itself.
fn cancel(job: &str, child: &Child) {
    let found = ask("squeue", &["--noheader", "--format=%A", "--name", job]);
    let ids: Vec<String> =
        found.unwrap_or_default().lines().map(|id| id.trim().to_owned()).collect();
    for id in ids.iter().filter(|id| !id.is_empty()) {
        if let Err(error) = ask("scancel", &[id]) {
            eprintln!("ntcopy: job {id} was not cancelled: {error}");
        }
    }
    node::terminate(child);
}

/// Waits for srun's end, which is near.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
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

    #[test]
    fn busy_nodes_are_waited_for_and_broken_ones_told_of() {
        let text = "n1|idle|none\nn1|idle|none\nn2|allocated|none\nn3|down*|Not responding\n\
                    n4|drained|bad fan | left\nn5|idle*|none\nn6|mixed-|none\n";
        let nodes = states(text);
        let why: Vec<(&str, Option<&str>)> =
            nodes.iter().map(|node| (node.name.as_str(), node.why_not.as_deref())).collect();
        assert_eq!(
            why,
            [
                ("n1", None),
                ("n2", None),
                ("n3", Some("Slurm has it as down, not responding: Not responding")),
                ("n4", Some("Slurm has it as drained: bad fan | left")),
                ("n5", Some("Slurm has it as idle, not responding")),
                ("n6", None),
            ]
        );
    }

    #[test]
    fn a_task_has_its_node_to_itself_and_not_the_stores_password() {
        let slurm = Slurm {
            fleet: "c".into(),
            partition: Some("fast".into()),
            program: "/opt/ntcopy".into(),
            patience_s: 60,
            minutes: Some(30),
            options: vec!["--account=me".into()],
        };
        let ask = Ask { experiments: vec!["memcpy".into()], quick: true, kernel: None };
        let command = slurm.command("n1", "job", &ask.command("c", "n1"));
        let words: Vec<&str> = command.get_args().filter_map(|word| word.to_str()).collect();
        for word in ["--exclusive", "--nodelist=n1", "--partition=fast", "--time=30"] {
            assert!(words.contains(&word), "{words:?}");
        }
        let tail = "-- /opt/ntcopy survey measure --fleet c --node n1 --experiments memcpy --quick";
        assert!(words.join(" ").ends_with(&format!("--account=me {tail}")), "{words:?}");
        assert!(command.get_envs().any(|(name, value)| name == "PGPASSWORD" && value.is_none()));
    }
}
