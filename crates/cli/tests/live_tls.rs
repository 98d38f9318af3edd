//! Encrypted connections: the command line trusts the authority that `server.json` names, and nobody else.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use common::{Answer, Dir};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// An authority of our own.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("it can be signed").pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    /// Starts a server with a certificate of this authority, which answers once.
    fn serve(&self) -> String {
        let key = KeyPair::generate().expect("a key can be made");
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("it is a name");
        let signed = params.signed_by(&key, &self.issuer).expect("it can be signed");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let versions =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .expect("the provider has them");
        let config = versions.with_no_client_auth().with_single_cert(vec![signed.der().clone()], key);
        let config = Arc::new(config.expect("key and certificate match"));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("https://{}", listener.local_addr().expect("it has an address"));
        std::thread::spawn(move || listener.accept().map(|(stream, _)| answer(config, stream)));
        url
    }
}

/// Answers one request; a client that does not trust us hangs up, and that is fine.
fn answer(config: Arc<ServerConfig>, stream: TcpStream) {
    let connection = ServerConnection::new(config).expect("the settings are sound");
    let mut stream = StreamOwned::new(connection, stream);
    let mut asked = Vec::new();
    let mut byte = [0];
    while !asked.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
        asked.push(byte[0]);
    }
    let body = r#"{"nodes":[]}"#;
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

/// Asks a server, with a folder that names it and an authority.
fn ask(url: &str, ca: Option<&str>) -> Answer {
    let dir = Dir::new();
    dir.make_folder(".yard");
    dir.write(".yard/server.json", serde_json::json!({"url": url, "ca": ca}).to_string());
    dir.write(".yard/token", "yard_secret");
    let mut command = dir.command(&["nodes", "-o", "json"]);
    command.env_remove("YARD_DATA").env_remove("YARD_SERVER").env_remove("YARD_TOKEN");
    Answer::of(command.output().expect("the binary can be run"))
}

#[test]
fn the_named_authority_is_trusted() {
    let authority = Authority::new();
    let answer = ask(&authority.serve(), Some(&authority.pem)).json();
    assert_eq!(answer["nodes"], serde_json::json!([]));
}

#[test]
fn no_other_authority_is() {
    let (ours, other) = (Authority::new(), Authority::new());
    for ca in [Some(other.pem.as_str()), None] {
        let answer = ask(&ours.serve(), ca);
        assert_eq!((answer.code, answer.out.as_str()), (Some(2), ""), "{}", answer.err);
        assert!(answer.err.contains("certificate") && answer.err.lines().count() == 1, "{}", answer.err);
    }
}

#[test]
fn a_damaged_authority_is_named() {
    let answer = ask("https://127.0.0.1:1", Some("nonsense"));
    assert!(answer.code == Some(2) && answer.err.contains("server.json"), "{}", answer.err);
}
