"use strict";
// The page is whole without this: it adds sorting, filters, lists that become tables, and a switch of themes.

const cellOf = (row, column) => row.cells[column];
const valueOf = (cell) => (cell && cell.dataset.v !== undefined ? Number(cell.dataset.v) : NaN);

function sortBy(table, column, descending) {
  const body = table.tBodies[0];
  const rows = [...body.rows].filter((row) => row.cells.length > column);
  const numeric = rows.some((row) => !Number.isNaN(valueOf(cellOf(row, column))));
  const sign = descending ? -1 : 1;
  rows.sort((a, b) => {
    const [first, second] = [cellOf(a, column), cellOf(b, column)];
    if (!numeric) return sign * first.innerText.localeCompare(second.innerText, undefined, { numeric: true });
    const [x, y] = [valueOf(first), valueOf(second)];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y); // what is not known comes last
    return sign * (x - y);
  });
  body.append(...rows);
  for (const head of table.tHead.rows[0].cells) head.removeAttribute("aria-sort");
  table.tHead.rows[0].cells[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sortBy(table, column, head.getAttribute("aria-sort") === "ascending"));
  });
}

function searchField(words) {
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = words;
  field.setAttribute("aria-label", words);
  return field;
}

function makeMainFilter(controls, table) {
  const rows = [...table.tBodies[0].rows];
  const field = searchField("find a technique");
  const shown = document.createElement("output");
  const verdicts = ["better", "worse", "no evidence", "breaks", "incomplete", "skipped"];
  const present = verdicts.filter((name) => rows.some((row) => row.dataset.verdicts.split(" ").includes(name.replace(" ", "-"))));
  const boxes = present.map((name) => {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.value = name.replace(" ", "-");
    const mark = document.createElement("span");
    mark.className = `verdict ${box.value}`;
    mark.append(name);
    label.append(box, mark);
    return [label, box];
  });
  const apply = () => {
    const wanted = boxes.filter(([, box]) => box.checked).map(([, box]) => box.value);
    const words = field.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      const said = row.dataset.verdicts.split(" ");
      const fits = row.cells[0].innerText.toLowerCase().includes(words) && (!wanted.length || wanted.some((name) => said.includes(name)));
      row.hidden = !fits;
      count += fits;
    }
    shown.value = count === rows.length ? "" : `${count} of ${rows.length} sets`;
  };
  field.addEventListener("input", apply);
  boxes.forEach(([, box]) => box.addEventListener("change", apply));
  controls.append(field, ...boxes.map(([label]) => label), shown);
  controls.hidden = false;
}

function makeSectionFilter(controls, sections) {
  const field = searchField("find a technique");
  field.addEventListener("input", () => {
    const words = field.value.trim().toLowerCase();
    for (const section of sections) section.hidden = !section.dataset.name.toLowerCase().includes(words);
  });
  controls.append(field);
  controls.hidden = false;
}

function makeTheme(button) {
  const themes = ["light dark", "light", "dark"];
  const names = ["auto", "light", "dark"];
  let chosen = 0;
  const show = () => {
    document.documentElement.style.colorScheme = themes[chosen];
    button.textContent = names[chosen];
  };
  button.addEventListener("click", () => { chosen = (chosen + 1) % themes.length; show(); });
  button.hidden = false;
  show();
}

function makeListing(text) {
  const [heads, ...rows] = text.textContent.split("\n").map((line) => line.split("\t"));
  const table = document.createElement("table");
  table.className = "sortable compact";
  const head = table.createTHead().insertRow();
  for (const name of heads) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const words of row) {
      const cell = line.insertCell();
      cell.textContent = words;
      if (words !== "" && !Number.isNaN(Number(words))) cell.dataset.v = words;
    }
  }
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  for (const name of ["id", "tabindex", "role", "aria-label"]) scroll.setAttribute(name, text.getAttribute(name));
  scroll.append(table);
  text.replaceWith(scroll);
  makeSortable(table);
}

function listingOf(records) {
  const text = records.querySelector("pre.listing");
  if (text) makeListing(text);
  return records.querySelector("table");
}

function showRecords(records, wanted) {
  const rows = [...listingOf(records).tBodies[0].rows];
  let count = 0;
  for (const row of rows) {
    const fits = wanted.every((words, column) => row.cells[column].textContent === words);
    row.hidden = !fits;
    count += fits;
  }
  records.querySelector(".filtered")?.remove();
  if (count === rows.length) return;
  const line = document.createElement("p");
  line.className = "filtered";
  line.setAttribute("role", "status");
  const all = document.createElement("button");
  all.type = "button";
  all.textContent = `show all ${rows.length}`;
  all.addEventListener("click", () => showRecords(records, []));
  line.append(`${count} of ${rows.length} records: ${wanted.join(", ")}. `, all);
  records.querySelector("summary").after(line);
}

function followRecords(link) {
  const records = link.closest("details.technique").querySelector("details.records");
  records.open = true;
  showRecords(records, [link.dataset.set, link.dataset.workload, link.dataset.budget]);
  records.scrollIntoView();
  records.querySelector(".scroll").focus({ preventScroll: true });
}

// Paper cannot be clicked: what is folded is shown there, but records and what explains methods and tables.
function foldForPaper(begins) {
  for (const part of document.querySelectorAll("main details:not(.records, .prose, .note, .figures)")) {
    if (begins) part.dataset.was = part.open ? "open" : "";
    part.open = begins || part.dataset.was === "open";
  }
}

function openTarget() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
}

document.querySelectorAll("table.sortable").forEach((table) => {
  if (!table.closest("details.technique")) makeSortable(table);
});
document.querySelectorAll("details.technique").forEach((section) => {
  section.addEventListener("toggle", () => section.querySelectorAll("table.sortable").forEach(makeSortable), { once: true });
});
for (const controls of document.querySelectorAll(".controls")) {
  if (controls.dataset.for === "main") makeMainFilter(controls, document.getElementById("main"));
  else makeSectionFilter(controls, document.querySelectorAll("details.technique"));
}
makeTheme(document.getElementById("theme"));
document.querySelectorAll("details.records").forEach((records) => {
  records.addEventListener("toggle", () => listingOf(records), { once: true });
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("a.to-records");
  if (!link) return;
  event.preventDefault();
  followRecords(link);
});
window.addEventListener("beforeprint", () => foldForPaper(true));
window.addEventListener("afterprint", () => foldForPaper(false));
window.addEventListener("hashchange", openTarget);
openTarget();
