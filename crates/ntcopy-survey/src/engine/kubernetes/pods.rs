//! What `kubectl get --output=json` says of nodes and pods.

use serde::Deserialize;

/// A pod of the Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// The node that it was put on, if it was.
    pub node: Option<String>,
    /// Where it stands.
    pub phase: Phase,
    /// Why, in Kubernetes' words, if it says.
    pub why: Option<String>,
}

/// Where a pod stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It waits for a node or its image.
    Waiting,
    /// It runs.
    Running,
    /// It ended well.
    Succeeded,
    /// It ended otherwise.
    Failed,
}

impl Phase {
    /// Whether it is over.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Phase::Succeeded | Phase::Failed)
    }
}

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    labels: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct PodObject {
    metadata: Metadata,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    phase: String,
    reason: Option<String>,
    message: Option<String>,
    container_statuses: Vec<ContainerStatus>,
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    message: Option<String>,
}

#[derive(Deserialize)]
struct ContainerStatus {
    #[serde(default)]
    state: ContainerState,
}

#[derive(Deserialize, Default)]
struct ContainerState {
    waiting: Option<Reason>,
    terminated: Option<Reason>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reason {
    reason: Option<String>,
    message: Option<String>,
    exit_code: Option<i32>,
}

impl Reason {
    fn text(&self) -> Option<String> {
        let code = self.exit_code.map(|code| format!("exit code {code}"));
        let words: Vec<String> =
            [self.reason.clone(), code, self.message.clone()].into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// The pods of a list.
pub fn pods(json: &[u8]) -> Result<Vec<Pod>, String> {
    let list: List<PodObject> = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    Ok(list.items.into_iter().map(pod).collect())
}

fn pod(object: PodObject) -> Pod {
    let status = object.status;
    let phase = match status.phase.as_str() {
        "Running" => Phase::Running,
        "Succeeded" => Phase::Succeeded,
        "Failed" => Phase::Failed,
        // "Unknown" too: its node does not answer, and Kubernetes deletes it in the end.
        _ => Phase::Waiting,
    };
    let state = status.container_statuses.iter().map(|container| &container.state);
    let reasons = state.filter_map(|state| state.terminated.as_ref().or(state.waiting.as_ref()));
    let of_container = reasons.filter_map(Reason::text).next();
    let of_pod = match (status.reason, status.message) {
        (Some(reason), Some(message)) => Some(format!("{reason}: {message}")),
        (reason, message) => reason.or(message),
    };
    let unscheduled = status.conditions.into_iter().find_map(|condition| {
        (condition.kind == "PodScheduled" && condition.status == "False")
            .then_some(condition.message)?
    });
    let why = of_pod.or(of_container).or(unscheduled).filter(|_| phase != Phase::Succeeded);
    Pod { name: object.metadata.name, node: object.spec.node_name, phase, why }
}

#[derive(Deserialize)]
struct NodeObject {
    metadata: Metadata,
    #[serde(default)]
    spec: NodeSpec,
}

#[derive(Deserialize, Default)]
struct NodeSpec {
    #[serde(default)]
    unschedulable: bool,
}

/// The host names of the nodes in a list that take pods.
pub fn nodes(json: &[u8]) -> Result<Vec<String>, String> {
    let list: List<NodeObject> = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let open = list.items.into_iter().filter(|node| !node.spec.unschedulable);
    Ok(open
        .map(|mut node| {
            let label = node.metadata.labels.remove("kubernetes.io/hostname");
            label.unwrap_or(node.metadata.name)
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: &str = r#"{"items": [
        {"metadata": {"name": "a"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Succeeded",
         "containerStatuses": [{"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}]}},
        {"metadata": {"name": "b"}, "spec": {"nodeName": "n2"}, "status": {"phase": "Failed",
         "containerStatuses": [{"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}},
        {"metadata": {"name": "c"}, "spec": {}, "status": {"phase": "Pending", "conditions":
         [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]}},
        {"metadata": {"name": "d"}, "spec": {"nodeName": "n4"}, "status": {"phase": "Failed",
         "reason": "Evicted", "message": "disk"}}
    ]}"#;

    #[test]
    fn pods_say_where_they_stand_and_why() {
        let pods = pods(PODS.as_bytes()).unwrap();
        let told: Vec<(Option<&str>, Phase, Option<&str>)> =
            pods.iter().map(|p| (p.node.as_deref(), p.phase, p.why.as_deref())).collect();
        assert_eq!(
            told,
            [
                (Some("n1"), Phase::Succeeded, None),
                (Some("n2"), Phase::Failed, Some("OOMKilled, exit code 137")),
                (None, Phase::Waiting, Some("0/3 nodes are available")),
                (Some("n4"), Phase::Failed, Some("Evicted: disk")),
            ]
        );
    }

    #[test]
    fn cordoned_nodes_are_left_out() {
        let json = r#"{"items": [
            {"metadata": {"name": "a", "labels": {"kubernetes.io/hostname": "host-a"}}, "spec": {}},
            {"metadata": {"name": "b"}},
            {"metadata": {"name": "c"}, "spec": {"unschedulable": true}}
        ]}"#;
        assert_eq!(nodes(json.as_bytes()).unwrap(), ["host-a", "b"]);
        assert!(nodes(b"nothing").is_err());
    }
}
