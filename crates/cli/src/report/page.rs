//! The document: the template with its style, its script and its data put in.

use sha2::{Digest, Sha256};

use super::view::Page;

const TEMPLATE: &str = include_str!("report.html");
/// The dashboard's style, and its parts built for this page: `make web` makes both.
const STYLE: &str = include_str!("../../../../web/dist/assets/app.css");
const SCRIPT: &str = include_str!("../../../../web/dist/assets/report.js");

/// The page with everything inline. Its policy lets nothing be loaded, and no script and no style but these two be
/// used, whatever text the data brings.
pub(super) fn document(title: &str, page: &Page<'_>) -> String {
    let data = serde_json::to_string(page).expect("the page's data has only string keys");
    let (title, data) = (escape_html(title), escape_json(&data));
    let (script_hash, style_hash) = (source_hash(SCRIPT), source_hash(STYLE));
    let hashes = [("script-hash", script_hash.as_str()), ("style-hash", &style_hash)];
    let texts = [("title", title.as_str()), ("style", STYLE), ("script", SCRIPT), ("data", &data)];
    fill(TEMPLATE, &[hashes.as_slice(), &texts].concat())
}

/// What a content policy calls an inline script or style by.
fn source_hash(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text)))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            out.push(if place <= three.len() { digit as char } else { '=' });
        }
    }
    out
}

/// Replaces each `{{name}}` of the template in one pass, so that what is put in is never searched: a job
/// may be called `{{script}}`.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + values.iter().map(|(_, v)| v.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, tail) = after.split_once("}}").expect("the template closes its placeholders");
        let (_, value) = values.iter().find(|(known, _)| *known == name).expect("a known placeholder");
        out.push_str(before);
        out.push_str(value);
        rest = tail;
    }
    out + rest
}

/// Makes JSON safe inside a script element. These characters occur only within strings there, where an
/// escape means the same: without `<` no text can close the element or open a comment, and the two line
/// separators are not white space to every parser.
fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            _ => out.push(c),
        }
    }
    out
}

/// Makes text safe as the content of an element.
fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_not_searched() {
        assert_eq!(fill("a{{x}}b{{y}}c", &[("x", "{{y}}"), ("y", "2")]), "a{{y}}b2c");
    }

    #[test]
    fn escaped_json_means_the_same() {
        let text = "</script><!-- & \u{2028}\u{2029} \\ \" é";
        let escaped = escape_json(&serde_json::to_string(text).unwrap());
        assert!(!escaped.contains(['<', '>', '&', '\u{2028}', '\u{2029}']));
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }

    #[test]
    fn the_page_fetches_nothing() {
        for part in [TEMPLATE, STYLE, SCRIPT] {
            let part = part.replace("http://www.w3.org/", ""); // names of namespaces
            assert!(["http://", "https://", "@import", "url("].iter().all(|bad| !part.contains(bad)));
        }
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--") && !STYLE.contains("</style"));
        assert!(["fetch(", "XMLHttpRequest", "import("].iter().all(|bad| !SCRIPT.contains(bad)));
    }

    #[test]
    fn hashes_are_written_as_policies_want_them() {
        let texts = ["", "M", "Ma", "Man", "light work."].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "TQ==", "TWE=", "TWFu", "bGlnaHQgd29yay4="]);
        assert_eq!(source_hash("abc"), "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    }
}
