//! The Job, as an object for the API server (`batch/v1`, Kubernetes 1.29 or later).
//!
//! JSON, which `kubectl apply` takes as it takes YAML.

use std::str::FromStr;

use serde_json::{Map, Value, json};

use crate::engine::Ask;

/// The user and group that the program runs as: those that are called nobody.
const NOBODY: u32 = 65534;
/// The folder for records on their way out; all else of the file system is read-only.
const SCRATCH: &str = "/tmp";

/// What the Job is to be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// The namespace, if not the context's.
    pub namespace: Option<String>,
    /// The fleet's name, for the pods to state.
    pub fleet: String,
    /// What is asked of every node.
    pub ask: Ask,
    /// The image.
    pub image: String,
    /// The program in it.
    pub program: String,
    /// Where the pods go.
    pub nodes: Nodes,
    /// Labels that a node has to have.
    pub node_selector: Vec<(String, String)>,
    /// Taints that do not keep a pod away.
    pub tolerations: Vec<Toleration>,
    /// How often a node that failed is tried again.
    pub retries: u32,
    /// Memory that a pod may take, as Kubernetes writes it: `4Gi`.
    pub memory: String,
}

/// Where pods go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nodes {
    /// To this number of nodes, whichever they are.
    Any(u32),
    /// To these, by `kubernetes.io/hostname`.
    Named(Vec<String>),
}

impl Nodes {
    fn count(&self) -> usize {
        match self {
            Nodes::Any(count) => *count as usize,
            Nodes::Named(names) => names.len(),
        }
    }
}

/// A taint that does not keep a pod away: `KEY[=VALUE][:EFFECT]`, or `all`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toleration {
    key: Option<String>,
    value: Option<String>,
    effect: Option<String>,
}

impl FromStr for Toleration {
    type Err = String;

    fn from_str(text: &str) -> Result<Toleration, String> {
        if text == "all" {
            return Ok(Toleration { key: None, value: None, effect: None });
        }
        let (rest, effect) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
        let (key, value) = rest.split_once('=').map_or((rest, None), |(a, b)| (a, Some(b)));
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if key.is_empty() || effect.is_some_and(|effect| !effects.contains(&effect)) {
            return Err(format!("KEY[=VALUE][:EFFECT] or all; effects are {}", effects.join(", ")));
        }
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Ok(Toleration { key: owned(Some(key)), value: owned(value), effect: owned(effect) })
    }
}

impl Toleration {
    fn object(&self) -> Value {
        let mut object = Map::new();
        let operator = if self.value.is_some() { "Equal" } else { "Exists" };
        object.insert("operator".into(), operator.into());
        for (name, value) in [("key", &self.key), ("value", &self.value), ("effect", &self.effect)]
        {
            if let Some(value) = value {
                object.insert(name.into(), value.as_str().into());
            }
        }
        object.into()
    }
}

impl Job {
    /// The object.
    #[must_use]
    pub fn object(&self) -> Value {
        let count = self.nodes.count();
        let labels = json!({"app.kubernetes.io/name": "ntcopy-survey"});
        let mut metadata = json!({"name": self.name, "labels": labels.clone()});
        if let Some(namespace) = &self.namespace {
            metadata["namespace"] = namespace.as_str().into();
        }
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata,
            "spec": {
                "completionMode": "Indexed",
                "completions": count,
                // All at once: pods that run keep others of this Job off their nodes, pods that are
                // done no longer do.
                "parallelism": count,
                "backoffLimitPerIndex": self.retries,
                // One node that fails does not end the others' pods.
                "maxFailedIndexes": count,
                "template": {"metadata": {"labels": labels}, "spec": self.pod()},
            },
        })
    }

    fn pod(&self) -> Value {
        let mut pod = json!({
            "restartPolicy": "Never",
            // Nothing in the pod speaks to the API server.
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "affinity": self.affinity(),
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": NOBODY,
                "runAsGroup": NOBODY,
                "fsGroup": NOBODY,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [self.container()],
            "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}],
        });
        if !self.node_selector.is_empty() {
            let labels = self.node_selector.iter();
            let labels: Map<String, Value> =
                labels.map(|(name, value)| (name.clone(), value.as_str().into())).collect();
            pod["nodeSelector"] = labels.into();
        }
        if !self.tolerations.is_empty() {
            pod["tolerations"] = self.tolerations.iter().map(Toleration::object).collect();
        }
        pod
    }

    fn selector(&self) -> Value {
        json!({"matchLabels": {"batch.kubernetes.io/job-name": self.name}})
    }

    fn affinity(&self) -> Value {
        let mut affinity = json!({
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": self.selector(),
                }],
            },
        });
        if let Nodes::Named(names) = &self.nodes {
            affinity["nodeAffinity"] = json!({
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{
                        "matchExpressions": [{
                            "key": "kubernetes.io/hostname",
                            "operator": "In",
                            "values": names,
                        }],
                    }],
                },
            });
        }
        affinity
    }

    fn container(&self) -> Value {
        // Kubernetes puts the node's name in the place of the variable.
        let mut command = vec![self.program.clone()];
        command.extend(self.ask.command(&self.fleet, "$(NODE_NAME)"));
        json!({
            "name": "ntcopy",
            "image": self.image,
            "command": command,
            "env": [
                {
                    "name": "NODE_NAME",
                    "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}},
                },
                {"name": "HOME", "value": SCRATCH},
                {"name": "TMPDIR", "value": SCRATCH},
            ],
            "resources": {
                // No limit of CPU time: a throttled sample would be no timing.
                "requests": {"cpu": "2", "memory": self.memory},
                "limits": {"memory": self.memory},
            },
            // Copies and fills in user space need no privilege whatever.
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [{"name": "scratch", "mountPath": SCRATCH}],
        })
    }
}

