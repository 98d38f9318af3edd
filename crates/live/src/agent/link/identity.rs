//! How a node proves who it is: a key and a certificate of the cluster's authority, got with a join token the first
//! time and renewed with itself from then on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use rustls::ClientConfig;

use super::{Barred, Dial};
use crate::auth::join_fingerprint;
use crate::ca::{renewal_due, request, write_private};
use crate::clock::now_us;
use crate::enroll::{EnrollError, enroll};
use crate::tls::{client, fingerprint_of_pem};
use crate::views::JoinRequest;

/// The files.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    authority: PathBuf,
}

impl Files {
    fn of(folder: &Path) -> Files {
        let file = |name: &str| folder.join(name);
        Files { certificate: file("node.pem"), key: file("node.key"), authority: file("ca.pem") }
    }

    /// How to connect with them.
    fn config(&self) -> anyhow::Result<Arc<ClientConfig>> {
        let fingerprint = fingerprint_of_pem(&read(&self.authority)?)?;
        Ok(client(&fingerprint, Some((&read(&self.certificate)?, &read(&self.key)?)))?)
    }
}

/// How to connect as this node: joins or renews first where that is due.
pub(super) async fn config(dial: &Dial, name: &str, folder: &Path) -> anyhow::Result<Arc<ClientConfig>> {
    let files = Files::of(folder);
    if !files.certificate.exists() {
        join(dial, name, folder, &files).await?;
    } else if renewal_due(&read(&files.certificate)?, now_us())
        && let Err(error) = renew(dial, name, &files).await
    {
        tracing::warn!(
            error = format!("{error:#}"),
            "the node's certificate was not renewed; it is tried again"
        );
    }
    files.config()
}

async fn join(dial: &Dial, name: &str, folder: &Path, files: &Files) -> anyhow::Result<()> {
    let Some(token) = &dial.join_token else {
        let reason = "this node has not joined yet: give a join token (yard token create --scope join)";
        bail!(Barred(reason.into()));
    };
    let Some(fingerprint) = join_fingerprint(token) else {
        bail!(Barred("this is not a join token; join tokens begin with yard-join_".into()));
    };
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let (key, csr) = request(name)?;
    let asked = JoinRequest { name: name.to_owned(), token: Some(token.trim().to_owned()), csr };
    let reply = enroll(&dial.address, client(fingerprint, None)?, &asked).await.map_err(refused)?;
    ensure!(
        fingerprint_of_pem(&reply.ca)? == fingerprint,
        "the server's certificate authority does not match \
    the join token"
    );
    write_private(&files.key, &key)?;
    write_private(&files.authority, &reply.ca)?;
    write_private(&files.certificate, &reply.certificate)?;
    Ok(())
}

/// A token or name that the server does not take will not be taken the next time either.
fn refused(error: EnrollError) -> anyhow::Error {
    match error {
        EnrollError::Refused { status: 400 | 401 | 403 | 409, reason } => Barred(reason).into(),
        other => other.into(),
    }
}

/// With a new key. The certificate is of no use without it, so it is written last; should that fail in between, the
/// node has to join again.
async fn renew(dial: &Dial, name: &str, files: &Files) -> anyhow::Result<()> {
    let (key, csr) = request(name)?;
    let asked = JoinRequest { name: name.to_owned(), token: None, csr };
    let reply = enroll(&dial.address, files.config()?, &asked).await?;
    write_private(&files.key, &key)?;
    write_private(&files.certificate, &reply.certificate)?;
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}
