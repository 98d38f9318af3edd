//! Who may do what: users, tokens, secrets, certificates, and the audit trail.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use yard_core::job::Claim;

use crate::entitlements::Entitlements;
use crate::wire::SecretValue;

/// Who asks, as the server sees them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MeView {
    /// Who the token speaks for.
    pub user: String,
    /// `read, submit` or `admin`.
    pub scope: String,
    /// What its jobs may ask for; none: there is no limit.
    #[serde(default)]
    pub limits: Option<Entitlements>,
}

/// A token as people see it; never the secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenView {
    /// Its public number.
    pub id: String,
    /// Who it speaks for.
    pub user: String,
    /// `read, submit, admin` or `join`.
    pub scope: String,
    /// When it was made.
    pub created_at: f64,
    /// When it ends.
    pub expires_at: Option<f64>,
    /// Whether it was revoked.
    pub revoked: bool,
    /// When it was last used.
    #[serde(default)]
    pub last_used_at: Option<f64>,
    /// What its user's jobs may ask for; none: there is no limit.
    #[serde(default)]
    pub limits: Option<Entitlements>,
    /// Of a join token: patterns of the names that machines may join under.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// Of a join token: how many machines may still join with it; none: there is no limit.
    #[serde(default)]
    pub uses_left: Option<u64>,
}

/// Tokens, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// The tokens.
    pub tokens: Vec<TokenView>,
}

/// A new token: the only time its secret is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// What it is.
    #[serde(flatten)]
    pub token: TokenView,
    /// The secret.
    pub secret: String,
}

/// What a new token should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// Who it speaks for; the one who asks where nothing is said.
    #[serde(default)]
    pub user: Option<String>,
    /// `read, submit, admin` or `join`.
    pub scope: String,
    /// How many seconds it is good. Where nothing is said: for ever, or a day for a join token, 30 days if it names nodes.
    #[serde(default)]
    pub expires_s: Option<f64>,
    /// Teams that jobs may count for; the first is the default.
    #[serde(default)]
    pub teams: Option<Vec<String>>,
    /// The largest weight of a job; 1 where nothing is said.
    #[serde(default)]
    pub weight_max: Option<f64>,
    /// The largest priority of a job; 0 where nothing is said.
    #[serde(default)]
    pub priority_max: Option<i32>,
    /// The classes that jobs may have; `ordinary` and `opportunistic` where nothing is said.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>)]
    pub classes: Option<Vec<Claim>>,
    /// Of a join token: patterns of the names that machines may join under, with `*` and `?`. Where nothing is said it
    /// is for one machine of any name.
    #[serde(default)]
    pub nodes: Option<Vec<String>>,
    /// Of a join token: how many machines may join with it.
    #[serde(default)]
    pub uses: Option<u64>,
}

/// A secret as its owner sees it; never the value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SecretView {
    /// Its name.
    pub name: String,
    /// How long the value is.
    pub bytes: u64,
    /// When it was set.
    pub set_at: f64,
}

/// One's own secrets, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SecretList {
    /// The secrets.
    pub secrets: Vec<SecretView>,
}

/// A secret's new value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretRequest {
    /// The value: 1 byte to 64 KiB of text.
    #[schema(value_type = String)]
    pub value: SecretValue,
}

/// A machine asks to become a node, or a node for a new certificate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// The node's name.
    pub name: String,
    /// A join token; none where the connection shows the node's certificate.
    pub token: Option<String>,
    /// The certificate request, PEM.
    pub csr: String,
}

/// What makes a machine a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JoinReply {
    /// The node's certificate, PEM.
    pub certificate: String,
    /// The authority's certificate, PEM.
    pub ca: String,
}

/// Something that somebody did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditView {
    /// Its number: later ones are higher.
    pub id: i64,
    /// When: seconds since 1970, UTC.
    pub time: f64,
    /// Who.
    pub user: String,
    /// What: a few words.
    pub what: String,
    /// To what.
    pub target: String,
    /// What came of it.
    pub outcome: String,
}

/// What people did, the newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// The entries.
    pub entries: Vec<AuditView>,
    /// Whether there are older ones, to be asked for with `before`.
    pub more: bool,
}