/// A name for a Job that no other one has: `ntcopy-survey-` and ten hexadecimal digits.
#[must_use]
pub fn new_name() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let text = format!("{} {}", std::process::id(), now.unwrap_or_default().as_nanos());
    format!("ntcopy-survey-{}", &blake3::hash(text.as_bytes()).to_hex()[..10])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(nodes: Nodes) -> Job {
        Job {
            name: "ntcopy-survey-1".into(),
            namespace: Some("bench".into()),
            fleet: "prod".into(),
            ask: Ask {
                experiments: vec!["memcpy".into(), "memset".into()],
                quick: true,
                kernel: None,
            },
            image: "example.org/ntcopy:1".into(),
            program: "/usr/bin/ntcopy".into(),
            nodes,
            node_selector: vec![("pool".into(), "big".into())],
            tolerations: vec!["all".parse().unwrap(), "gpu=yes:NoSchedule".parse().unwrap()],
            retries: 2,
            memory: "4Gi".into(),
        }
    }

    /// What the published schema has to say: the types are generated from it.
    #[test]
    fn the_published_types_take_the_job_and_lose_nothing_of_it() {
        for nodes in [Nodes::Any(40), Nodes::Named(vec!["n1".into(), "n2".into()])] {
            let object = job(nodes).object();
            let typed: k8s_openapi::api::batch::v1::Job =
                serde_json::from_value(object.clone()).unwrap();
            // A field that the schema does not know would be left out here.
            assert_eq!(serde_json::to_value(&typed).unwrap(), object);
        }
    }

    #[test]
    fn there_is_one_pod_a_node_and_each_knows_where_it_is() {
        let object = job(Nodes::Any(40)).object();
        let spec = &object["spec"];
        assert_eq!(spec["completionMode"], "Indexed");
        assert_eq!((&spec["completions"], &spec["parallelism"]), (&json!(40), &json!(40)));
        assert_eq!(spec["backoffLimitPerIndex"], 2);
        let pod = &spec["template"]["spec"];
        let apart = &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            [0];
        assert_eq!(apart["topologyKey"], "kubernetes.io/hostname");
        let command = &pod["containers"][0]["command"];
        let expected = json!([
            "/usr/bin/ntcopy",
            "survey",
            "measure",
            "--fleet",
            "prod",
            "--node",
            "$(NODE_NAME)",
            "--experiments",
            "memcpy,memset",
            "--quick"
        ]);
        assert_eq!(command, &expected);
    }

    #[test]
    fn named_nodes_are_the_only_ones() {
        let object = job(Nodes::Named(vec!["n1".into(), "n2".into()])).object();
        assert_eq!(object["spec"]["completions"], 2);
        let affinity = &object["spec"]["template"]["spec"]["affinity"]["nodeAffinity"];
        assert!(affinity.to_string().contains(r#""values":["n1","n2"]"#), "{affinity}");
    }

    #[test]
    fn a_pod_has_no_privilege_and_nothing_of_the_host() {
        let object = job(Nodes::Any(1)).object();
        let pod = &object["spec"]["template"]["spec"];
        let container = &pod["containers"][0]["securityContext"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        assert_eq!(container["capabilities"]["drop"], json!(["ALL"]));
        assert_eq!(container["readOnlyRootFilesystem"], true);
        assert_eq!(container["allowPrivilegeEscalation"], false);
        assert_eq!(pod["automountServiceAccountToken"], false);
        let text = object.to_string();
        for word in ["hostPath", "privileged", "hostPID", "hostNetwork", "hostIPC"] {
            assert!(!text.contains(word), "{word}");
        }
    }

    #[test]
    fn tolerations_are_read_and_wrong_ones_refused() {
        let one: Toleration = "gpu=yes:NoSchedule".parse().unwrap();
        let expected =
            json!({"operator": "Equal", "key": "gpu", "value": "yes", "effect": "NoSchedule"});
        assert_eq!(one.object(), expected);
        let all: Toleration = "all".parse().unwrap();
        assert_eq!(all.object(), json!({"operator": "Exists"}));
        assert!("gpu:Never".parse::<Toleration>().is_err());
        assert!("=yes".parse::<Toleration>().is_err());
    }
}
