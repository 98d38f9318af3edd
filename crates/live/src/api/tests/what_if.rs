use yard_core::cluster::{Kinds, NodeSpec};
use yard_core::ids::KindId;
use yard_core::message::{Input, NodeChange};
use yard_core::units::{Span, Time};
use yard_core::{Engine, Settings};

use super::*;
use crate::handle::Who;
use crate::offers::Offers;
use crate::translate::{Blank, translate};
use crate::what_if::{WhatIf, WhatIfQuestion, ways};
use crate::{Estimating, MakePlacer, MakePolicy};

/// What a driver would hand over that has two devices and three jobs, the shortest first; the third is ada's job 2.
pub(super) fn question(who: &Who, asked: &WhatIf) -> Result<WhatIfQuestion, Refusal> {
    let request = &asked.job.clone().unwrap();
    let others = !asked.quick && asked.alternatives.unwrap_or(true);
    let placer: MakePlacer = Arc::new(|| yard_policies::placers::placer("pack").unwrap());
    let make: MakePolicy = Arc::new(|| yard_policies::make("srtf", Arc::from([])).unwrap().1);
    let mut kinds = Kinds::default();
    kinds.intern("h100");
    let settings = Settings { round: Span::ZERO, ..Settings::default() };
    let mut engine = Engine::new(settings, kinds.clone(), placer());
    let node = NodeSpec::of("node-1", KindId(0), 2);
    engine.step(Time::ZERO, Input::Node(NodeChange::Join(node)), &mut Vec::new());
    for seconds in [3_000.0, 4_000.0, 5_000.0] {
        let job = JobRequest { gpus: Some(2), duration_s: Some(seconds), ..request.clone() };
        let spec = translate("ada", &job, &kinds, &Blank, &Offers::default())?;
        engine.step(Time::ZERO, Input::Submit(Box::new(spec)), &mut Vec::new());
    }
    let ways = ways(&who.user, request, &kinds, &Blank, &Offers::default(), others)?;
    let how = Estimating { every: Span::ZERO, placer };
    let (past, moves) = Default::default();
    Ok(WhatIfQuestion {
        state: engine.state().clone(),
        at: Time::ZERO,
        past,
        moves,
        how,
        make,
        ways,
        quick: asked.quick,
        intervals: true,
        seed: 1,
    })
}

fn body(more: &str) -> String {
    format!(r#"{{"job":{{"command":["train"],"gpus":2,"duration_s":60}}{more}}}"#)
}

#[tokio::test]
async fn whoever_may_look_may_ask_and_sees_only_their_own_jobs() {
    let world = World::new();
    for (token, named) in [(&world.admin, 1), (&world.ada, 1), (&world.looker, 1), (&world.bob, 0)] {
        let told = world.call("POST", "/v1/what-if", Some(token), &body("")).await;
        assert_eq!(told.status, StatusCode::OK, "{}", told.body);
        let row = &told.json()["rows"][0];
        assert_eq!((&row["label"], &row["kind"]), (&"as asked".into(), &"h100".into()));
        assert_eq!((&row["start"], &row["end"]), (&0.0.into(), &60.0.into()));
        assert_eq!(row["nodes"][0], "node-1[0,1]");
        assert_eq!((&row["delayed"], &row["delayed_s"]), (&3.into(), &180.0.into()));
        let delays = row["delays"].as_array().unwrap();
        assert_eq!(delays.len(), named, "{delays:?}");
        delays
            .iter()
            .for_each(|delay| assert_eq!((&delay["job"], &delay["delay_s"]), (&2.into(), &60.0.into())));
    }
    let nobody = world.call("POST", "/v1/what-if", None, &body("")).await;
    assert_eq!(nobody.status, StatusCode::UNAUTHORIZED);
    assert!(world.heard.lock().unwrap().is_empty(), "nothing was submitted");
}

#[tokio::test]
async fn other_ways_stand_beside_it_and_the_best_is_marked() {
    let world = World::new();
    let told = world.call("POST", "/v1/what-if", Some(&world.ada), &body("")).await.json();
    let rows = told["rows"].as_array().unwrap();
    let row =
        |row: &Value| (row["label"].as_str().unwrap().to_owned(), row["end"].as_f64(), row["best"] == true);
    let rows: Vec<_> = rows.iter().map(row).collect();
    let (half, twice) = (("1 device".to_owned(), Some(120.0), false), ("4 devices".to_owned(), None, false));
    assert_eq!(rows, [("as asked".to_owned(), Some(60.0), true), half, twice]);
    let alone = world.call("POST", "/v1/what-if", Some(&world.ada), &body(r#","alternatives":false"#)).await;
    assert_eq!(alone.json()["rows"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn mistakes_are_named_and_who_asks_too_much_is_told_to_wait() {
    let world = World::new();
    let ask = |body: &str| {
        let body = body.to_owned();
        let world = &world;
        async move { world.call("POST", "/v1/what-if", Some(&world.ada), &body).await }
    };
    let unknown = ask(r#"{"job":{"command":["a"],"gpu":1}}"#).await;
    assert_eq!((unknown.status, unknown.field()), (StatusCode::BAD_REQUEST, Some("job.gpu".into())));
    let kind = ask(r#"{"job":{"command":["a"],"kinds":["k80"]}}"#).await;
    assert_eq!((kind.status, kind.field()), (StatusCode::BAD_REQUEST, Some("kinds".into())));
    let empty = ask(r#"{"job":{"command":[]}}"#).await;
    assert_eq!(empty.status, StatusCode::BAD_REQUEST);
    let mut turns: Vec<_> = (0..4).map(|_| world.site.asking.turn("ada")).collect();
    let fifth = ask(&body("")).await;
    assert_eq!(fifth.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(fifth.headers["retry-after"], "1");
    turns.pop();
    assert_eq!(ask(&body("")).await.status, StatusCode::OK, "another page of the same user asks too");
}

#[tokio::test]
async fn a_first_answer_is_about_the_job_alone() {
    let world = World::new();
    let told = world.call("POST", "/v1/what-if", Some(&world.ada), &body(r#","quick":true"#)).await.json();
    let rows = told["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["start"], &rows[0]["end"]), (&0.0.into(), &60.0.into()));
    assert_eq!((&rows[0]["alone"], &rows[0]["cut"]), (&true.into(), &false.into()));
    let whole = world.call("POST", "/v1/what-if", Some(&world.ada), &body("")).await.json();
    assert_eq!(whole["rows"][0]["alone"], false);
}
