//! The API over HTTP: one resource a file. Handlers check who asks, ask the driver or the history, and answer with
//! the types of `views`. What somebody may not see does not exist for them: others' jobs are 404, never 403.

mod agent;
mod audit;
mod document;
mod error;
mod events;
mod explain;
mod extract;
mod grants;
mod health;
mod history;
mod job_list;
mod jobs;
mod join;
mod layers;
mod logs;
mod me;
mod names;
mod nodes;
mod pace;
mod queue;
mod replay;
mod room;
mod secrets;
mod steer;
mod tokens;
mod trace;
mod watch;
mod web;
mod what_if;

#[cfg(test)]
mod tests;

use std::sync::{Arc, PoisonError, RwLockReadGuard};
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::{Extension, Router, middleware};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use error::ApiProblem;
pub use history::{EventFilter, HistoryQuery, JobFilter, TraceFilter};
pub use what_if::Asking;

use crate::auth::Tokens;
use crate::board::Board;
use crate::ca::Authority;
use crate::handle::{Handle, Refusal};
use crate::metrics::Metrics;
use crate::quota::Quota;
use crate::replay::Replayer;
use crate::secrets::Secrets;

/// The largest body of a request.
pub const BODY_MAX: usize = 1 << 20;

const KEEP_USES: Duration = Duration::from_secs(60);

/// What handlers need.
pub struct ApiSite {
    /// The driver.
    pub handle: Handle,
    /// What is over.
    pub history: Arc<dyn HistoryQuery>,
    /// Who may do what.
    pub tokens: Arc<Tokens>,
    /// What users keep for their jobs.
    pub secrets: Arc<Secrets>,
    /// Who signs agents' certificates.
    pub authority: Arc<Authority>,
    /// What is measured.
    pub metrics: Metrics,
    /// How long the scheduling loop may be silent before the server says that it is not ready.
    pub stall: Duration,
    /// How long a request may take until its answer begins.
    pub patience: Duration,
    /// Whose questions are being answered.
    pub asking: Asking,
    /// How much may be under way at once.
    pub quota: Quota,
    /// Who runs the past again.
    pub replayer: Arc<dyn Replayer>,
    /// Ends streams that would go on for ever.
    pub stop: CancellationToken,
}

impl ApiSite {
    /// What there is to see.
    pub(crate) fn board(&self) -> RwLockReadGuard<'_, Board> {
        self.handle.board.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the history, on a thread that may wait for the disk.
    pub(crate) async fn past<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn HistoryQuery) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let _turn = self.quota.read().await;
        let history = self.history.clone();
        let answer = tokio::task::spawn_blocking(move || ask(history.as_ref())).await;
        answer.unwrap_or_else(|_| {
            Err(Refusal::Unavailable("the history could not be read; see the server's log".into()))
        })
    }
}

/// Keeps when tokens were last used, once a minute and at the end. To be run beside the server.
pub async fn housekeeping(site: Arc<ApiSite>) {
    loop {
        let stopped = site.stop.run_until_cancelled(tokio::time::sleep(KEEP_USES)).await.is_none();
        let tokens = site.tokens.clone();
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || tokens.flush()).await {
            tracing::warn!(%error, "when tokens were last used could not be kept");
        }
        if stopped {
            return;
        }
    }
}

/// All routes.
pub fn router(site: Arc<ApiSite>) -> Router {
    let (router, document) = routes().split_for_parts();
    router
        .fallback(error::no_such_path)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(Extension(document::DocumentText::new(&document)))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(middleware::from_fn_with_state(site.clone(), layers::patience))
        .layer(middleware::from_fn_with_state(site.clone(), room::make_room))
        .layer(CatchPanicLayer::custom(error::panicked))
        .layer(middleware::from_fn_with_state(site.clone(), layers::record))
        .with_state(site)
}

/// Each line is served and documented at once.
fn routes() -> OpenApiRouter<Arc<ApiSite>> {
    OpenApiRouter::with_openapi(document::empty())
        .routes(routes!(jobs::submit, job_list::list))
        .routes(routes!(jobs::show))
        .routes(routes!(jobs::cancel))
        .routes(routes!(steer::hold))
        .routes(routes!(steer::release))
        .routes(routes!(steer::requeue))
        .routes(routes!(steer::edit))
        .routes(routes!(explain::explain))
        .routes(routes!(pace::progress))
        .routes(routes!(logs::logs))
        .routes(routes!(what_if::what_if))
        .routes(routes!(replay::replay))
        .routes(routes!(nodes::list))
        .routes(routes!(nodes::drain))
        .routes(routes!(nodes::drain_some))
        .routes(routes!(nodes::resume))
        .routes(routes!(nodes::revoke))
        .routes(routes!(nodes::remove))
        .routes(routes!(events::events))
        .routes(routes!(watch::watch))
        .routes(routes!(me::me))
        .routes(routes!(queue::queue))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(audit::list))
        .routes(routes!(secrets::list))
        .routes(routes!(secrets::set, secrets::remove))
        .routes(routes!(trace::trace))
        .routes(routes!(health::status))
        .routes(routes!(join::join))
        .routes(routes!(agent::connect))
        .routes(routes!(health::metrics))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(web::page))
        .routes(routes!(web::asset))
        .routes(routes!(document::document))
}
