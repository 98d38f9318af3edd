use super::*;

fn told(ended: &[(&str, &str, f64)], open: &[(&str, &str, f64)]) -> Told {
    let job = |(user, name, seconds): &(&str, &str, f64)| Job {
        marks: [mark(&[user, name], 0, 0), mark(&[user], 0, 1), mark(&[], 0, 2), ALL],
        seconds: *seconds,
        service: *seconds,
    };
    let kept =
        Kept { ended: ended.iter().map(job).collect(), fresh: 0, open: open.iter().map(job).collect() };
    Told::of(&kept)
}

fn rates<'a>(told: &'a Told, user: &str, name: &str) -> &'a Rates {
    let marks = [mark(&[user, name], 0, 0), mark(&[user], 0, 1), mark(&[], 0, 2), ALL];
    static NONE: Rates = Rates { ended: 0, rates: Vec::new() };
    marks.iter().find_map(|mark| told.alike.get(mark)).unwrap_or(&NONE)
}

#[test]
fn of_whom_nothing_is_known_as_much_again_is_left_as_it_has_had() {
    let nothing = told(&[], &[]);
    for had in [10.0, 1_000.0, 100_000.0] {
        let left = rates(&nothing, "ann", "x").left(had, 0.5);
        assert!((0.8..1.25).contains(&(left / had)), "{left} of {had}");
    }
}

#[test]
fn jobs_like_one_say_how_long_it_is() {
    let past: Vec<_> = (0..30).flat_map(|_| [("ann", "train", 7_200.0), ("bob", "test", 60.0)]).collect();
    let told = told(&past, &[]);
    let left = |user, name| rates(&told, user, name).left(0.0, 0.5);
    assert!((5_000.0..9_000.0).contains(&left("ann", "train")), "{}", left("ann", "train"));
    assert!((40.0..100.0).contains(&left("bob", "test")), "{}", left("bob", "test"));
    assert_eq!(
        left("ann", "other"),
        rates(&told, "ann", "new").left(0.0, 0.5),
        "the user's, where the name is new"
    );
    assert!(left("eve", "train") < left("ann", "train"), "of a stranger all jobs say something");
}

#[test]
fn who_has_outlived_the_crowd_is_one_of_the_long_ones() {
    let mut past = vec![("ann", "x", 60.0); 90];
    past.extend([("ann", "x", 36_000.0); 10]);
    let told = told(&past, &[]);
    let rates = rates(&told, "ann", "x");
    assert!(rates.left(0.0, 0.5) < 120.0);
    assert!(rates.left(300.0, 0.5) > 10_000.0);
    assert!(
        rates.cost(0.0) < 200.0 && rates.cost(300.0) > 10_000.0,
        "{} {}",
        rates.cost(0.0),
        rates.cost(300.0)
    );
}

#[test]
fn jobs_that_are_not_over_are_no_short_ones() {
    let ended = vec![("ann", "x", 100.0); 10];
    let open = vec![("ann", "x", 50_000.0); 10];
    let (blind, seeing) = (told(&ended, &[]), told(&ended, &open));
    let later = |told: &Told| rates(told, "ann", "x").left(0.0, 0.3);
    assert!(later(&blind) < 200.0 && later(&seeing) > 10_000.0, "{} {}", later(&blind), later(&seeing));
}

#[test]
fn the_cost_of_a_job_falls_as_its_end_comes_near() {
    let told = told(&[("ann", "x", 10_000.0); 50], &[]);
    let cost = |had| rates(&told, "ann", "x").cost(had);
    assert!(cost(0.0) > cost(4_000.0) && cost(4_000.0) > cost(7_000.0), "{} {}", cost(0.0), cost(7_000.0));
}

#[test]
fn more_overrun_is_more_left_and_never_nothing() {
    assert_eq!(overrun(100.0, 101.0), 10.0);
    assert_eq!(overrun(100.0, 150.0), 150.0);
    assert!(overrun(100.0, 100.0 + 1e-9) > 0.0);
}

#[test]
fn what_is_kept_says_all_that_is_told() {
    let jobs = [60.0, 600.0, 6_000.0].map(|seconds| Job { marks: [0, 1, 2, ALL], seconds, service: seconds });
    let kept = Kept { ended: jobs.to_vec().into(), fresh: 1, open: jobs.to_vec() };
    let lengths = Lengths::from(kept);
    let text = serde_json::to_string(&lengths).expect("numbers are JSON");
    assert_eq!(serde_json::from_str::<Lengths>(&text).expect("it was written so"), lengths);
}
