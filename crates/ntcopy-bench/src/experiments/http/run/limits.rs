//! What the system has to allow.

use ntcopy_record::units::Bytes;

use crate::experiments::http::{Backend, HttpCell, HttpPlan};
use crate::run::{Failure, Pipe, can_have_send_buffer};

/// Descriptors beside objects and connections: logs, listeners, epolls, pooled pipes.
const OTHER_FILES: u64 = 512;
/// Descriptors of a proxy for each connection: two sockets, and both ends of a pipe.
const FILES_A_CONNECTION: u64 = 4;
/// The mappings that a process has, about; storaged has one for each object.
const MOST_OBJECTS: u64 = 60_000;

/// Lets this process and the daemons have what they open; gives how many files that is.
pub fn allow_files(plan: &HttpPlan) -> Result<u64, Failure> {
    let needed = plan.cells.iter().map(|cell| {
        let connections = u64::from(cell.connections);
        let of_client = connections * plan.ways.len() as u64;
        of_client.max(connections * FILES_A_CONNECTION).max(cell.objects() + connections)
    });
    let needed = needed.max().unwrap_or(0) + OTHER_FILES;
    if plan.ways.iter().any(|way| way.stack.backend() == Backend::Storaged) {
        let objects = plan.cells.iter().map(HttpCell::objects).max().unwrap_or(0);
        can_be_mapped(objects)?;
    }
    crate::run::allow_files(needed, "fewer --connections or a smaller --dataset")
}

/// What backends have that other users' would not.
pub fn exceeds(sndbuf_bytes: Option<u64>) -> Option<String> {
    let most = std::fs::read_to_string("/proc/sys/net/core/wmem_max").ok()?.trim().parse().ok()?;
    let bytes = sndbuf_bytes.filter(|bytes| *bytes > most)?;
    Some(format!(
        "send buffers of {} are above net.core.wmem_max, as root's may be: a backend of another \
         user has {}",
        Bytes(bytes),
        Bytes(most)
    ))
}

/// Whether backends and HAProxy get the buffers that they are told to have. The kernel cuts them
/// without an error, and a record must not have what was asked for in the place of what was had.
pub fn have_buffers(plan: &HttpPlan) -> Result<(), Failure> {
    if let Some(bytes) = plan.settings.sndbuf_bytes {
        // nginx asks as anybody does.
        let may_force = plan.ways.iter().all(|way| way.stack.backend() != Backend::Nginx);
        can_have_send_buffer(bytes, may_force)?;
    }
    plan.settings.haproxy_pipe_bytes.map_or(Ok(()), |bytes| Pipe::new(bytes, true).map(drop))
}

/// Whether a storaged can have so many objects mapped.
fn can_be_mapped(objects: u64) -> Result<(), Failure> {
    if objects <= MOST_OBJECTS {
        return Ok(());
    }
    Err(Failure::Limit(format!(
        "{objects} objects are more than a process can have mapped: a smaller --dataset, or a \
         larger --object"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::http::Stack;
    use crate::experiments::http::{Settings, plan};
    use crate::plan::Cpus;

    const CPUS: Cpus = Cpus { allowed: Vec::new(), sharing_l2: None };

    #[test]
    fn what_is_too_many_is_named_with_a_way_out() {
        let settings = Settings {
            object_bytes: vec![64],
            dataset_bytes: vec![64 << 20],
            ..Settings::default()
        };
        let plan = plan(&settings, &CPUS).unwrap();
        match allow_files(&plan) {
            Err(Failure::Limit(why)) => assert!(why.contains("--object"), "{why}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_buffer_that_is_not_to_be_had_is_refused() {
        let of = |settings: Settings| have_buffers(&plan(&settings, &CPUS).unwrap());
        let buffers = |stack, bytes| {
            let (stacks, sndbuf_bytes) = (vec![stack], Some(bytes));
            of(Settings { stacks, sndbuf_bytes, ..Settings::default() })
        };
        // More than half of the largest int is nobody's; nginx has what the system allows.
        for (stack, bytes) in
            [(Stack::StoragedProxyd, i32::MAX as u64), (Stack::NginxNginx, 1 << 30)]
        {
            match buffers(stack, bytes) {
                Err(Failure::Limit(why)) => assert!(why.contains("net.core.wmem_max="), "{why}"),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(buffers(Stack::NginxNginx, 64 << 10), Ok(()));
        assert_eq!((exceeds(None), exceeds(Some(1))), (None, None));
        assert!(exceeds(Some(1 << 40)).is_some_and(|said| said.contains("net.core.wmem_max")));
        let haproxy_pipe_bytes = Some(1 << 40);
        match of(Settings { haproxy_pipe_bytes, ..Settings::default() }) {
            Err(Failure::Limit(why)) => assert!(why.contains("fs.pipe-max-size"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}
