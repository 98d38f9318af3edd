//! The figures of the house: how often type names repeat, how long functions are, how many fields structs have, and which
//! modules of the core use each other in a circle. `cargo test -p yard --test house -- --nocapture` prints them. None may get
//! worse than it is here; where one gets better, its line here follows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, File, ImplItemFn, ItemEnum, ItemFn, ItemMod, ItemStruct, ItemTrait, ItemType, UseTree};

/// Of a hundred type names, so many are used for more than one type. Wanted: at most 5.
const REPEATED_PERCENT_MAX: f64 = 3.0;
/// Of a hundred functions, 99 have at most so many lines. Wanted: at most 40.
const LINES_P99_MAX: usize = 36;
/// Structs with more than fifteen fields which are not what is written down for others to read. Wanted: none.
const WIDE_MAX: usize = 12;

/// Folders and files whose structs are formats: what is sent, stored, printed or given as flags has as many fields as it has.
const FORMATS: &[&str] = &[
    "cli/src/client/",
    "cli/src/cmd/",
    "cli/src/policy/exec/words.rs",
    "live/src/api/",
    "live/src/driver/config.rs",
    "live/src/replay/view.rs",
    "live/src/request/",
    "live/src/store/",
    "live/src/views.rs",
    "live/src/views/",
    "live/src/wire.rs",
    "planner/src/accelerator.rs",
    "sim/src/cluster/group.rs",
    "sim/src/record.rs::JobRecord",
    "sim/src/summary.rs",
    "sim/src/trace/",
];

#[test]
fn the_house_is_no_worse_than_it_was() {
    let house = House::read();
    let (repeated, names) = house.repeated();
    let percent = 100.0 * repeated.len() as f64 / names as f64;
    println!(
        "type names used more than once: {} of {names} ({percent:.1} %; wanted: at most 5)",
        repeated.len()
    );
    let often: Vec<_> = repeated.iter().map(|(name, times)| format!("{name} {times}")).collect();
    println!("  {}", often.join(", "));
    let p99 = house.lines_p99();
    println!("lines of functions, 99 of 100: at most {p99} (wanted: at most 40)");
    let wide = house.wide();
    println!("structs of more than 15 fields: {} (wanted: none): {}", wide.len(), wide.join(", "));
    let circle = circle(&edges(&root().join("core/src")));
    println!("modules of the core in a circle: {} (wanted: none): {}", circle.len(), circle.join(", "));
    assert!(percent <= REPEATED_PERCENT_MAX, "more type names repeat than before: {percent:.1} %");
    assert!(p99 <= LINES_P99_MAX, "functions have become longer: {p99} lines");
    assert!(wide.len() <= WIDE_MAX, "another struct has more than 15 fields");
    assert!(circle.is_empty(), "modules of the core use each other in a circle: {}", circle.join(", "));
}

/// What is counted of all crates, their tests left out.
#[derive(Default)]
struct House {
    file: String,
    types: BTreeMap<String, usize>,
    lines: Vec<usize>,
    fields: Vec<(String, usize)>,
}

impl House {
    fn read() -> House {
        let mut house = House::default();
        for crate_folder in sorted(&root()) {
            for path in sources(&crate_folder.join("src")) {
                house.file = path.strip_prefix(root()).expect("sources lie in crates").display().to_string();
                house.visit_file(&parsed(&path));
            }
        }
        house.lines.sort_unstable();
        house
    }

    fn repeated(&self) -> (Vec<(&str, usize)>, usize) {
        let mut repeated: Vec<_> = self
            .types
            .iter()
            .filter(|(_, times)| **times > 1)
            .map(|(name, times)| (name.as_str(), *times))
            .collect();
        repeated.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        (repeated, self.types.len())
    }

    fn lines_p99(&self) -> usize {
        self.lines[self.lines.len() * 99 / 100]
    }

    fn wide(&self) -> Vec<String> {
        self.fields
            .iter()
            .filter(|(_, fields)| *fields > 15)
            .map(|(name, fields)| format!("{name} {fields}"))
            .collect()
    }

    fn name(&mut self, ident: &syn::Ident) {
        *self.types.entry(ident.to_string()).or_default() += 1;
    }

    fn function(&mut self, block: &syn::Block) {
        self.lines.push(block.span().end().line - block.span().start().line + 1);
    }
}

impl<'ast> Visit<'ast> for House {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.name(&item.ident);
        let name = format!("{}::{}", self.file, item.ident);
        if !FORMATS.iter().any(|format| name.starts_with(format)) {
            self.fields.push((name, item.fields.len()));
        }
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.name(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.name(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast ItemType) {
        self.name(&item.ident);
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.block);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.function(&item.block);
        visit::visit_impl_item_fn(self, item);
    }
}

