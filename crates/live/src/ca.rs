//! The cluster's own certificate authority: made at the first start, it signs the server's certificate at each start
//! and those of agents when they join or renew. What an agent asks for in its request is ignored but for its key:
//! the name, the use and the time are ours to say.

use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::auth::hex;

/// The name that every server certificate of ours bears, whatever address it is reached at.
pub const SERVER_NAME: &str = "server.yard.internal";

const DAY_US: u64 = 86_400_000_000;
const AUTHORITY_DAYS: u64 = 20 * 365;
const SERVER_DAYS: u64 = 2 * 365;
/// How long an agent's certificate is good.
pub const AGENT_DAYS: u64 = 90;
/// Clocks of machines differ: a certificate is good from a little before it was made.
const SKEW_US: u64 = 3_600_000_000;

/// Why the authority cannot do what it should.
#[derive(Debug, Error)]
pub enum CaError {
    /// A file.
    #[error("{path}: {source}; the certificate authority needs to read and write there")]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        source: std::io::Error,
    },
    /// A file's content.
    #[error(
        "{path} holds no usable {what}; restore it from a copy, or remove the folder and join all agents again"
    )]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What should be in it.
        what: &'static str,
    },
    /// A request to sign.
    #[error("the certificate request cannot be signed ({0}); let the agent make a new one")]
    Request(rcgen::Error),
    /// A name.
    #[error("{0:?} cannot be a name in a certificate; use letters, digits, dots and dashes")]
    Name(String),
    /// The rest.
    #[error("a certificate could not be made: {0}")]
    Make(#[from] rcgen::Error),
}

/// The authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
}

/// A certificate with its key.
#[derive(Debug)]
pub struct Identity {
    /// The certificate, then that of the authority.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key.
    pub key: PrivateKeyDer<'static>,
}

impl Authority {
    /// Opens the authority in a folder; makes it where there is none.
    pub fn open(folder: &Path, now_us: u64) -> Result<Authority, CaError> {
        let (certificate, key) = (folder.join("ca.pem"), folder.join("ca.key"));
        if !certificate.exists() {
            make(folder, &certificate, &key, now_us)?;
        }
        let pem = read(&certificate)?;
        let damaged = |path: &Path, what| CaError::Damaged { path: path.to_owned(), what };
        let der = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| damaged(&certificate, "certificate"))?;
        let pair = KeyPair::from_pem(&read(&key)?).map_err(|_| damaged(&key, "key"))?;
        let issuer =
            Issuer::from_ca_cert_der(&der, pair).map_err(|_| damaged(&certificate, "certificate"))?;
        Ok(Authority { issuer, certificate: der, pem })
    }

    /// Its certificate, for whoever is to trust it.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Its certificate.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// What join tokens carry, so that an agent trusts nobody else.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.certificate)
    }

    /// A new certificate for the server, good for the names it may be reached at.
    pub fn server(&self, names: &[String], now_us: u64) -> Result<Identity, CaError> {
        let mut params = params(SERVER_NAME, SERVER_DAYS, now_us);
        params.subject_alt_names = sans(names)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let signed = params.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok(Identity { chain: vec![signed.der().clone(), self.certificate.clone()], key })
    }

    /// Signs an agent's request (PEM) for a node's name; the certificate (PEM).
    pub fn sign(&self, request: &str, node: &str, now_us: u64) -> Result<String, CaError> {
        let mut request = CertificateSigningRequestParams::from_pem(request).map_err(CaError::Request)?;
        let mut params = params(node, AGENT_DAYS, now_us);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        request.params = params;
        Ok(request.signed_by(&self.issuer).map_err(CaError::Request)?.pem())
    }
}

/// SHA-256 of a certificate, in hexadecimal.
pub fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    hex(&Sha256::digest(certificate))
}

/// The node that a certificate speaks for.
pub fn node_of(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let name = parsed.subject().iter_common_name().next()?.as_str().ok()?;
    Some(name.to_owned())
}

/// An agent's new key and its request for a certificate, both PEM.
pub fn request(node: &str) -> Result<(String, String), CaError> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name = named(node);
    Ok((key.serialize_pem(), params.serialize_request(&key)?.pem()?))
}

/// Whether a certificate (PEM) should be renewed: a third of its time is left, or it cannot be read.
pub fn renewal_due(certificate: &str, now_us: u64) -> bool {
    let due = |der: CertificateDer<'_>| {
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).ok()?;
        let (from, to) = (parsed.validity().not_before.timestamp(), parsed.validity().not_after.timestamp());
        Some((now_us / 1_000_000) as i64 > to - (to - from) / 3)
    };
    CertificateDer::from_pem_slice(certificate.as_bytes()).ok().and_then(due).unwrap_or(true)
}

