use super::*;
use crate::overheads::Overheads;
use crate::trace::open;
use crate::workload::Options;

/// Two kinds; models x and y bear neighbours well, u and v badly; all have speeds of their own.
fn table() -> String {
    let mut text = String::from("kind,model,gpus,steps_per_s,beside_model\n");
    let models = [("u", 1.0), ("v", 8.0), ("x", 2.0), ("y", 30.0)];
    for (kind, pace) in [("slow", 1.0), ("fast", 3.0)] {
        for (model, speed) in models {
            text += &format!("{kind},{model},1,{},\n", speed * pace);
            for (other, _) in models {
                let kept = if model < "w" { 0.3 } else { 0.9 } * if other < "w" { 0.8 } else { 1.0 };
                text += &format!("{kind},{model},1,{},{other}\n", speed * pace * kept);
            }
        }
    }
    text
}

fn parts(jobs: &str) -> (Workload, Throughputs, ClusterSpec) {
    let name = jobs.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let dir = std::env::temp_dir().join(format!("yard-learned-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("t.csv"), format!("job_id,submit_s,gpus,steps,model\n{jobs}")).unwrap();
    std::fs::write(dir.join("s.csv"), table()).unwrap();
    let table = Throughputs::open(&dir.join("s.csv")).unwrap();
    let cluster = ClusterSpec::parse("slow:2,fast:2").unwrap();
    let options = Options {
        table: Some(&table),
        overheads: &Overheads::none(),
        placement_aware: true,
        scaling: None,
        profiled: true,
    };
    let trace = open(&dir.join("t.csv"), None).unwrap().trace;
    let workload = Workload::new(&trace, &cluster, options).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    (workload, table, cluster)
}

/// Row means stand in for the gaps.
fn means(rows: usize, columns: usize, known: &[(usize, usize, f64)]) -> Vec<f64> {
    let mean = |row: usize| {
        let own: Vec<f64> = known.iter().filter(|entry| entry.0 == row).map(|entry| entry.2).collect();
        own.iter().sum::<f64>() / own.len().max(1) as f64
    };
    (0..rows * columns)
        .map(|at| {
            let exact = known.iter().find(|entry| (entry.0, entry.1) == (at / columns, at % columns));
            exact.map_or_else(|| mean(at / columns), |entry| entry.2)
        })
        .collect()
}

#[test]
fn references_are_spread_over_the_table_and_known_exactly() {
    let (mut workload, table, cluster) = parts("0,0,1,9,u\n1,0,1,9,x\n");
    let pairs = workload.pairs.clone();
    assert_eq!(references(&table).len(), 4);
    let truth: Vec<_> = workload.specs.iter().map(|spec| spec.speeds.clone()).collect();
    let learned =
        believe(&mut workload, &table, &cluster, Profiling { seed: 0, chance: 0.3, complete: means });
    assert_eq!((learned.belief, learned.speeds), (pairs, truth), "all four are references");
}

#[test]
fn a_stranger_is_guessed_from_the_references_and_paired_like_the_nearest() {
    let (workload, table, cluster) = parts("0,0,1,9,v\n1,0,1,9,x\n");
    let u = Profile { model: "u".into(), batch_size: None, gpus: 1 };
    let [v, x] = [&workload.profiles[1], &workload.profiles[2]].map(|one| one.as_ref().unwrap());
    let known = LearnedSpeeds { table: &table, cluster: &cluster, references: vec![u.clone(), x.clone()] };
    let guess = known.guess(&workload.specs[0], Some(v));
    // The mean of 1 and 2 steps a second, and three times that on the fast kind, which comes first.
    assert!(
        (guess[0] / (3.0 * 2f64.sqrt()) - 1.0).abs() < 1e-12 && (guess[0] / guess[1] - 3.0).abs() < 1e-12
    );
    let how = Profiling { seed: 1, chance: 1.0, complete: means };
    let belief = known.pairs(&workload, how);
    // All of v beside x was measured; v beside itself is taken to be as u beside itself.
    let kept = |a, b| belief.beside(ProfileId(a), ProfileId(b), yard_core::ids::KindId(0)).unwrap();
    assert!(
        (kept(1, 2) - 0.3).abs() < 1e-12
            && (kept(1, 1) - 0.24).abs() < 1e-12
            && (kept(2, 2) - 0.9).abs() < 1e-12
    );
}

#[test]
fn shapes_come_in_the_order_of_the_guesses() {
    let (mut workload, table, cluster) = parts("7,0,1,9,v\n");
    let spec = workload.specs[0].clone();
    let list = Guessed::new(&spec, &[1.0, 5.0], &[]);
    assert_eq!((&*list.guess, &*list.speeds), (&[5.0, 1.0][..], &[spec.speeds[1], spec.speeds[0]][..]));
    assert_eq!(list.shapes[0], spec.shapes[1]);
    believe(&mut workload, &table, &cluster, Profiling { seed: 0, chance: 0.0, complete: means });
}