/// Which module at the top of a crate names which others, its tests left out.
fn edges(src: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let lib = parsed(&src.join("lib.rs"));
    let modules: BTreeSet<String> = lib
        .items
        .iter()
        .filter_map(|item| match item {
            syn::Item::Mod(item) if !is_test(&item.attrs) => Some(item.ident.to_string()),
            _ => None,
        })
        .collect();
    let mut shown = Uses::new(&modules, 0);
    shown.visit_file(&lib);
    let shown = shown.renamed;
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in sources(src).into_iter().filter(|path| !path.ends_with("lib.rs")) {
        let inside: Vec<_> = path.strip_prefix(src).expect("sources lie in src").iter().collect();
        let of = Path::new(inside[0]).with_extension("").display().to_string();
        let is_folder = path.file_name().is_some_and(|name| name == "mod.rs");
        let mut uses = Uses::new(&modules, inside.len() - usize::from(is_folder));
        uses.renamed = shown.clone();
        uses.visit_file(&parsed(&path));
        let to = edges.entry(of.clone()).or_default();
        to.extend(uses.found.into_iter().filter(|module| *module != of));
    }
    edges
}

/// The modules that a file names.
struct Uses<'a> {
    modules: &'a BTreeSet<String>,
    /// How many times `super` leads to the root.
    depth: usize,
    /// What the root shows of its modules, and of which.
    renamed: BTreeMap<String, String>,
    found: BTreeSet<String>,
}

impl<'a> Uses<'a> {
    fn new(modules: &'a BTreeSet<String>, depth: usize) -> Uses<'a> {
        Uses { modules, depth, renamed: BTreeMap::new(), found: BTreeSet::new() }
    }

    fn path(&mut self, path: &[String]) {
        let up = path.iter().take_while(|part| *part == "super").count();
        let at_root = if path.first().is_some_and(|part| part == "crate") { 1 } else { up };
        if at_root == 0 && self.depth > 0 || up > 0 && up != self.depth {
            return;
        }
        let Some(name) = path.get(at_root) else { return };
        if self.modules.contains(name) {
            self.found.insert(name.clone());
            if self.depth == 0 {
                self.renamed.insert(path.last().expect("a path has parts").clone(), name.clone());
            }
        } else if let Some(module) = self.renamed.get(name) {
            self.found.insert(module.clone());
        }
    }

    fn tree(&mut self, before: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(before, &path.tree);
                before.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(before, tree)),
            UseTree::Name(name) => self.leaf(before, name.ident.to_string()),
            UseTree::Rename(name) => self.leaf(before, name.ident.to_string()),
            UseTree::Glob(_) => self.path(before),
        }
    }

    fn leaf(&mut self, before: &mut Vec<String>, name: String) {
        before.push(name);
        self.path(before);
        before.pop();
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&mut Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<_> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if parts.len() > 1 {
            self.path(&parts);
        }
        visit::visit_path(self, path);
    }
}

/// All that can be reached from itself.
fn circle(edges: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    edges.keys().filter(|from| reached(edges, from).contains(*from)).cloned().collect()
}

fn reached(edges: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(at) = open.pop() {
        for to in edges.get(&at).into_iter().flatten() {
            if reached.insert(to.clone()) {
                open.push(to.clone());
            }
        }
    }
    reached
}

/// Tests are another house: whatever is compiled for them only.
fn is_test(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| {
        attr.path().is_ident("test")
            || attr.path().is_ident("cfg")
                && attr.meta.require_list().is_ok_and(|list| list.tokens.to_string().starts_with("test"))
    })
}

fn parsed(path: &Path) -> File {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The Rust files of a folder, those of tests left out.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in sorted(folder) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match name.as_str() {
            "tests" | "testing" => {}
            _ if path.is_dir() => all.extend(sources(&path)),
            _ if path.extension().is_some_and(|end| end == "rs") => all.push(path),
            _ => {}
        }
    }
    all
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut all: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    all.sort();
    all
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn circles_are_found_through_others_and_through_what_the_root_shows() {
    let of = |pairs: &[(&str, &[&str])]| {
        pairs
            .iter()
            .map(|(from, to)| (from.to_string(), to.iter().map(|to| to.to_string()).collect()))
            .collect()
    };
    assert_eq!(circle(&of(&[("a", &["b"]), ("b", &["c"]), ("c", &["a"]), ("d", &["a"])])), ["a", "b", "c"]);
    assert_eq!(circle(&of(&[("a", &["b"]), ("b", &[])])), [""; 0]);
    let modules = BTreeSet::from(["book".to_owned(), "rounds".to_owned()]);
    let mut uses = Uses::new(&modules, 1);
    uses.renamed.insert("Book".to_owned(), "book".to_owned());
    uses.visit_file(
        &syn::parse_file("use crate::Book; fn f() { super::rounds::g() }").expect("this is Rust"),
    );
    assert_eq!(uses.found, modules);
}