/// Writes a file that only its owner can read, whole or not at all.
pub fn write_private(path: &Path, content: &str) -> Result<(), CaError> {
    let error = |source| CaError::File { path: path.to_owned(), source };
    let part = path.with_extension("part");
    let _ = std::fs::remove_file(&part);
    let open = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
    let mut file = open.map_err(error)?;
    file.write_all(content.as_bytes()).and_then(|()| file.sync_all()).map_err(error)?;
    std::fs::rename(&part, path).map_err(error)
}

/// The key first: a certificate without its key would be an authority that cannot sign.
fn make(folder: &Path, certificate: &Path, key: &Path, now_us: u64) -> Result<(), CaError> {
    let folders = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    folders.map_err(|source| CaError::File { path: folder.to_owned(), source })?;
    let pair = KeyPair::generate()?;
    let mut params = params("Switchyard cluster authority", AUTHORITY_DAYS, now_us);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let signed = params.self_signed(&pair)?;
    write_private(key, &pair.serialize_pem())?;
    write_private(certificate, &signed.pem())
}

fn params(name: &str, days: u64, now_us: u64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(name);
    params.not_before = (UNIX_EPOCH + Duration::from_micros(now_us.saturating_sub(SKEW_US))).into();
    params.not_after = (UNIX_EPOCH + Duration::from_micros(now_us + days * DAY_US)).into();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn sans(names: &[String]) -> Result<Vec<SanType>, CaError> {
    let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    let ours = [SERVER_NAME, "localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut all: Vec<String> = ours.into_iter().chain(host).chain(names.iter().cloned()).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(san).collect()
}

fn san(name: String) -> Result<SanType, CaError> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    Ok(SanType::DnsName(name.as_str().try_into().map_err(|_| CaError::Name(name.clone()))?))
}

fn read(path: &Path) -> Result<String, CaError> {
    std::fs::read_to_string(path).map_err(|source| CaError::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::clock::now_us;
    use crate::scratch::Scratch;

    #[test]
    fn an_authority_is_made_once_and_its_files_are_private() {
        let scratch = Scratch::new();
        let folder = scratch.path().join("ca");
        let first = Authority::open(&folder, now_us()).unwrap();
        let second = Authority::open(&folder, now_us()).unwrap();
        assert_eq!(first.fingerprint(), second.fingerprint());
        for file in std::fs::read_dir(&folder).unwrap() {
            assert_eq!(file.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        std::fs::write(folder.join("ca.key"), "nonsense").unwrap();
        let error = Authority::open(&folder, now_us()).err().unwrap().to_string();
        assert!(error.contains("ca.key holds no usable key"), "{error}");
    }

    #[test]
    fn what_an_agent_asks_for_is_ignored_but_for_its_key() {
        let scratch = Scratch::new();
        let authority = Authority::open(scratch.path(), now_us()).unwrap();
        let mut greedy = CertificateParams::new(vec![SERVER_NAME.to_owned()]).unwrap();
        greedy.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        greedy.distinguished_name = named("root");
        let key = KeyPair::generate().unwrap();
        let request = greedy.serialize_request(&key).unwrap().pem().unwrap();
        let signed = authority.sign(&request, "node-1", now_us()).unwrap();
        let der = CertificateDer::from_pem_slice(signed.as_bytes()).unwrap();
        assert_eq!(node_of(&der).as_deref(), Some("node-1"));
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).unwrap();
        assert!(!parsed.is_ca());
        assert!(parsed.subject_alternative_name().unwrap().is_none());
        let usage = parsed.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.client_auth && !usage.server_auth);
    }

    #[test]
    fn a_certificate_is_renewed_when_a_third_of_its_time_is_left() {
        let scratch = Scratch::new();
        let authority = Authority::open(scratch.path(), now_us()).unwrap();
        let (_, request) = request("node-1").unwrap();
        let signed = authority.sign(&request, "node-1", now_us()).unwrap();
        assert!(!renewal_due(&signed, now_us() + 50 * DAY_US));
        assert!(renewal_due(&signed, now_us() + 70 * DAY_US));
        assert!(renewal_due("nonsense", now_us()));
        assert!(authority.sign("nonsense", "node-1", now_us()).is_err());
    }
}
