//! Marks as PDF 1.4: one page, vector lines, and Helvetica, which every reader has. Without dates, so that equal figures
//! are equal files.

use std::fmt::Write as _;

use super::scene::{Anchor, Colour, HEIGHT, Mark, WIDTH, text_width};

pub(super) fn write(marks: &[Mark]) -> Vec<u8> {
    let mut page = String::from("1 J 1 j\n");
    marks.iter().for_each(|mark| one(mark, &mut page));
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>"
        ),
        format!("<< /Length {} >>\nstream\n{page}endstream", page.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    whole(&objects).into_bytes()
}

/// The file: its objects, and where each of them begins.
fn whole(objects: &[String]) -> String {
    let mut pdf = String::from("%PDF-1.4\n");
    let mut begins = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        begins.push(pdf.len());
        let _ = write!(pdf, "{} 0 obj\n{object}\nendobj\n", at + 1);
    }
    let table = pdf.len();
    let count = objects.len() + 1;
    let _ = write!(pdf, "xref\n0 {count}\n0000000000 65535 f \n");
    for begin in begins {
        let _ = writeln!(pdf, "{begin:010} 00000 n ");
    }
    let _ = write!(pdf, "trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n");
    pdf
}

fn one(mark: &Mark, page: &mut String) {
    match mark {
        Mark::Line { points, colour, width, dashes } => {
            let dashes: Vec<String> = dashes.iter().map(f64::to_string).collect();
            let _ = writeln!(page, "{} RG {width} w [{}] 0 d", rgb(*colour), dashes.join(" "));
            for (at, (x, y)) in points.iter().enumerate() {
                let _ = writeln!(page, "{x:.2} {:.2} {}", HEIGHT - y, if at == 0 { "m" } else { "l" });
            }
            page.push_str("S\n");
        }
        Mark::Word { at: (x, y), text, size, anchor, upwards } => {
            let back = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => text_width(text, *size) / 2.0,
                Anchor::End => text_width(text, *size),
            };
            let (x, y) = (*x, HEIGHT - y);
            let place = if *upwards {
                format!("0 1 -1 0 {x:.2} {:.2}", y - back)
            } else {
                format!("1 0 0 1 {:.2} {y:.2}", x - back)
            };
            let _ = writeln!(page, "BT /F {size} Tf {place} Tm ({}) Tj ET", letters(text));
        }
    }
}

fn rgb(Colour(r, g, b): Colour) -> String {
    let part = |part: u8| format!("{:.3}", f64::from(part) / 255.0);
    [part(r), part(g), part(b)].join(" ")
}

/// Letters as PDF's strings have them; what Helvetica's plain encoding lacks is a question mark.
fn letters(text: &str) -> String {
    let letter = |letter: char| match letter {
        '(' | ')' | '\\' => format!("\\{letter}"),
        ' '..='~' => letter.to_string(),
        _ => "?".into(),
    };
    text.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_is_where_the_table_says() {
        let word = Mark::Word {
            at: (10.0, 20.0),
            text: "time (h)".into(),
            size: 10.0,
            anchor: Anchor::Start,
            upwards: false,
        };
        let line = Mark::Line {
            points: vec![(0.0, 0.0), (5.0, 5.0)],
            colour: Colour(255, 0, 0),
            width: 1.0,
            dashes: &[2.0],
        };
        let pdf = String::from_utf8(write(&[word, line])).unwrap();
        assert!(pdf.contains("1 0 0 1 10.00 250.00 Tm (time \\(h\\)) Tj"), "{pdf}");
        assert!(pdf.contains("1.000 0.000 0.000 RG 1 w [2] 0 d\n0.00 270.00 m\n5.00 265.00 l\nS"), "{pdf}");
        let table: usize =
            pdf.rsplit("startxref\n").next().and_then(|end| end.lines().next()).unwrap().parse().unwrap();
        let entries = pdf[table..].lines().skip(3).take(5);
        for (at, entry) in entries.enumerate() {
            let begin: usize = entry[..10].parse().unwrap();
            assert!(pdf[begin..].starts_with(&format!("{} 0 obj", at + 1)), "object {}", at + 1);
        }
        let length: usize = pdf.split("/Length ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        let stream = pdf.split("\nstream\n").nth(1).unwrap().split("endstream").next().unwrap();
        assert_eq!(stream.len(), length);
    }
}
