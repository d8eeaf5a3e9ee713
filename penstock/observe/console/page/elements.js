// Elements, texts and tables: what every view is made of.

/** A name or value of the server: its token (percent-encoded bytes) as text; bytes that are not UTF-8 stay encoded. */
export function text(token) {
  try { return decodeURIComponent(token); } catch { return token; }
}

/** What a user typed, as a token. */
export function token(typed) { return encodeURIComponent(typed); }

export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name in made && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((one) => one !== null && one !== undefined));
  return made;
}

const grouped = new Intl.NumberFormat("en");

export function number(value) { return value === null || value === undefined ? "unknown" : grouped.format(value); }

export function perSecond(value) {
  if (value === null) return "…";
  return value < 10 && value > 0 ? value.toFixed(1) : grouped.format(Math.round(value));
}

export function bytes(value) {
  if (value === null || value === undefined) return "unknown";
  for (const [size, unit] of [[2 ** 30, "GB"], [2 ** 20, "MB"], [2 ** 10, "KB"]]) {
    if (value >= size) return `${(value / size).toFixed(1)} ${unit}`;
  }
  return `${value} bytes`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "-";
  const seconds = ms / 1000;
  if (seconds < 1) return `${ms} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds % 3600 / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor(seconds % 86400 / 3600)} h`;
}

export function timeOf(id) {
  const date = new Date(Number(id.split("-")[0]));
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString("sv");
}

/** A definition list of facts that is brought up to date: `facts.show([["Length", "12"], ...])`. */
export class Facts {
  constructor(label) { this.element = el("dl", { class: "facts", "aria-label": label }); this.shown = new Map(); }

  show(pairs) {
    for (const [name, value, kind] of pairs) {
      let dd = this.shown.get(name);
      if (!dd) {
        dd = el("dd");
        this.shown.set(name, dd);
        this.element.append(el("div", {}, el("dt", {}, name), dd));
      }
      put(dd, value);
      dd.classList.toggle("warn", kind === "warn");
      dd.classList.toggle("small", String(value).length > 11);
    }
  }
}

function kindsOf(column) {
  return [column.number && "number", (column.update || column.head === "Chosen") && "narrow"].filter(Boolean).join(" ");
}

export function put(cell, value) {
  const shown = String(value);
  if (cell.textContent !== shown) cell.textContent = shown;
}

/**
 * A table whose rows stay while their data are there, so focus and chosen rows stay too.
 * columns: {head, number, header, wide, value(row), make(row), update(element, row)}; `make` gives an element instead of text.
 */
export class Table {
  /** `sort`, if given, makes a column's head a button: { now, turn(order) }; a column's `order` is its name. */
  constructor(caption, columns, key, empty, sort = null) {
    this.columns = columns;
    this.key = key;
    this.rows = new Map();
    this.body = el("tbody");
    const heads = columns.map((one) => this.headOf(one, sort));
    this.empty = el("p", { class: "empty" }, empty);
    this.scroll = el("div", { class: "scroll" },
      el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...heads)), this.body));
    this.element = el("div", {}, this.scroll, this.empty);
    this.isFirst = true;
  }

  headOf(column, sort) {
    if (!sort || !column.order) return el("th", { scope: "col", class: kindsOf(column) }, column.head);
    const isNow = sort.now === column.order;
    const isBack = sort.now === `-${column.order}`;
    const click = () => sort.turn(isNow ? `-${column.order}` : column.order);
    const button = el("button", { type: "button", class: "sort", onclick: click }, column.head);
    const rises = column.order === "name" ? isNow : isBack;
    return el("th", { scope: "col", class: kindsOf(column), "aria-sort": isNow || isBack ? (rises ? "ascending" : "descending") : "none" }, button);
  }

  show(list) {
    const seen = new Set();
    let before = null;
    for (const row of list) {
      const key = this.key(row);
      seen.add(key);
      let tr = this.rows.get(key);
      if (!tr) {
        tr = this.make(row);
        if (!this.isFirst) tr.classList.add("fresh");
        this.rows.set(key, tr);
      }
      const place = before ? before.nextSibling : this.body.firstChild;
      if (place !== tr) this.body.insertBefore(tr, place);
      before = tr;
      this.columns.forEach((column, at) => {
        const cell = tr.children[at];
        if (column.update) column.update(cell.firstChild, row);
        else if (column.value) {
          put(cell, column.value(row));
          cell.classList.toggle("warn", Boolean(column.warn && column.warn(row)));
        }
      });
    }
    for (const [key, tr] of this.rows) {
      if (!seen.has(key)) { tr.remove(); this.rows.delete(key); }
    }
    this.isFirst = false;
    this.scroll.hidden = list.length === 0;
    this.empty.hidden = list.length !== 0;
  }

  make(row) {
    return el("tr", {}, ...this.columns.map((column) => {
      const kinds = [kindsOf(column), column.wide && "wide", column.kind].filter(Boolean).join(" ");
      const cell = column.header ? el("th", { scope: "row", class: kinds }) : el("td", { class: kinds });
      cell.dataset.head = column.head;
      if (column.make) cell.append(column.make(row));
      return cell;
    }));
  }
}

// -- sparklines -------------------------------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";
const POINTS = 30;

/** The values of one quantity while the page is open. */
export class History {
  constructor() { this.points = []; }

  add(value) {
    if (value === null || value === undefined) return;
    this.points.push(value);
    if (this.points.length > POINTS) this.points.shift();
  }
}

export function spark() {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "spark");
  svg.setAttribute("viewBox", "0 0 100 26");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  for (const kind of ["area", "line"]) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("class", kind);
    svg.append(path);
  }
  return svg;
}

export function draw(svg, history, what) {
  const points = history.points;
  if (points.length < 2) { svg.setAttribute("aria-label", `${what}: not yet known`); return; }
  const low = Math.min(...points);
  const high = Math.max(...points);
  const x = (at) => (100 * (POINTS - points.length + at) / (POINTS - 1)).toFixed(1);
  const y = (value) => (high === low ? (high === 0 ? 24 : 13) : 24 - 22 * (value - low) / (high - low)).toFixed(1);
  const line = points.map((value, at) => `${at ? "L" : "M"}${x(at)} ${y(value)}`).join("");
  svg.children[1].setAttribute("d", line);
  svg.children[0].setAttribute("d", `${line}L100 26L${x(0)} 26Z`);
  const round = (value) => grouped.format(Math.round(value * 10) / 10);
  svg.setAttribute("aria-label", `${what}: now ${round(points.at(-1))}, from ${round(low)} to ${round(high)}`);
}
