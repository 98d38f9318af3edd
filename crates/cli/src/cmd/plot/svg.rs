//! Marks as SVG.

use std::fmt::Write as _;

use super::scene::{Anchor, Colour, HEIGHT, Mark, WIDTH};

pub(super) fn write(marks: &[Mark]) -> Vec<u8> {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}pt\" height=\"{HEIGHT}pt\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"Helvetica, Arial, sans-serif\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    marks.iter().for_each(|mark| one(mark, &mut svg));
    svg.push_str("</svg>\n");
    svg.into_bytes()
}

fn one(mark: &Mark, svg: &mut String) {
    // Writing into memory cannot fail.
    let _ = match mark {
        Mark::Line { points, colour: Colour(r, g, b), width, dashes } => {
            let places: Vec<String> = points.iter().map(|(x, y)| format!("{x:.2},{y:.2}")).collect();
            let dashes: Vec<String> = dashes.iter().map(f64::to_string).collect();
            let dashes = if dashes.is_empty() {
                String::new()
            } else {
                format!(" stroke-dasharray=\"{}\"", dashes.join(" "))
            };
            writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"#{r:02x}{g:02x}{b:02x}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dashes}/>",
                places.join(" ")
            )
        }
        Mark::Word { at: (x, y), text, size, anchor, upwards } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let turned =
                if *upwards { format!(" transform=\"rotate(-90 {x:.2} {y:.2})\"") } else { String::new() };
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            writeln!(
                svg,
                "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size}\" text-anchor=\"{anchor}\"{turned}>{text}</text>"
            )
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_escaped_and_lines_are_dashed() {
        let word = Mark::Word {
            at: (1.0, 2.0),
            text: "a<b & c".into(),
            size: 9.0,
            anchor: Anchor::End,
            upwards: true,
        };
        let line = Mark::Line {
            points: vec![(0.0, 0.0), (1.0, 1.5)],
            colour: Colour(1, 2, 255),
            width: 1.0,
            dashes: &[6.0, 3.0],
        };
        let svg = String::from_utf8(write(&[word, line])).unwrap();
        assert!(svg.contains("rotate(-90 1.00 2.00)\">a&lt;b &amp; c</text>"), "{svg}");
        assert!(svg.contains("points=\"0.00,0.00 1.00,1.50\"") && svg.contains("#0102ff"), "{svg}");
        assert!(svg.contains("stroke-dasharray=\"6 3\"") && svg.ends_with("</svg>\n"));
    }
}
