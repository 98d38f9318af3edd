//! Which server to ask, and as whom. What is said on the command line comes before the environment (an address in
//! `YARD_SERVER`, then a server's data folder in `YARD_DATA`), that before the nearest `.yard` folder, that before the
//! user's own settings. A token found in a folder is only ever sent to the
//! server that the same folder names.

use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

/// How to come by a token.
pub(super) const TOKEN_REMEDY: &str =
    "ask an administrator for one (yard token create) and set YARD_TOKEN or --token-file";

/// Which server to ask.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct ServerArgs {
    /// The server [default: $YARD_SERVER, or server.json in $YARD_DATA, in the nearest .yard or in ~/.config/yard]
    #[arg(long, value_name = "URL", help_heading = "Server")]
    pub(crate) server: Option<String>,
    /// File that holds the token [default: $YARD_TOKEN, or the file token next to server.json]
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(crate) token_file: Option<PathBuf>,
}

/// A server, and where its address and the token come from.
pub(crate) struct Place {
    pub(super) url: String,
    pub(super) url_from: String,
    pub(super) ca: Option<String>,
    pub(super) token: Option<String>,
    pub(super) token_from: String,
}

/// `server.json`.
#[derive(Deserialize)]
struct NamedServer {
    url: String,
    ca: Option<String>,
}

/// What surrounds the command: where it looks.
struct Surroundings<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    folders: Vec<PathBuf>,
}

impl Place {
    /// Looks for a server.
    pub(crate) fn find(args: &ServerArgs) -> anyhow::Result<Place> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let here = std::env::current_dir().unwrap_or_default();
        let above = here.ancestors().map(|folder| folder.join(".yard"));
        let config = variable("XDG_CONFIG_HOME").map(PathBuf::from);
        let config = config.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".config")));
        let folders = above.chain(config.map(|config| config.join("yard"))).filter(|folder| is_ours(folder));
        Place::search(args, &Surroundings { variable: &variable, folders: folders.collect() })
    }

    fn search(args: &ServerArgs, around: &Surroundings<'_>) -> anyhow::Result<Place> {
        let data = (around.variable)("YARD_DATA").map(PathBuf::from);
        if let Some(data) = &data {
            ensure!(
                data.join("server.json").is_file(),
                "YARD_DATA is {}, which holds no server.json: no server has used that folder; start one with: \
                 yard up --data {}",
                data.display(),
                data.display()
            );
        }
        let found = data
            .as_ref()
            .or_else(|| around.folders.iter().find(|folder| folder.join("server.json").is_file()));
        let named = found.map(|folder| read_named(folder)).transpose()?;
        let said = args.server.clone().map(|url| (url, "--server".to_owned()));
        let said =
            said.or_else(|| (around.variable)("YARD_SERVER").map(|url| (url, "YARD_SERVER".to_owned())));
        let beside = found.map(|folder| folder.join("server.json").display().to_string());
        let from_folder = named.as_ref().map(|named| named.url.clone()).zip(beside);
        let Some((url, url_from)) = said.or(from_folder) else {
            bail!(
                "no server is known: there is no .yard/server.json here or above, and neither --server, YARD_SERVER nor \
                 YARD_DATA is given; start one with: yard up, or name the data folder of one that runs: export \
                 YARD_DATA=DIR"
            );
        };
        let url = checked_url(&url).with_context(|| format!("the server's address, from {url_from}"))?;
        let folder = found.filter(|_| named.as_ref().is_some_and(|named| same(&named.url, &url)));
        let ca = named.filter(|_| folder.is_some()).and_then(|named| named.ca);
        let (token, token_from) = find_token(args, around, folder.map(PathBuf::as_path))?;
        Ok(Place { url, url_from, ca, token, token_from })
    }
}

/// Whether nobody else could have put the folder there for us to find.
fn is_ours(folder: &Path) -> bool {
    let owner = std::fs::metadata(folder).map(|about| about.uid());
    owner.is_ok_and(|owner| owner == 0 || owner == nix::unistd::geteuid().as_raw())
}

fn read_named(folder: &Path) -> anyhow::Result<NamedServer> {
    let path = folder.join("server.json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} does not name a server", path.display()))
}

fn same(a: &str, b: &str) -> bool {
    a.trim_end_matches('/') == b.trim_end_matches('/')
}

/// An address without a slash at its end. What is not encrypted stays on this machine.
fn checked_url(url: &str) -> anyhow::Result<String> {
    let url = url.trim().trim_end_matches('/');
    let plain = url.strip_prefix("http://");
    let Some(rest) = plain.or_else(|| url.strip_prefix("https://")) else {
        bail!("{url:?} does not begin with http:// or https://");
    };
    let sound = !rest.is_empty()
        && !rest.contains(|c: char| c.is_control() || c.is_whitespace() || "/?#@".contains(c));
    ensure!(sound, "{url:?} is not an address such as https://host:7411");
    ensure!(
        plain.is_none_or(is_loopback),
        "{url} would send the token unencrypted; use https:// for other machines"
    );
    Ok(url.to_owned())
}

fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn find_token(
    args: &ServerArgs,
    around: &Surroundings<'_>,
    folder: Option<&Path>,
) -> anyhow::Result<(Option<String>, String)> {
    if let Some(path) = &args.token_file {
        return Ok((Some(read_token(path)?), path.display().to_string()));
    }
    if let Some(token) = (around.variable)("YARD_TOKEN") {
        return Ok((Some(checked_token(&token, "YARD_TOKEN")?), "YARD_TOKEN".into()));
    }
    match folder.map(|folder| folder.join("token")).filter(|path| path.is_file()) {
        Some(path) => Ok((Some(read_token(&path)?), path.display().to_string())),
        None => Ok((None, String::new())),
    }
}

fn read_token(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the token in {}", path.display()))?;
    checked_token(&text, &path.display().to_string())
}

/// A token goes into a header; what is said of a wrong one must not show it.
fn checked_token(text: &str, from: &str) -> anyhow::Result<String> {
    let token = text.trim();
    let sound = !token.is_empty() && token.len() <= 512 && token.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(sound, "{from} does not hold a token: one line such as yard_…");
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("yard-place-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("server.json"), r#"{"url":"http://127.0.0.1:7411/","ca":null}"#)
                .unwrap();
            std::fs::write(path.join("token"), "yard_folder\n").unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn search(args: &ServerArgs, variables: &[(&str, &str)], folders: &[&Folder]) -> anyhow::Result<Place> {
        let variable =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string());
        let folders = folders.iter().map(|folder| folder.0.clone()).collect();
        Place::search(args, &Surroundings { variable: &variable, folders })
    }

    fn to(url: &str) -> ServerArgs {
        ServerArgs { server: Some(url.into()), token_file: None }
    }

    #[test]
    fn the_nearest_folder_names_server_and_token() {
        let (near, far) = (Folder::new("near"), Folder::new("far"));
        let place = search(&ServerArgs::default(), &[], &[&near, &far]).unwrap();
        assert_eq!(
            (place.url.as_str(), place.token.as_deref()),
            ("http://127.0.0.1:7411", Some("yard_folder"))
        );
        assert!(place.url_from.contains("near") && place.token_from.contains("near"));
    }

    #[test]
    fn a_folders_token_goes_to_its_own_server_only() {
        let folder = Folder::new("own");
        let other = search(&to("https://other:7411"), &[], &[&folder]).unwrap();
        assert_eq!((other.url.as_str(), other.token), ("https://other:7411", None));
        let own = search(&to("http://127.0.0.1:7411"), &[], &[&folder]).unwrap();
        assert_eq!(own.token.as_deref(), Some("yard_folder"));
    }

    #[test]
    fn flags_come_before_variables_before_folders() {
        let folder = Folder::new("order");
        let variables = [("YARD_SERVER", "https://variable"), ("YARD_TOKEN", "yard_variable")];
        let place = search(&ServerArgs::default(), &variables, &[&folder]).unwrap();
        assert_eq!((place.url.as_str(), place.token.as_deref()), ("https://variable", Some("yard_variable")));
        let args =
            ServerArgs { server: Some("https://flag".into()), token_file: Some(folder.0.join("token")) };
        let place = search(&args, &variables, &[&folder]).unwrap();
        assert_eq!((place.url.as_str(), place.token.as_deref()), ("https://flag", Some("yard_folder")));
    }

    #[test]
    fn a_data_folder_names_server_and_token_before_the_nearest_one() {
        let (near, data) = (Folder::new("closer"), Folder::new("data"));
        let text = data.0.display().to_string();
        let place = search(&ServerArgs::default(), &[("YARD_DATA", &text)], &[&near]).unwrap();
        assert!(place.url_from.contains("data") && place.token_from.contains("data"), "{}", place.url_from);
        let none = [("YARD_DATA", "/nowhere")];
        let said =
            format!("{:#}", search(&ServerArgs::default(), &none, &[&near]).err().expect("it is refused"));
        assert!(said.contains("yard up --data /nowhere"), "{said}");
    }

    #[test]
    fn addresses_that_would_show_the_token_are_refused() {
        let refused = |url: &str| format!("{:#}", search(&to(url), &[], &[]).err().expect("it is refused"));
        assert!(refused("http://example.org:7411").contains("unencrypted"));
        assert!(refused("http://127.0.0.1.example.org").contains("unencrypted"));
        assert!(refused("example.org").contains("http:// or https://"));
        assert!(refused("https://user@host").contains("is not an address"));
        for fine in ["http://localhost:1", "http://[::1]:1", "http://127.0.0.2", "https://example.org:7411/"]
        {
            assert!(search(&to(fine), &[], &[]).is_ok(), "{fine}");
        }
    }

    #[test]
    fn a_wrong_token_is_not_shown() {
        let variables = [("YARD_SERVER", "https://x"), ("YARD_TOKEN", "two words\nand lines")];
        let said =
            format!("{:#}", search(&ServerArgs::default(), &variables, &[]).err().expect("it is refused"));
        assert!(said.contains("YARD_TOKEN") && !said.contains("words"), "{said}");
    }

    #[test]
    fn where_nothing_is_known_the_remedy_is() {
        let said = format!("{:#}", search(&ServerArgs::default(), &[], &[]).err().expect("it is refused"));
        assert!(said.contains("yard up"), "{said}");
    }
}
