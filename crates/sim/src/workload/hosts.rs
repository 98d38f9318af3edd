//! What a job of a trace asks of its hosts becomes part of its shapes. On a cluster that counts nothing it asks in vain, and
//! costs nothing.

use std::sync::Arc;

use yard_core::cluster::{HostNeed, ResourceId};
use yard_core::job::Shape;

use super::{WorkloadError, WorkloadSite};
use crate::trace::{HostAsk, TraceJob};

/// Puts it into all ways in which the job may run; refuses a job for which no node has enough.
pub(super) fn ask(
    shapes: &mut [Shape],
    job: &TraceJob,
    site: &WorkloadSite<'_>,
) -> Result<(), WorkloadError> {
    let Some(asked) = job.host.as_deref() else { return Ok(()) };
    if site.cluster.nodes.iter().all(|node| node.host.is_none()) && asked.counts.is_empty() {
        return Ok(());
    }
    let need = need(asked, job, site)?;
    let most = |resource| site.cluster.nodes.iter().map(|node| node.host.get(resource)).max();
    let lacking = need.named().find(|(resource, amount)| most(*resource) < Some(*amount));
    if let Some((resource, _)) = lacking {
        let name = site.cluster.resources.iter().find(|(known, _)| *known == resource);
        let name = name.map_or_else(String::new, |(_, name)| name.to_owned());
        let (source_name, cluster) = (site.trace.source.clone(), site.cluster.text.clone());
        return Err(WorkloadError::NoHost {
            source_name,
            line: job.line,
            job: job.name.to_string(),
            name,
            cluster,
        });
    }
    let need = Arc::new(need);
    shapes.iter_mut().for_each(|shape| shape.host = Some(need.clone()));
    Ok(())
}

fn need(asked: &HostAsk, job: &TraceJob, site: &WorkloadSite<'_>) -> Result<HostNeed, WorkloadError> {
    let mut need = HostNeed::default();
    if let Some(cpus) = asked.cpus {
        need = need.per_node(ResourceId::CORES, (cpus * 1000.0).ceil() as u32);
    }
    if let Some(memory) = asked.memory_mib {
        need = need.per_node(ResourceId::MEMORY, memory);
    }
    for (name, count) in &asked.counts {
        let resource = site.cluster.resources.find(name).ok_or_else(|| WorkloadError::NoResource {
            source_name: site.trace.source.clone(),
            line: job.line,
            job: job.name.to_string(),
            name: name.to_string(),
            cluster: site.cluster.text.clone(),
        })?;
        need = need.per_node(resource, *count);
    }
    Ok(need)
}
