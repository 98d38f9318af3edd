use super::*;

fn read(name: &str, text: &str) -> Result<Throughputs, ThroughputError> {
    let text = Text { file: name, bytes: text.as_bytes() };
    let table = match name.rsplit('.').next() {
        Some("json") => gavel::read(text)?,
        Some("toml") => native::read_toml(text)?,
        _ => native::read_csv(text)?,
    };
    table.finish(name)
}

fn native(text: &str) -> Result<Throughputs, ThroughputError> {
    read("t.csv", text)
}

fn gavel(text: &str) -> Result<Throughputs, ThroughputError> {
    read("t.json", text)
}

fn profile(model: &str, batch_size: Option<u32>, gpus: u32) -> Profile {
    Profile { model: model.into(), batch_size, gpus }
}

#[test]
fn native_tables_look_up_exact_shapes() {
    let table = native("kind,model,batch_size,gpus,steps_per_s\nk,m,8,2,3.5\nk,m,,1,2\nk,m,8,1,0\n").unwrap();
    assert_eq!(table.speed("k", "m", Some(8), 2), Some(3.5));
    assert_eq!(table.speed("k", "m", None, 1), Some(2.0));
    assert_eq!(table.speed("k", "m", Some(8), 1), None);
    assert_eq!(table.speed("k", "m", Some(8), 4), None);
    assert_eq!(table.speed("x", "m", Some(8), 2), None);
    assert_eq!(table.speed_spread("k", "m", Some(8), 2), None);
    assert_eq!(
        (table.kinds().collect::<Vec<_>>(), table.models().collect::<Vec<_>>()),
        (vec!["k"], vec!["m"])
    );
}

const RICH: &str = "kind,model,batch_size,gpus,steps_per_s,spread,beside_model,beside_batch_size
k,m,8,2,4,,,\nk,m,8,2,3,any,,\nk,n,,2,10,node,,\nk,m,8,2,1,,n,\nk,n,,2,9,,m,8\nk*1+j*1,m,8,2,5,,,\n";

const RICH_TOML: &str = "
[[speed]]\nkind = 'k'\nmodel = 'm'\nbatch_size = 8\ngpus = 2\nsteps_per_s = 4.0
[[speed]]\nkind = 'k'\nmodel = 'm'\nbatch_size = 8\ngpus = 2\nsteps_per_s = 3.0\nspread = 'any'
[[speed]]\nkind = 'k'\nmodel = 'n'\ngpus = 2\nsteps_per_s = 10.0
[[speed]]\nkind = 'k'\nmodel = 'm'\nbatch_size = 8\ngpus = 2\nsteps_per_s = 1.0\nbeside_model = 'n'
[[speed]]\nkind = 'k'\nmodel = 'n'\ngpus = 2\nsteps_per_s = 9.0\nbeside_model = 'm'\nbeside_batch_size = 8
[[speed]]\nkind = 'j*1+k*1'\nmodel = 'm'\nbatch_size = 8\ngpus = 2\nsteps_per_s = 5.0
";

#[test]
fn pairs_spread_gangs_and_mixes_are_read() {
    let table = native(RICH).unwrap();
    let (m, n) = (profile("m", Some(8), 2), profile("n", None, 2));
    assert_eq!((table.kept("k", &m, &n), table.kept("k", &n, &m)), (Some(0.25), Some(0.9)));
    assert_eq!(table.kept("k", &m, &m), None);
    assert_eq!(table.speed_spread("k", "m", Some(8), 2), Some(3.0));
    assert_eq!(table.mixes().collect::<Vec<_>>(), [("j*1+k*1", vec![("j", 1), ("k", 1)])]);
    assert_eq!(table.speed("j*1+k*1", "m", Some(8), 2), Some(5.0));
    assert_eq!(table.profiles().into_iter().collect::<Vec<_>>(), [m, n]);
}

#[test]
fn toml_says_the_same_as_csv() {
    assert_eq!(read("t.toml", RICH_TOML).unwrap(), native(RICH).unwrap());
}

