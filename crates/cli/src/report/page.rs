//! The document: the template with its style, its script and its data put in.

use super::view::Page;

const TEMPLATE: &str = include_str!("report.html");
const STYLE: &str = include_str!("report.css");
/// The script, one file a chart, in the order in which each uses those before it.
const SCRIPT: &str = concat!(
    include_str!("script/data.js"),
    "\n",
    include_str!("script/elements.js"),
    "\n",
    include_str!("script/units.js"),
    "\n",
    include_str!("script/scales.js"),
    "\n",
    include_str!("script/policies.js"),
    "\n",
    include_str!("script/parts.js"),
    "\n",
    include_str!("script/header.js"),
    "\n",
    include_str!("script/summary.js"),
    "\n",
    include_str!("script/distribution.js"),
    "\n",
    include_str!("script/timeline.js"),
    "\n",
    include_str!("script/prices.js"),
    "\n",
    include_str!("script/followed.js"),
    "\n",
    include_str!("script/sizes.js"),
    "\n",
    include_str!("script/gantt.js"),
    "\n",
    include_str!("script/longest.js"),
    "\n",
    include_str!("script/window.js"),
    "\n",
    include_str!("script/main.js"),
    "\n",
);

/// The page with everything inline.
pub(super) fn document(title: &str, page: &Page<'_>) -> String {
    let data = serde_json::to_string(page).expect("the page's data has only string keys");
    let (title, data) = (escape_html(title), escape_json(&data));
    fill(TEMPLATE, &[("title", &title), ("style", STYLE), ("script", SCRIPT), ("data", &data)])
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
            let part = part.replace("http://www.w3.org/2000/svg", "");
            assert!(
                ["http://", "https://", "@import", "url(", "innerHTML"].iter().all(|bad| !part.contains(bad))
            );
        }
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
    }
}
