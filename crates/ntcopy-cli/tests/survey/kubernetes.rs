//! `--on kubernetes`: the Job, and what its pods printed. `kubectl` is a script here, which prints
//! what the real one does: no cluster is to be had in a test.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{done, json, ntcopy, recorded, run};

const RUN: [&str; 8] =
    ["survey", "run", "--on", "kubernetes", "--image", "example.org/ntcopy:1", "--fleet", "prod"];

fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut words: Vec<&str> = RUN.to_vec();
    words.extend(more);
    words
}

#[test]
fn the_job_is_printed_without_a_cluster() {
    let home = tempfile::tempdir().unwrap();
    let more = ["--count", "3", "--quick", "--experiments", "memcpy", "--toleration", "all"];
    let job = json(&run(home.path(), &words(&more)));
    assert_eq!((&job["kind"], &job["apiVersion"]), (&"Job".into(), &"batch/v1".into()));
    assert_eq!(job["spec"]["completions"], 3);
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], "example.org/ntcopy:1");
    assert_eq!(pod["tolerations"][0]["operator"], "Exists");
    let other = json(&run(home.path(), &words(&more)));
    assert_ne!(job["metadata"]["name"], other["metadata"]["name"], "two Jobs, two names");
}

#[test]
fn what_cannot_be_is_refused() {
    let home = tempfile::tempdir().unwrap();
    for more in [
        &["--count", "3", "--kernel", "um"][..],
        &["--count", "3", "--partition", "p"],
        &["--nodes", "n[1-3]"],
        &["--count", "0"],
        &["--toleration", "a:b", "--count", "1"],
    ] {
        done(&ntcopy(home.path(), &words(more)).output().unwrap(), 2);
    }
    let output = ntcopy(home.path(), &words(&[])).env("PATH", "/nowhere").output().unwrap();
    done(&output, 3);
    let none = ["survey", "run", "--on", "kubernetes", "--count", "1"];
    done(&ntcopy(home.path(), &none).output().unwrap(), 2);
}

/// A script in the place of `kubectl`.
fn script(folder: &Path, text: &str) -> String {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let file = bin.join("kubectl");
    fs::write(&file, format!("#!/bin/sh\n{text}")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:/usr/bin:/bin", bin.display())
}

const PODS: &str = r#"{"items": [
  {"metadata": {"name": "pod-1"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Succeeded"}},
  {"metadata": {"name": "pod-2"}, "spec": {"nodeName": "n2"}, "status": {"phase": "Failed",
   "containerStatuses": [{"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}},
  {"metadata": {"name": "pod-3"}, "spec": {}, "status": {"phase": "Pending"}}]}"#;

/// What a node prints that sends this record, as `survey measure` does.
fn frames(record: &str) -> String {
    use ntcopy_survey::engine::frame::{write_done, write_record};
    use ntcopy_survey::engine::{NodeFacts, Received};
    let raw = fs::read(Path::new(record).join("record.jsonl")).unwrap();
    let facts = NodeFacts { fleet: "prod".into(), node: "n1".into(), dimms: None };
    let mut out = Vec::new();
    let record = Received { facts, asked: "memset".into(), code: 0, raw };
    write_record(&mut out, &record).unwrap();
    write_done(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn what_pods_printed_is_gathered_and_failures_are_told_of() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path();
    fs::write(folder.join("pods.json"), PODS).unwrap();
    fs::write(folder.join("pod-1.log"), frames(&recorded("memset"))).unwrap();
    // Killed in the middle of it.
    fs::write(folder.join("pod-2.log"), &frames(&recorded("order"))[..5000]).unwrap();
    let path = script(
        folder,
        &format!(
            "cd {}\ncase \"$1 $2\" in\n'get pods') cat pods.json ;;\nlogs*) cat \"$2.log\" ;;\n*) \
             echo \"$@\" >&2; exit 1 ;;\nesac\n",
            folder.display()
        ),
    );
    let gather =
        ["survey", "gather", "--on", "kubernetes", "ntcopy-survey-1", "--fleet", "prod", "--json"];
    for stored_before in [0, 1] {
        let output = ntcopy(folder, &gather).env("PATH", &path).output().unwrap();
        let object = json(&done(&output, 5));
        let nodes = object["nodes"].as_array().unwrap();
        assert_eq!(nodes.len(), 3, "{stored_before}");
        let of = |name: &str| nodes.iter().find(|node| node["node"] == name).unwrap();
        assert_eq!(of("n1")["state"], "measured");
        assert_eq!(of("n2")["state"], "failed");
        assert!(of("n2")["why"].as_str().unwrap().contains("cut short"), "{}", of("n2"));
        assert_eq!(of("(pod pod-3)")["state"], "not done yet");
        let listed = json(&run(folder, &["survey", "list", "--json"]));
        assert_eq!(listed["records"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn a_job_is_applied_as_it_is_printed() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path();
    let path = script(
        folder,
        &format!(
            "case \"$*\" in\n*'get nodes'*) echo '{{\"items\": [{{\"metadata\": {{\"name\": \
             \"n1\"}}}}]}}' ;;\n*apply*) cat >{}/applied.json; echo created ;;\nesac\n",
            folder.display()
        ),
    );
    let output = ntcopy(folder, &words(&["--submit"])).env("PATH", &path).output().unwrap();
    assert_eq!(done(&output, 0), "created\n");
    let job = json(&fs::read_to_string(folder.join("applied.json")).unwrap());
    assert_eq!(job["spec"]["completions"], 1);
    assert!(job.to_string().contains(r#""values":["n1"]"#));
}