#[test]
fn bad_tables_name_the_entry() {
    let message = |error: ThroughputError| error.to_string();
    assert_eq!(
        message(native("kind,model,gpus,steps_per_s\nk,m,1,-2\n").unwrap_err()),
        "t.csv, line 2, field steps_per_s: \"-2\" is negative; a speed is a number of steps a second from 0 up"
    );
    assert_eq!(
        message(native("kind,model,gpus,steps_per_s\nk,m,1,2\nk,m,1,3\n").unwrap_err()),
        "t.csv: m on 1 of k is there twice; each shape has one speed"
    );
    assert_eq!(
        message(gavel(r#"{"v100": {"('A3C', 1)": {"null": -1.0}}}"#).unwrap_err()),
        "t.json, entry v100 ('A3C', 1): -1 is no speed; a speed is a number from 0 to 1e12"
    );
    assert_eq!(
        message(gavel(r#"{"v100": {"A3C": {"null": 1.0}}}"#).unwrap_err()),
        "t.json, entry v100 A3C: the key is no shape; a key is like ('A3C', 1)"
    );
    assert!(message(gavel("{\"v100\": 3}").unwrap_err()).starts_with("t.json: not a throughput table"));
    assert_eq!(
        message(native("kind,model,gpus,steps_per_s\n").unwrap_err()),
        "t.csv: there are no throughputs in it"
    );
}

#[test]
fn bad_pairs_and_mixes_name_the_entry() {
    let message = |error: ThroughputError| error.to_string();
    let pair = |cell: &str| {
        let beside = format!(r#""('B', 1)": {cell}"#);
        message(gavel(&format!(r#"{{"v": {{"('A', 1)": {{"null": 2.0, {beside}}}}}}}"#)).unwrap_err())
    };
    assert_eq!(
        pair("[1.0]"),
        "t.json, entry v ('A', 1) beside ('B', 1): is no speed; alone a job has one speed, beside another a list of two"
    );
    assert_eq!(
        pair("[-1.0, 1.0]"),
        "t.json, entry v ('A', 1) beside ('B', 1): -1 is no speed; a speed is a number from 0 to 1e12"
    );
    // The order of the two in the message is that of the table, not of the file.
    assert!(pair("[1.0, 1.0]").contains("B on 1 of v has no speed alone; a pair is of shapes"));
    assert_eq!(
        message(gavel(r#"{"v": {"('A', 1)": {"null": 2.0}, "('A', 1)": {"null": 3.0}}}"#).unwrap_err()),
        "t.json: A on 1 of v is there twice; each shape has one speed"
    );
    let header = "kind,model,gpus,steps_per_s,spread,beside_model\n";
    let line = |line: &str| message(native(&format!("{header}{line}\n")).unwrap_err());
    assert_eq!(
        line("a*1+b*2,m,4,2,,"),
        "t.csv, line 2, field kind: \"a*1+b*2\" has 3 devices where gpus is 4; a kind is a name, or a mix such as v100*2+p100*2 of `gpus` devices in all"
    );
    assert!(line("a*1+a*2,m,3,2,,").contains("does not name two kinds or more, each once"));
    assert!(line("a+b,m,3,2,,").contains("is no mix of kinds"));
    assert!(line("k,m,3,2,wide,").contains("field spread: \"wide\" is no spread"));
    assert!(line("k,m,1,2,,\nk,m,1,1,,n").contains("n on 1 of k has no speed alone"));
    assert!(line("k,m,1,2,,\nk,n,1,2,,\nk,m,1,1,,n").contains("the other's speed is not there"));
    assert!(line("k,m,1,2,,\nk,m,1,1,,m\nk,m,1,1,,m").contains("m on 1 of k beside m on 1 is there twice"));
    assert!(line("k,m,1,inf,,").contains("is not a finite number"));
    let unknown = message(native("kind,model,gpus,steps_per_s,beside\n").unwrap_err());
    assert!(unknown.contains("unknown columns: beside; allowed are: kind, model"), "{unknown}");
    let toml = |text: &str| message(read("t.toml", text).unwrap_err());
    let bad = "[[speed]]\nkind = 'k'\nmodel = 'm'\ngpus = 1\nsteps_per_s = nan\n";
    assert_eq!(
        toml(bad),
        "t.toml, entry speed 1 (m on k): NaN is no speed; a speed is a number from 0 to 1e12"
    );
    assert!(toml("[[speed]]\nkind = 3\n").starts_with("t.toml: not a throughput table in TOML: line 2"));
}

#[test]
fn gavels_pairs_and_spread_gangs_are_read() {
    let table = gavel(
        r#"{"v100": {"('LM (batch size 5)', 2)": {"null": 4.0, "('A3C', 2)": [1.0, 2.0]},
                     "('A3C', 2)": {"null": 8.0}},
            "v100_unconsolidated": {"('LM (batch size 5)', 2)": {"null": 1.5}}}"#,
    );
    let table = table.unwrap();
    let (lm, a3c) = (profile("LM", Some(5), 2), profile("A3C", None, 2));
    assert_eq!(table.speed("v100", "LM", Some(5), 2), Some(4.0));
    assert_eq!(table.speed_spread("v100", "LM", Some(5), 2), Some(1.5));
    assert_eq!((table.kept("v100", &lm, &a3c), table.kept("v100", &a3c, &lm)), (Some(0.25), Some(0.25)));
    assert_eq!(table.kinds().collect::<Vec<_>>(), ["v100"]);
}
