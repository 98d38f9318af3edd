//! Attacks with a join token or a node's certificate: a machine gets in once, under a name of its own, and no longer
//! than an admin wants.

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite;

use super::tls::{Port, client_of, hello};
use super::*;
use crate::ca::{self, SERVER_NAME};
use crate::enroll::{EnrollError, enroll};
use crate::listen::ListenLimits;
use crate::views::{JoinReply, JoinRequest, NewToken};
use crate::wire::WIRE_VERSION;

impl Port {
    /// Makes a token as the admin does.
    async fn token(&self, body: &str) -> NewToken {
        let made = self.world.call("POST", "/v1/tokens", Some(&self.world.admin), body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        serde_json::from_str(&made.body).unwrap()
    }

    async fn join(&self, name: &str, token: &str) -> Result<(String, JoinReply), (u16, String)> {
        let (key, csr) = ca::request(name).unwrap();
        let request = JoinRequest { name: name.into(), token: Some(token.to_owned()), csr };
        match enroll(&self.address, self.stranger(), &request).await {
            Ok(reply) => Ok((key, reply)),
            Err(EnrollError::Refused { status, reason }) => Err((status, reason)),
            Err(other) => panic!("{other}"),
        }
    }

    async fn renew(&self, name: &str, key: &str, joined: &JoinReply) -> Result<JoinReply, (u16, String)> {
        let (_, csr) = ca::request(name).unwrap();
        let request = JoinRequest { name: name.into(), token: None, csr };
        match enroll(&self.address, client_of(key, joined), &request).await {
            Err(EnrollError::Refused { status, reason }) => Err((status, reason)),
            other => Ok(other.unwrap()),
        }
    }

    async fn connect(
        &self,
        key: &str,
        joined: &JoinReply,
    ) -> Result<impl futures_util::Stream<Item = Option<ToAgent>> + Unpin + use<>, u16> {
        let stream = self.tls(client_of(key, joined)).await.unwrap();
        let url = format!("wss://{SERVER_NAME}/v1/agent");
        let mut socket = match tokio_tungstenite::client_async(url, stream).await {
            Ok((socket, _)) => socket,
            Err(tungstenite::Error::Http(answer)) => return Err(answer.status().as_u16()),
            Err(other) => panic!("{other}"),
        };
        socket.send(hello("gpu-1", WIRE_VERSION)).await.unwrap();
        // A frame of the server's, or nothing where it closes.
        Ok(socket.map(|frame| serde_json::from_str(frame.ok()?.to_text().ok()?).ok()))
    }

    async fn admin(&self, method: &str, path: &str) -> Answered {
        self.world.call(method, path, Some(&self.world.admin), "").await
    }
}

#[tokio::test]
async fn a_join_token_lets_one_machine_in() {
    let port = Port::open().await;
    let token = port.token(r#"{"scope":"join"}"#).await;
    assert_eq!((token.token.uses_left, token.token.nodes.as_slice()), (Some(1), &["*".to_owned()][..]));
    let day = token.token.expires_at.unwrap() - token.token.created_at;
    assert!((86_000.0..87_000.0).contains(&day), "{day}");
    assert!(port.join("gpu-1", &token.secret).await.is_ok());
    let (status, reason) = port.join("gpu-2", &token.secret).await.unwrap_err();
    assert_eq!(status, 401, "{reason}");
    assert!(reason.contains("has been used"), "{reason}");
    let listed = port.admin("GET", "/v1/tokens").await.json();
    let own = listed["tokens"].as_array().unwrap().iter().find(|row| row["id"] == *token.token.id).unwrap();
    assert_eq!(own["uses_left"], 0);
}

#[tokio::test]
async fn a_join_token_for_a_pattern_lets_in_new_names_that_match() {
    let port = Port::open().await;
    let token = port.token(r#"{"scope":"join","nodes":["gpu-*","lab-?"],"uses":3}"#).await;
    let month = token.token.expires_at.unwrap() - token.token.created_at;
    assert!((29.9 * 86_400.0..30.1 * 86_400.0).contains(&month), "{month}");
    assert!(port.join("gpu-1", &token.secret).await.is_ok());
    let (status, reason) = port.join("cpu-1", &token.secret).await.unwrap_err();
    assert_eq!(status, 403);
    assert!(reason.contains("gpu-*, lab-?"), "{reason}");
    assert_eq!(port.join("gpu-1", &token.secret).await.unwrap_err().0, 409, "not a new name");
    assert!(port.join("lab-1", &token.secret).await.is_ok());
    assert!(port.join("gpu-2", &token.secret).await.is_ok());
    assert_eq!(port.join("gpu-3", &token.secret).await.unwrap_err().0, 401, "three uses are three machines");
    for (body, field) in [
        (r#"{"scope":"join","nodes":[]}"#, "nodes"),
        (r#"{"scope":"join","nodes":["a b"]}"#, "nodes"),
        (r#"{"scope":"join","uses":0}"#, "uses"),
        (r#"{"scope":"submit","uses":1}"#, "uses"),
        (r#"{"scope":"join","weight_max":2}"#, "weight_max"),
        (r#"{"scope":"admin","teams":["a"]}"#, "teams"),
        (r#"{"scope":"submit","teams":["../a"]}"#, "teams"),
        (r#"{"scope":"submit","weight_max":0}"#, "weight_max"),
        (r#"{"scope":"submit","classes":[]}"#, "classes"),
    ] {
        let refused = port.world.call("POST", "/v1/tokens", Some(&port.world.admin), body).await;
        assert_eq!(
            (refused.status, refused.field().as_deref()),
            (StatusCode::BAD_REQUEST, Some(field)),
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused_with_the_remedy() {
    let port = Port::open().await;
    let join = port.world.join.clone();
    port.join("gpu-1", &join).await.unwrap();
    // node-1 is a node without a certificate on record: the server's own, or one from before.
    for name in ["gpu-1", "node-1"] {
        let (status, reason) = port.join(name, &join).await.unwrap_err();
        assert_eq!(status, 409, "{reason}");
        assert!(reason.contains(&format!("node {name} has joined already")), "{reason}");
        assert!(reason.contains(&format!("yard nodes rm {name}")), "{reason}");
    }
    assert_eq!(port.admin("DELETE", "/v1/nodes/gpu-1").await.status, StatusCode::NO_CONTENT);
    assert!(port.join("gpu-1", &join).await.is_ok(), "the name is free");
    assert_eq!(port.admin("DELETE", "/v1/nodes/nobody").await.status, StatusCode::NOT_FOUND);
    assert_eq!(port.admin("POST", "/v1/nodes/nobody/revoke").await.status, StatusCode::NOT_FOUND);
    let up = port.admin("DELETE", "/v1/nodes/node-1").await;
    assert!(up.status == StatusCode::CONFLICT && up.body.contains("--force"), "{}", up.body);
    assert_eq!(port.admin("DELETE", "/v1/nodes/node-1?force=true").await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_revoked_node_is_cut_off_at_once_and_stays_out() {
    let port = Port::open().await;
    let (key, joined) = port.join("gpu-1", &port.world.join).await.unwrap();
    let mut connection = port.connect(&key, &joined).await.unwrap_or_else(|status| panic!("{status}"));
    assert!(matches!(connection.next().await, Some(Some(ToAgent::Welcome { .. }))));
    let revoked = port.admin("POST", "/v1/nodes/gpu-1/revoke").await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT, "{}", revoked.body);
    let over = tokio::time::timeout(Duration::from_secs(10), connection.next()).await;
    assert!(matches!(over, Ok(None | Some(None))), "the connection is closed, not left to time out");
    assert_eq!(port.connect(&key, &joined).await.err(), Some(403));
    let (status, reason) = port.renew("gpu-1", &key, &joined).await.unwrap_err();
    assert_eq!(status, 403);
    assert!(reason.contains("revoked") && reason.contains("yard nodes rm gpu-1"), "{reason}");
    assert_eq!(port.join("gpu-1", &port.world.join).await.unwrap_err().0, 409, "the name stays taken");
}

/// A certificate that was signed here opens no more connections than anybody has, revoked or not.
#[tokio::test]
async fn a_certificate_alone_makes_a_connection_no_less_a_guest() {
    for revoked in [false, true] {
        let port = Port::with(ListenLimits { guests: 3, ..ListenLimits::default() }).await;
        let (key, joined) = port.join("gpu-1", &port.world.join).await.unwrap();
        if revoked {
            assert_eq!(port.admin("POST", "/v1/nodes/gpu-1/revoke").await.status, StatusCode::NO_CONTENT);
        }
        let mut open = Vec::new();
        for _ in 0..8 {
            let mut stream = port.tls(client_of(&key, &joined)).await.unwrap();
            stream.write_all(b"GET /v1/agent HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
            stream.read_u8().await.expect("it is answered");
            open.push(stream);
        }
        for stream in open.iter_mut().take(5) {
            let mut rest = Vec::new();
            let closed = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await;
            assert!(closed.is_ok(), "the oldest leave");
        }
    }
}

#[tokio::test]
async fn a_node_has_only_so_many_connections() {
    let port = Port::open().await;
    let (key, joined) = port.join("gpu-1", &port.world.join).await.unwrap();
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(port.connect(&key, &joined).await.unwrap_or_else(|status| panic!("{status}")));
    }
    assert_eq!(port.connect(&key, &joined).await.err(), Some(429));
    open.pop();
    let again = async {
        while port.connect(&key, &joined).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again).await.expect("places fall free");
}

#[tokio::test]
async fn a_node_renews_and_a_token_lets_in_only_so_often() {
    let port = Port::open().await;
    let (key, joined) = port.join("gpu-1", &port.world.join).await.unwrap();
    let mut renewed = Vec::new();
    for _ in 0..10 {
        renewed.push(port.renew("gpu-1", &key, &joined).await.map(drop).map_err(|(status, _)| status));
    }
    assert_eq!(renewed[..3], [Ok(()), Ok(()), Err(429)]);
    let good = renewed.iter().filter(|result| result.is_ok()).count();
    assert!(good < 5, "{renewed:?}");
    let other = port.token(r#"{"scope":"join"}"#).await;
    let (key, joined) = port.join("gpu-2", &other.secret).await.unwrap();
    assert!(port.renew("gpu-2", &key, &joined).await.is_ok(), "another node is not held up");

    let many = port.token(r#"{"scope":"join","nodes":["gpu-*"],"uses":1000}"#).await;
    let body = format!(r#"{{"name":"gpu-1","csr":"","token":"{}"}}"#, many.secret);
    let mut told = port.world.call("POST", "/v1/join", None, &body).await;
    for _ in 0..2_000 {
        told = port.world.call("POST", "/v1/join", None, &body).await;
        if told.status != StatusCode::CONFLICT {
            break;
        }
    }
    assert_eq!(told.status, StatusCode::TOO_MANY_REQUESTS, "{}", told.body);
    assert!(told.headers.contains_key("retry-after") && told.body.contains("one token"), "{}", told.body);
}

#[tokio::test]
async fn an_old_certificate_is_void_once_the_new_one_has_connected() {
    let port = Port::open().await;
    let (key, joined) = port.join("gpu-1", &port.world.join).await.unwrap();
    let (next_key, csr) = ca::request("gpu-1").unwrap();
    let request = JoinRequest { name: "gpu-1".into(), token: None, csr };
    let renewed = enroll(&port.address, client_of(&key, &joined), &request).await.unwrap();
    assert!(port.connect(&key, &joined).await.is_ok(), "it may not have got the new one");
    let mut connection = port.connect(&next_key, &renewed).await.unwrap_or_else(|status| panic!("{status}"));
    assert!(matches!(connection.next().await, Some(Some(ToAgent::Welcome { .. }))));
    assert_eq!(port.connect(&key, &joined).await.err(), Some(403));
    assert_eq!(port.renew("gpu-1", &key, &joined).await.unwrap_err().0, 403);
    assert!(port.renew("gpu-1", &next_key, &renewed).await.is_ok());
}
