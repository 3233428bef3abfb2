//! `--on slurm`, against real daemons. Takes root and the packages, and is `#[ignore]`d for that:
//! `make test-survey` runs it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::postgres_server::Server;
use super::slurm_cluster::Cluster;
use super::{done, json, ntcopy};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ntcopy");

/// Asks all three nodes for a quick memset, unless `more` says otherwise.
fn survey(cluster: &Cluster, home: &Path, store: &str, more: &[&str]) -> Command {
    let mut words = vec!["survey", "run", "--on", "slurm", "--quick", "--store", store];
    words.extend(["--retry-after", "1"]);
    let defaults = [["--experiments", "memset"], ["--ntcopy", PROGRAM], ["--nodes", "n[1-3]"]];
    let missing = defaults.iter().filter(|[option, _]| !more.contains(option));
    words.extend(missing.flatten());
    words.extend(more);
    let mut command = ntcopy(home, &words);
    command.env("SLURM_CONF", cluster.conf());
    command
}

fn node<'a>(object: &'a Value, name: &str) -> &'a Value {
    let nodes = object["nodes"].as_array().unwrap();
    nodes.iter().find(|node| node["node"] == name).unwrap_or_else(|| panic!("{name}: {object}"))
}

fn records(home: &Path, store: &str) -> Vec<Value> {
    let output = ntcopy(home, &["survey", "list", "--json", "--store", store]).output().unwrap();
    json(&done(&output, 0))["records"].as_array().unwrap().clone()
}

#[test]
#[ignore = "starts slurmctld and slurmd, as root: make test-survey"]
fn two_nodes_answer_a_third_fails_and_nothing_is_doubled() {
    let cluster = Cluster::start();
    let server = Server::start().expect("PostgreSQL: scripts/setup.sh survey");
    let store = server.database("fleet");
    let home = tempfile::tempdir().unwrap();
    let mut first = survey(&cluster, home.path(), &store, &["--retries", "1", "--json"]);
    let first = json(&done(&first.output().unwrap(), 5));
    assert_eq!((&first["fleet"], &first["complete"]), (&"ntcopytest".into(), &false.into()));
    for name in ["n1", "n2"] {
        assert_eq!(node(&first, name)["state"], "measured", "{first}");
        assert_eq!(node(&first, name)["records"].as_array().unwrap().len(), 1);
    }
    let third = node(&first, "n3");
    assert_eq!((&third["state"], &third["attempts"]), (&"failed".into(), &2.into()));
    assert!(third["why"].as_str().unwrap().contains("Slurm has it as"), "{third}");
    let stored = records(home.path(), &store);
    assert_eq!(stored.len(), 2);
    assert_ne!(stored[0]["machine"], stored[1]["machine"], "two nodes, two machines");

    let mut again = survey(&cluster, home.path(), &store, &["--retries", "0", "--json"]);
    let again = json(&done(&again.output().unwrap(), 5));
    for name in ["n1", "n2"] {
        assert_eq!(node(&again, name)["state"], "already there");
        assert_eq!(node(&again, name)["attempts"], 0);
    }
    assert_eq!(records(home.path(), &store), stored, "nothing doubled");
    assert_eq!(cluster.ask("squeue", &["--noheader"]), "");
    // Without the one that is not there, all is well.
    let mut all = survey(&cluster, home.path(), &store, &["--nodes", "n1,n2"]);
    done(&all.output().unwrap(), 0);
}

#[test]
#[ignore = "starts slurmctld and slurmd, as root: make test-survey"]
fn a_node_that_slurm_does_not_know_and_a_program_that_is_not_there_are_told_of() {
    let cluster = Cluster::start();
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store").display().to_string();
    let more = ["--nodes", "n1,m9", "--ntcopy", "/no/such/ntcopy", "--retries", "0", "--json"];
    let object = survey(&cluster, home.path(), &store, &more).output().unwrap();
    let object = json(&done(&object, 1));
    assert!(node(&object, "m9")["why"].as_str().unwrap().contains("no such node"), "{object}");
    assert!(node(&object, "n1")["why"].as_str().unwrap().contains("/no/such/ntcopy"), "{object}");
}

/// Ctrl-C: the tasks are cancelled, and none is left in Slurm's queue.
#[test]
#[ignore = "starts slurmctld and slurmd, as root: make test-survey"]
fn a_survey_that_is_interrupted_cancels_its_tasks() {
    let cluster = Cluster::start();
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store").display().to_string();
    let more = ["--nodes", "n1,n2", "--experiments", "memcpy,memset,retention"];
    let mut command = survey(&cluster, home.path(), &store, &more);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut begun = 0;
    while begun < 2 {
        let line = lines.next().expect("two nodes begin").unwrap();
        begun += usize::from(line.ends_with(": measuring"));
    }
    let until = Instant::now() + Duration::from_secs(60);
    while cluster.ask("squeue", &["--noheader", "--states=running"]).lines().count() < 2 {
        assert!(Instant::now() < until, "two tasks run");
        thread::sleep(Duration::from_millis(100));
    }
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    for line in lines {
        eprintln!("{}", line.unwrap());
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let until = Instant::now() + Duration::from_secs(60);
    while !cluster.ask("squeue", &["--noheader"]).is_empty() {
        assert!(Instant::now() < until, "{}", cluster.ask("squeue", &[]));
        thread::sleep(Duration::from_millis(200));
    }
}
