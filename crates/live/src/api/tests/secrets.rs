use std::io::Write;

use tracing_subscriber::fmt::MakeWriter;

use super::*;

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Captured {
    type Writer = Captured;

    fn make_writer(&'a self) -> Captured {
        self.clone()
    }
}

#[tokio::test]
async fn no_secret_is_ever_logged() {
    let captured = Captured::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(captured.clone());
    // For the whole process: one of this thread alone misses what another test's thread said first.
    tracing::subscriber::set_global_default(subscriber.finish()).expect("no other test captures the log");
    let world = World::new();
    let made = world.call("POST", "/v1/tokens", Some(&world.admin), r#"{"scope":"read"}"#).await.json();
    let secret = made["secret"].as_str().unwrap().to_owned();
    let wrong = secret.replace("yard_", "yard_0");
    for token in [&secret, &wrong, &world.ada, &world.join] {
        world.get("/v1/jobs?all=true", token).await;
        world.get(&format!("/v1/status?token={token}"), token).await;
        let job = format!(r#"{{"command":["a"],"env":{{"API_KEY":"{token}"}}}}"#);
        world.call("POST", "/v1/jobs", Some(token), &job).await;
        world.call("POST", "/v1/join", None, &format!(r#"{{"name":"n","csr":"x","token":"{token}"}}"#)).await;
    }
    let log = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("/v1/jobs"), "requests are logged");
    for token in [&secret, &world.admin, &world.ada, &world.join] {
        let digits = token.rsplit('_').next().unwrap();
        assert!(!log.contains(&digits[16..]), "a secret is in the log");
    }
}
