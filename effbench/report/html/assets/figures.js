// Figures: Plotly is unpacked when the page has been read, started when the first figure comes near, and draws each once.

const { template, night } = JSON.parse(document.getElementById("plotting").textContent);
const NARROW = 480; // pixels; below, names stand above their rows. The style sheet makes room for that
const onDark = matchMedia("(prefers-color-scheme: dark)");
const coarse = matchMedia("(pointer: coarse)");
const CONFIG = {
  displaylogo: false,
  displayModeBar: coarse.matches ? false : "hover",
  modeBarButtons: [["zoom2d", "pan2d", "resetScale2d"]],
  typesetMath: false,
};
const hiddenKeys = new WeakMap(); // plot -> what its legend hides
const waiting = new Set(); // plots near the window that are not drawn
let source = ""; // of Plotly, once it is unpacked
let printing = false;

async function unpack() {
  const packed = Uint8Array.from(atob(document.getElementById("bundle").textContent), (letter) => letter.charCodeAt(0));
  source = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  drawNext();
}

function start() {
  const script = document.createElement("script");
  script.textContent = source;
  document.body.append(script); // runs at once
  script.remove();
}

function isDark() {
  const scheme = document.documentElement.style.colorScheme || "light dark";
  return !printing && (scheme === "dark" || (scheme === "light dark" && onDark.matches));
}

function inTheme(key, value) {
  return typeof value === "string" && key.endsWith("color") && isDark() ? night[value] ?? value : value;
}

function namesAbove(data, layout) {
  const above = ({ ticktext, tickfont }, x, xanchor) =>
    ticktext.map((text, row) => ({ text, font: tickfont, x, xanchor, xref: "paper", y: row - 0.24, showarrow: false }));
  layout.annotations = [...above(layout.yaxis, 0, "left"), ...above(layout.yaxis2, 1, "right")];
  layout.margin = { l: 8, r: 8 };
  layout.yaxis.showticklabels = layout.yaxis2.showticklabels = false;
  for (const trace of data) {
    if (trace.type === "bar") Object.assign(trace, { offset: 0.04, width: 0.4 });
    else trace.y = trace.y.map((row) => row + 0.22);
  }
}

function draw(plot) {
  if (!window.Plotly) start();
  const { data, layout } = JSON.parse(plot.nextElementSibling.textContent, inTheme);
  layout.template = JSON.parse(JSON.stringify(template), inTheme);
  layout.height = plot.clientHeight;
  layout.width = plot.clientWidth;
  layout.uirevision = "kept"; // where somebody has zoomed to
  if (coarse.matches) layout.dragmode = false; // a finger scrolls the page
  if (layout.yaxis2 && plot.clientWidth < NARROW) {
    namesAbove(data, layout);
  }
  for (const trace of data) if (hiddenKeys.get(plot)?.has(trace.legendgroup)) trace.visible = false;
  window.Plotly.react(plot, data, layout, CONFIG);
  plot.dataset.drawn = isDark() ? "dark" : "light";
}

// One figure a frame, so that the page goes on scrolling.
function drawNext() {
  const [plot] = waiting;
  if (!plot || !source) return;
  waiting.delete(plot);
  if (plot.clientWidth) draw(plot);
  requestAnimationFrame(drawNext);
}

const near = new IntersectionObserver((entries) => {
  const idle = waiting.size === 0;
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) waiting.delete(target);
    else if (target.dataset.drawn !== (isDark() ? "dark" : "light")) waiting.add(target);
  }
  if (idle) drawNext();
}, { rootMargin: "800px 0px" });

const resized = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const last = target.dataset.width;
    target.dataset.width = Math.round(contentRect.width);
    if (target.dataset.drawn && contentRect.width && last !== target.dataset.width) draw(target);
  }
});

function watchAgain() {
  for (const plot of document.querySelectorAll(".plot")) {
    near.unobserve(plot);
    near.observe(plot);
  }
}

function makeLegend(legend) {
  const plot = legend.parentElement.querySelector(".plot");
  const hidden = new Set();
  hiddenKeys.set(plot, hidden);
  for (const item of legend.children) {
    const key = item.dataset.key;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "name";
    button.setAttribute("aria-pressed", "true");
    button.append(...item.childNodes);
    item.append(button);
    button.addEventListener("click", () => {
      if (!hidden.delete(key)) hidden.add(key);
      button.setAttribute("aria-pressed", String(!hidden.has(key)));
      if (source) draw(plot);
    });
  }
}

// Figures that cannot be drawn in time are printed as their numbers.
function printFigures(begins) {
  printing = begins;
  document.documentElement.classList.toggle("printing", begins); // what a switch hides is printed, too
  const plots = [...document.querySelectorAll(".plot")];
  for (const plot of plots.filter((each) => each.clientWidth && (begins || each.dataset.drawn))) {
    if (source) draw(plot);
    else plot.closest("figure").querySelectorAll("details").forEach((numbers) => { numbers.open = begins; });
  }
}

document.querySelectorAll(".legend").forEach(makeLegend);
document.querySelectorAll("details.figures").forEach((figure) => {
  figure.addEventListener("toggle", () => listingOf(figure), { once: true });
});
document.querySelectorAll(".plot").forEach((plot) => resized.observe(plot));
watchAgain();
onDark.addEventListener("change", watchAgain);
document.getElementById("theme").addEventListener("click", watchAgain);
window.addEventListener("beforeprint", () => printFigures(true));
window.addEventListener("afterprint", () => printFigures(false));
window.addEventListener("load", () => setTimeout(unpack, 0));
