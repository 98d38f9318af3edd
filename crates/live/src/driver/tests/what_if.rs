use super::*;
use crate::store::Store;
use crate::what_if::{WhatIf, WhatIfQuestion, view};

impl Rig {
    async fn what_if(&self, request: JobRequest) -> Result<WhatIfQuestion, Refusal> {
        self.asked(WhatIf { job: Some(request), ..WhatIf::default() }).await
    }

    async fn asked(&self, asked: WhatIf) -> Result<WhatIfQuestion, Refusal> {
        let (who, asked) = (who("ann"), Box::new(asked));
        self.handle.ask(|reply| Ask::WhatIf { who, asked, reply }).await
    }
}

fn long(seconds: f64) -> JobRequest {
    JobRequest { duration_s: Some(seconds), ..job(0.0, 0) }
}

#[tokio::test]
async fn a_question_is_answered_from_a_copy_and_changes_nothing() {
    let placer: crate::MakePlacer = Arc::new(|| yard_policies::placers::placer("pack").unwrap());
    let rig = Rig::with(|config| config.estimates = Some(crate::Estimating { every: Span(1_000), placer }));
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let first = rig.submit(long(1_000.0)).await.id;
    agent.start_running().await;
    rig.until_state(first, "running").await;
    let question = rig.what_if(long(500.0)).await.unwrap();
    let told = question.answer(&|| false).unwrap();
    let told = rig.look(|board| view(&question, &told, &who("ann"), &board.jobs));
    let row = &told.rows[0];
    let (start, end) = (row.start.unwrap() - told.made_at, row.end.unwrap() - told.made_at);
    assert!((start - 1_000.0).abs() < 60.0 && (end - start - 500.0).abs() < 1.0, "{row:?}");
    assert_eq!((row.nodes.as_slice(), row.delayed), (["n1[0]".to_owned()].as_slice(), 0));
    assert!(row.start_interval.is_some() && !told.cut, "{told:?}");
    assert_eq!(rig.look(|board| board.jobs.len()), 1, "nothing was submitted");
    assert_eq!(rig.submit(long(500.0)).await.id, first + 1, "and no number was used up");
}

#[tokio::test]
async fn a_question_is_checked_like_a_submission() {
    let rig = Rig::new();
    let none = rig.what_if(long(1.0)).await.unwrap_err().to_string();
    assert!(none.contains("without estimates"), "{none}");
    let placer: crate::MakePlacer = Arc::new(|| yard_policies::placers::placer("pack").unwrap());
    let rig = Rig::with(|config| config.estimates = Some(crate::Estimating { every: Span(1_000), placer }));
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let field = |refused: Result<WhatIfQuestion, Refusal>| match refused {
        Err(Refusal::Invalid { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    let past = JobRequest { deadline: Some(1.0), ..long(1.0) };
    assert_eq!(field(rig.what_if(past).await).as_deref(), Some("deadline"));
    let after = JobRequest { after: vec![99], ..long(1.0) };
    assert_eq!(field(rig.what_if(after).await).as_deref(), Some("after"));
}

#[tokio::test]
async fn a_node_that_would_go_names_who_is_hit() {
    let placer: crate::MakePlacer = Arc::new(|| yard_policies::placers::placer("pack").unwrap());
    let rig = Rig::with(|config| config.estimates = Some(crate::Estimating { every: Span(1_000), placer }));
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let first = rig.submit(long(1_000.0)).await.id;
    agent.start_running().await;
    rig.until_state(first, "running").await;
    let second = rig.submit(long(500.0)).await.id;
    let node = |drain: Option<&str>, fail: Option<&str>| WhatIf {
        drain: drain.map(str::to_owned),
        fail: fail.map(str::to_owned),
        ..WhatIf::default()
    };
    for (asked, label, hit) in [
        (node(Some("n1"), None), "n1 drained", vec![second]),
        (node(None, Some("n1")), "n1 fails", vec![first, second]),
        (WhatIf { evict: true, ..node(Some("n1"), None) }, "n1 drained, its jobs moved", vec![first, second]),
    ] {
        let question = rig.asked(asked).await.unwrap();
        let told = question.answer(&|| false).unwrap();
        let told = rig.look(|board| view(&question, &told, &who("ann"), &board.jobs));
        let row = &told.rows[0];
        assert_eq!((row.label.as_str(), row.stranded, row.cut), (label, hit.len(), false), "{row:?}");
        let mut jobs: Vec<u64> = row.delays.iter().map(|delay| delay.job).collect();
        jobs.sort_unstable();
        assert_eq!(jobs, hit);
    }
    assert!(matches!(rig.asked(node(Some("n9"), None)).await, Err(Refusal::NotFound(_))));
    assert!(matches!(rig.asked(node(Some("n1"), Some("n1"))).await, Err(Refusal::Invalid { .. })));
    assert!(matches!(rig.asked(WhatIf::default()).await, Err(Refusal::Invalid { .. })));
}

#[tokio::test]
async fn how_estimates_turned_out_outlives_the_server() {
    let placer: crate::MakePlacer = Arc::new(|| yard_policies::placers::placer("pack").unwrap());
    let foretells = |config: &mut Config| {
        config.estimates = Some(crate::Estimating { every: Span(1_000), placer: placer.clone() });
    };
    let rig = Rig::with(foretells);
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let first = rig.submit(long(1_000.0)).await.id;
    agent.start_running().await;
    rig.until_state(first, "running").await;
    rig.until("it is foretold", |board| board.jobs[&first].estimate.is_some()).await;
    let part = agent.part_of(first).unwrap();
    agent.end(part, yard_core::part::How::Finished, Some(0)).await;
    rig.until_state(first, "succeeded").await;
    let dir = rig.dir.clone();
    rig.stop(&[]).await;
    let record = Store::open(dir.path()).unwrap().estimates().unwrap().expect("it was kept");
    assert_ne!(record, Default::default(), "something was learned");
    let rig = Rig::at(dir.clone(), foretells);
    rig.stop(&[]).await;
    let again = Store::open(dir.path()).unwrap().estimates().unwrap();
    assert_eq!(again, Some(record), "a server that saw nothing new knows as much as the last one");
}
