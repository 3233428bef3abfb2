//! Kubernetes: an Indexed Job with a pod a node, its records in the pods' logs.
//!
//! The Job is described ([`manifest`]) for `kubectl apply`; what its pods printed is read back by
//! `kubectl logs`. Neither the program nor the pods speak to the API server themselves.

pub mod gather;
pub mod manifest;
mod pods;

use std::io::{self, Write};
use std::process::{Command, Stdio};

use super::lines::{self, Tail};
use super::{Piece, frame};

pub use pods::{Phase, Pod};

/// Why `kubectl` gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum KubectlError {
    /// It is not there.
    #[error("kubectl is not to be had here ({0}): run this where it works")]
    NotHere(io::Error),
    /// It answered that it could not.
    #[error("kubectl {what} failed: {why}")]
    Failed {
        /// What it was to do.
        what: String,
        /// Its own words.
        why: String,
    },
    /// What it printed is not what it prints.
    #[error("kubectl {what} printed what cannot be read: {why}")]
    Odd {
        /// What it was to do.
        what: String,
        /// What is wrong.
        why: String,
    },
}

/// Where `kubectl` is to look.
#[derive(Debug, Clone, Default)]
pub struct Kubectl {
    /// The context, if not the current one.
    pub context: Option<String>,
    /// The namespace, if not the context's.
    pub namespace: Option<String>,
}

impl Kubectl {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        if let Some(context) = &self.context {
            command.arg(format!("--context={context}"));
        }
        if let Some(namespace) = &self.namespace {
            command.arg(format!("--namespace={namespace}"));
        }
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it: what it prints.
    fn ask(&self, words: &[&str]) -> Result<Vec<u8>, KubectlError> {
        let output = self.command(words).output().map_err(KubectlError::NotHere)?;
        answered(words, output)
    }

    /// The name of the context's cluster: the fleet's, if the user gives it none.
    ///
    /// # Errors
    ///
    /// When `kubectl` is not there or has no context.
    pub fn cluster(&self) -> Result<String, KubectlError> {
        if let Some(context) = &self.context {
            return Ok(context.clone());
        }
        let name = self.ask(&["config", "current-context"])?;
        Ok(String::from_utf8_lossy(&name).trim().to_owned())
    }

    /// The names that bind pods to nodes (`kubernetes.io/hostname`), of the nodes that take pods.
    ///
    /// # Errors
    ///
    /// When `kubectl` is not there or fails.
    pub fn nodes(&self, selector: Option<&str>) -> Result<Vec<String>, KubectlError> {
        let mut words = vec!["get", "nodes", "--output=json"];
        words.extend(selector.into_iter().flat_map(|selector| ["--selector", selector]));
        pods::nodes(&self.ask(&words)?)
            .map_err(|why| KubectlError::Odd { what: "get nodes".to_owned(), why })
    }

    /// Applies a manifest: what `kubectl` says.
    ///
    /// # Errors
    ///
    /// When `kubectl` is not there or the server refuses.
    pub fn apply(&self, manifest: &str) -> Result<String, KubectlError> {
        let words = ["apply", "--filename=-"];
        let mut child =
            self.command(&words).stdin(Stdio::piped()).spawn().map_err(KubectlError::NotHere)?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that ends early says why on standard error.
            let _ = stdin.write_all(manifest.as_bytes());
        }
        let output = child.wait_with_output().map_err(KubectlError::NotHere)?;
        Ok(String::from_utf8_lossy(&answered(&words, output)?).trim().to_owned())
    }

    /// The pods of a Job.
    ///
    /// # Errors
    ///
    /// When `kubectl` is not there or fails.
    pub fn pods(&self, job: &str) -> Result<Vec<Pod>, KubectlError> {
        let selector = format!("--selector=batch.kubernetes.io/job-name={job}");
        pods::pods(&self.ask(&["get", "pods", &selector, "--output=json"])?)
            .map_err(|why| KubectlError::Odd { what: "get pods".to_owned(), why })
    }

    /// Reads what a pod printed: hands on what came, and says whether the pod was done.
    ///
    /// # Errors
    ///
    /// When `kubectl` is not there or fails.
    pub fn logs(&self, pod: &str, each: &mut dyn FnMut(Piece)) -> Result<bool, KubectlError> {
        let output = self.ask(&["logs", pod, "--container=ntcopy"])?;
        let mut reader = frame::Reader::default();
        lines::each(output.as_slice(), |line| {
            if let Some(piece) = reader.line(line) {
                each(piece);
            }
        });
        if let Some(piece) = reader.cut_short() {
            each(piece);
        }
        Ok(reader.is_done())
    }
}

fn answered(words: &[&str], output: std::process::Output) -> Result<Vec<u8>, KubectlError> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let mut tail = Tail::default();
    String::from_utf8_lossy(&output.stderr).lines().for_each(|line| tail.push(line));
    let what = words.iter().take(2).copied().collect::<Vec<&str>>().join(" ");
    Err(KubectlError::Failed { what, why: tail.text() })
}
