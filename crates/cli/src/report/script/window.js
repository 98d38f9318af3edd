// Theme, size, print.

const isDark = () => document.documentElement.dataset.theme === "dark";

/** Applies a theme and remembers it where the browser lets a file remember anything. */
function setTheme(theme, remember = true) {
  document.documentElement.dataset.theme = theme;
  if (remember)
    try {
      localStorage.setItem("yard-theme", theme);
    } catch {
      /* then only for now */
    }
  redrawAll();
}

/** The address (`#dark`) before the last choice before what the system prefers. */
function firstTheme() {
  const asked = location.hash.slice(1);
  if (asked === "dark" || asked === "light") return asked;
  let kept = null;
  try {
    kept = localStorage.getItem("yard-theme");
  } catch {
    /* nothing kept */
  }
  return kept || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function watchWindow() {
  let [width, pending] = [window.innerWidth, 0];
  addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(redrawAll);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) =>
    setTheme(event.matches ? "dark" : "light", false),
  );
  addEventListener("hashchange", () => setTheme(firstTheme(), false));
  let before = null; // paper is white
  addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme;
    setTheme("light", false);
  });
  addEventListener("afterprint", () => setTheme(before, false));
}
