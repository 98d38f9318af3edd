use axum::body::BodyDataStream;
use futures_util::StreamExt;

use super::*;

/// Reads the numbers of events off a stream until there are so many.
async fn ids(stream: &mut BodyDataStream, count: usize) -> Vec<u64> {
    let mut found = Vec::new();
    while found.len() < count {
        let piece = tokio::time::timeout(Duration::from_secs(20), stream.next()).await;
        let piece = piece.expect("an event comes").expect("the stream goes on").unwrap();
        let text = String::from_utf8(piece.to_vec()).unwrap();
        found.extend(text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse::<u64>().ok()));
    }
    found
}

async fn follow(world: &World, token: &str, last: Option<&str>) -> BodyDataStream {
    let request = Request::builder().uri("/v1/events").header("authorization", format!("Bearer {token}"));
    let request = last.into_iter().fold(request, |request, last| request.header("last-event-id", last));
    let (status, headers, body) = world.begin(request.body(Body::empty()).unwrap()).await;
    assert_eq!((status, headers["content-type"].to_str().unwrap()), (StatusCode::OK, "text/event-stream"));
    body.into_data_stream()
}

/// What the driver does: write it down, then tell.
fn happen(world: &World, event: EventView) {
    world.past.events.lock().unwrap().push(event.clone());
    let _ = world.site.handle.events.send(Arc::new(event));
}

#[tokio::test]
async fn a_stream_resumes_where_it_broke_off_without_gaps_or_repeats() {
    let world = World::new();
    for id in 1..=5 {
        happen(&world, event(id, Some("ada")));
    }
    let mut fresh = follow(&world, &world.ada, None).await;
    let mut resumed = follow(&world, &world.ada, Some("2")).await;
    happen(&world, event(6, Some("ada")));
    assert_eq!(ids(&mut resumed, 4).await, [3, 4, 5, 6]);
    assert_eq!(ids(&mut fresh, 1).await, [6], "who is new sees what is new");
    happen(&world, event(8, None));
    assert_eq!(ids(&mut resumed, 1).await, [8]);
    assert_eq!(ids(&mut fresh, 1).await, [8]);
}

#[tokio::test]
async fn events_of_one_job_are_found_however_old_they_are() {
    let world = World::new();
    for id in 1..=50 {
        happen(&world, EventView { job: Some(id % 10), ..event(id, Some("ada")) });
    }
    let page = async |query: &str| {
        let answer = world.get(&format!("/v1/events?follow=false&{query}"), &world.ada).await.json();
        let ids = answer["events"].as_array().unwrap().iter().map(|event| event["id"].as_u64().unwrap());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(page("job=3&after=0&limit=2").await, [3, 13]);
    assert_eq!(page("job=3&after=13&limit=2").await, [23, 33]);
    assert_eq!(page("job=3&before=33&limit=2").await, [13, 23]);
    let request = Request::builder().uri("/v1/events?job=3").header("last-event-id", "23");
    let request = request.header("authorization", format!("Bearer {}", world.ada));
    let (_, _, body) = world.begin(request.body(Body::empty()).unwrap()).await;
    let mut stream = body.into_data_stream();
    assert_eq!(ids(&mut stream, 2).await, [33, 43]);
    happen(&world, EventView { job: Some(4), ..event(51, Some("ada")) });
    happen(&world, EventView { job: Some(3), ..event(52, Some("ada")) });
    assert_eq!(ids(&mut stream, 1).await, [52], "and others of it as they happen");
}

#[tokio::test]
async fn who_is_too_slow_reads_on_from_the_history() {
    let world = World::new();
    let mut stream = follow(&world, &world.ada, None).await;
    for id in 1..=50 {
        happen(&world, event(id, Some(if id % 2 == 0 { "ada" } else { "bob" })));
    }
    let even: Vec<u64> = (1..=25).map(|half| half * 2).collect();
    assert_eq!(ids(&mut stream, 25).await, even, "the channel holds four, and others' events are not shown");
    let mut all = follow(&world, &world.admin, Some("0")).await;
    assert_eq!(ids(&mut all, 50).await, (1..=50).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_stream_ends_with_the_server_and_a_page_is_json() {
    let world = World::new();
    for id in 1..=5 {
        happen(&world, event(id, None));
    }
    let page = world.get("/v1/events?follow=false&after=1&limit=2", &world.ada).await.json();
    assert_eq!((&page["events"][0]["id"], &page["events"][1]["id"]), (&2.into(), &3.into()));
    let mut stream = follow(&world, &world.ada, None).await;
    world.site.stop.cancel();
    assert!(stream.next().await.is_none());
    let request = Request::builder().uri("/v1/events").header("last-event-id", "soon");
    let request =
        request.header("authorization", format!("Bearer {}", world.ada)).body(Body::empty()).unwrap();
    assert_eq!(world.send(request).await.field().as_deref(), Some("Last-Event-ID"));
}
