use axum::body::BodyDataStream;
use futures_util::StreamExt;

use super::*;

async fn follow(world: &World, token: &str, last: Option<u64>) -> BodyDataStream {
    let request = Request::builder().uri("/v1/watch").header("authorization", format!("Bearer {token}"));
    let request = last.into_iter().fold(request, |request, last| request.header("last-event-id", last));
    let (status, _, body) = world.begin(request.body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::OK);
    body.into_data_stream()
}

/// The next change: its revision, whether it is everything, and the numbers of its jobs.
async fn change(stream: &mut BodyDataStream) -> (u64, bool, Vec<u64>, usize) {
    let piece = tokio::time::timeout(Duration::from_secs(20), stream.next()).await;
    let piece = piece.expect("a change comes").expect("the stream goes on").unwrap();
    let text = String::from_utf8(piece.to_vec()).unwrap();
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).expect("it has data");
    let view: crate::views::ChangeView = serde_json::from_str(data).unwrap();
    assert!(view.jobs.iter().all(|job| job.request.is_none()));
    (view.revision, view.whole, view.jobs.iter().map(|job| job.id).collect(), view.nodes.len())
}

/// What the driver does.
fn happen(world: &World, id: u64, user: &str) {
    let mut board = world.site.handle.board.write().unwrap();
    board.changes.begin(now_us());
    board.changes.job(id);
    board.put_job(job(id, user, "pending"));
}

#[tokio::test]
async fn a_watcher_sees_everything_then_what_changes_of_their_own() {
    let world = World::new();
    let mut ada = follow(&world, &world.ada, None).await;
    let mut bob = follow(&world, &world.bob, None).await;
    let mut admin = follow(&world, &world.admin, None).await;
    let (first, whole, jobs, nodes) = change(&mut ada).await;
    assert_eq!((whole, jobs, nodes), (true, vec![2], 1));
    assert_eq!(change(&mut bob).await.2, [0; 0], "others' jobs are not there");
    assert_eq!(change(&mut admin).await.2, [2]);
    happen(&world, 3, "bob");
    happen(&world, 4, "ada");
    let (second, whole, jobs, nodes) = change(&mut ada).await;
    assert!(second > first);
    assert_eq!((whole, jobs, nodes), (false, vec![4], 0));
    assert_eq!(change(&mut bob).await.2, [3]);
    assert_eq!(change(&mut admin).await.2, [3, 4]);
    let mut back = follow(&world, &world.ada, Some(first)).await;
    assert_eq!(
        change(&mut back).await,
        (second, false, vec![4], 0),
        "who comes back is told what they missed"
    );
    let mut late = follow(&world, &world.ada, Some(first - 10)).await;
    assert_eq!(change(&mut late).await, (second, true, vec![2, 4], 1), "or everything");
    world.site.stop.cancel();
    assert!(ada.next().await.is_none(), "it ends with the server");
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let world = World::new();
    let soon = now_us() + 2_000_000;
    let brief = world.site.tokens.create("ada", Scope::Read, Some(soon), "root", "").unwrap().secret;
    let revoked = world.site.tokens.create("ada", Scope::Read, None, "root", "").unwrap();
    let mut lapses = follow(&world, &brief, None).await;
    let mut taken = follow(&world, &revoked.secret, None).await;
    change(&mut lapses).await;
    change(&mut taken).await;
    world.site.tokens.revoke(&revoked.token.id, None, "root").unwrap();
    for (stream, secret) in [(&mut lapses, &brief), (&mut taken, &revoked.secret)] {
        let ended = tokio::time::timeout(Duration::from_secs(20), stream.next()).await;
        assert!(ended.expect("it ends").is_none());
        assert_eq!(world.get("/v1/watch", secret).await.status, StatusCode::UNAUTHORIZED);
    }
}
