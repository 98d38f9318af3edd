use super::*;

/// Native tables and traces, as text.
struct Bench {
    dir: std::path::PathBuf,
}

impl Bench {
    fn new(name: &str) -> Bench {
        let dir = std::env::temp_dir().join(format!("yard-workload-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Bench { dir }
    }

    fn workload(&self, table: &str, cluster: &str, jobs: &str, placement_aware: bool) -> Workload {
        let (trace, speeds) = (self.dir.join("t.csv"), self.dir.join("s.csv"));
        std::fs::write(&trace, format!("job_id,submit_s,gpus,steps,model,batch_size\n{jobs}")).unwrap();
        std::fs::write(&speeds, table).unwrap();
        let trace = crate::trace::open(&trace, None).unwrap().trace;
        let table = Throughputs::open(&speeds).unwrap();
        let overheads = Overheads::none();
        let options = Options {
            table: Some(&table),
            overheads: &overheads,
            placement_aware,
            scaling: None,
            profiled: true,
        };
        Workload::new(&trace, &ClusterSpec::parse(cluster).unwrap(), options).unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

const TABLE: &str = "kind,model,gpus,steps_per_s,spread,beside_model
a,m,4,8,,\na,m,4,5,any,\nb,m,4,6,,\na,n,4,4,,\na,m,4,2,,n\na,n,4,3,,m\na*2+b*2,m,4,7,,\nz,m,4,9,,\n";

fn ways(spec: &JobSpec) -> Vec<(Level, usize, f64)> {
    spec.shapes.iter().zip(&*spec.speeds).map(|(s, speed)| (s.level(), s.needs.len(), *speed)).collect()
}

#[test]
fn a_gang_on_one_node_and_one_anywhere_are_two_shapes() {
    use Level::{Any, Node};
    let bench = Bench::new("shapes");
    let ways = |cluster, aware| ways(&bench.workload(TABLE, cluster, "0,0,4,10,m,\n", aware).specs[0]);
    assert_eq!(ways("a:2x4,b:1x4", true), [(Node, 1, 8.0), (Any, 2, 7.0), (Any, 1, 6.0), (Any, 1, 5.0)]);
    // No node is large enough: the gang is always spread.
    assert_eq!(ways("a:4x2", true), [(Any, 1, 5.0)]);
    assert_eq!(ways("a:4x2", false), [(Any, 1, 8.0)]);
    assert_eq!(ways("b:4x2", true), [(Any, 1, 6.0)]);
}

#[test]
fn profiles_tell_models_apart_and_pairs_follow_them() {
    let bench = Bench::new("profiles");
    let workload = bench.workload(TABLE, "a:2x4", "0,0,4,10,m,\n1,0,4,10,n,\n2,0,4,99,m,\n", true);
    let profiles: Vec<_> = workload.specs.iter().map(|spec| spec.profile.0).collect();
    assert_eq!(profiles, [1, 2, 1]);
    let kept = |a, b| workload.pairs.beside(ProfileId(a), ProfileId(b), KindId(0));
    assert_eq!((kept(1, 2), kept(2, 1), kept(1, 1)), (Some(0.25), Some(0.75), None));
}
