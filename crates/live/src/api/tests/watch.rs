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

/// A board of so many jobs of ada's.
fn fill(world: &World, jobs: u64) {
    let mut board = world.site.handle.board.write().unwrap();
    board.changes.begin(now_us());
    for id in 10..10 + jobs {
        board.put_job(job(id, "ada", "pending"));
        board.changes.job(id);
    }
}

/// The next frame: its id, if it has one, and what it holds.
async fn frame(stream: &mut BodyDataStream) -> (Option<u64>, crate::views::ChangeView, usize) {
    let piece = tokio::time::timeout(Duration::from_secs(20), stream.next()).await;
    let piece = piece.expect("a change comes").expect("the stream goes on").unwrap();
    let text = String::from_utf8(piece.to_vec()).unwrap();
    let line = |start: &str| text.lines().find_map(|line| line.strip_prefix(start)).map(str::to_owned);
    let view = serde_json::from_str(&line("data: ").expect("it has data")).unwrap();
    (line("id: ").map(|id| id.parse().unwrap()), view, text.len())
}

#[tokio::test]
async fn a_large_board_comes_in_pieces_and_only_the_last_can_be_gone_on_from() {
    let world = World::new();
    fill(&world, 1_000);
    let mut ada = follow(&world, &world.ada, None).await;
    let (mut seen, mut pieces) = (Vec::new(), 0);
    let last = loop {
        let (id, view, _) = frame(&mut ada).await;
        assert_eq!(view.whole, pieces == 0, "only the first one says to forget the rest");
        assert!(view.jobs.len() <= 256);
        seen.extend(view.jobs.iter().map(|job| job.id));
        pieces += 1;
        if pieces == 1 {
            // What changes meanwhile comes after it.
            happen(&world, 10, "ada");
        }
        match id {
            Some(id) => break id,
            None => assert!(pieces < 10),
        }
    };
    assert_eq!(seen, [2].into_iter().chain(10..1_010).collect::<Vec<u64>>(), "each job once");
    let (next, view, _) = frame(&mut ada).await;
    assert!(next.is_some_and(|next| next > last) && !view.whole);
    assert_eq!(view.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [10]);
}

/// 200 watchers on 20 000 jobs. Before, each made a copy of the board and its JSON, the copy under the lock: 20 MB each,
/// and a submission waited for all of them.
#[tokio::test]
async fn many_watchers_of_a_large_board_hold_neither_its_lock_nor_copies_of_it() {
    let world = World::new();
    fill(&world, 20_000);
    let mut watchers = Vec::new();
    for number in 0..200 {
        // As many users as are needed: one may have 64 streams.
        let user = format!("u{}", number / 50);
        let token = world.site.tokens.create(&user, Scope::Admin, None, "root", "").unwrap().secret;
        watchers.push(follow(&world, &token, None).await);
    }
    let mut most = 0;
    for (number, watcher) in watchers.iter_mut().enumerate() {
        let (id, view, bytes) = frame(watcher).await;
        assert!(id.is_none() && view.whole && view.jobs.len() == 256);
        most = most.max(bytes);
        // All who are being served stand still here, and the lock is free.
        let mut board = world.site.handle.board.try_write().expect("nobody holds the lock");
        board.changes.begin(now_us() + number as u64);
    }
    println!("a watcher that stands still on a board of 20000 jobs costs {most} bytes");
    assert!(most < 512 << 10, "{most} bytes");
    let board = world.site.handle.board.read().unwrap();
    assert!(board.jobs.values().all(|job| Arc::strong_count(job) == 1), "nobody keeps a job");
}
