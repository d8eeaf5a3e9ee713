// The views that are no stream's: keys of every type, a key, the slow log, the command line.

import { runAndLog } from "./actions.js";
import { go, link } from "./console.js";
import { bytes, duration, el, Facts, number, put, Table, text, token } from "./elements.js";
import { button, head, view } from "./views.js";

const TYPES = ["", "string", "list", "hash", "set", "zset", "stream", "array"];

function keys(at) {
  const db = at.db || "0";
  const start = Number(at.start || 0);
  const found = el("span", { class: "hint", role: "status" });
  const pattern = el("input", { id: "pattern", type: "search", placeholder: "a part, or orders:*", value: text(at.pattern || "") });
  const type = el("select", { id: "type" }, ...TYPES.map((name) => el("option", { value: name }, name || "all types")));
  type.value = at.type || "";
  const turn = (to) => go(link("keys", { db, pattern: token(pattern.value), type: type.value, start: to }));
  const previous = button("Previous", () => turn(Math.max(start - size, 0)), { disabled: start === 0 });
  const next = button("Next", () => turn(start + size), { disabled: true });
  let size = 25;
  const table = new Table("Keys", [
    { head: "Key", header: true, make: (row) => el("a", { href: link(row.type === "stream" ? "stream" : "key", { db, key: row.key }) }, text(row.key)) },
    { head: "Type", value: (row) => row.error ?? row.type },
    { head: "Expires in", number: true, value: (row) => duration(row.ttl_ms) },
    { head: "Memory", number: true, value: (row) => bytes(row.memory) },
  ], (row) => `${row.key} ${row.type}`, "No keys here yet.");
  const form = el("form", { onsubmit(event) { event.preventDefault(); turn(0); }, role: "search" },
    el("label", { for: "pattern" }, "Names like "), pattern, " ", el("label", { for: "type" }, "of "), type, " ",
    el("button", { type: "submit" }, "Find"));
  return view([el("h1", {}, "Keys"), head("All keys", found, form, previous, next), table.element], (told) => {
    size = told.page;
    next.disabled = start + size >= told.total;
    const range = told.rows.length ? `${start + 1} to ${start + told.rows.length} of ` : "";
    put(found, `${range}${number(told.total)}${told.complete ? "" : ", still looking"}`);
    table.show(told.rows);
  });
}

function key(at) {
  const db = at.db || "0";
  const facts = new Facts("The key");
  const note = el("p", { class: "hint" });
  let following = 0;
  const first = button("First", () => go(link("key", { db, key: at.key })), { disabled: !at.place });
  const more = button("Further", () => go(link("key", { db, key: at.key, place: following })), { disabled: true });
  const table = new Table("Value", [
    { head: "Field, member or place", header: true, value: (row) => text(row[0].text) + (row[0].size ? "…" : "") },
    { head: "Value or score", wide: true, kind: "id", value: (row) => text(row[1].text) + (row[1].size ? `… (${bytes(row[1].size)})` : "") },
  ], (row) => row.at, "Nothing to show.");
  return view([el("h1", {}, text(at.key)), facts.element, head("Value", first, more), note, table.element], (told) => {
    facts.show([
      ["Type", told.type], ["Size", told.size === null ? "-" : number(told.size)], ["Expires in", duration(told.ttl_ms)],
      ["Memory", bytes(told.memory)], ["Encoding", told.encoding],
    ]);
    put(note, told.size === null ? "A value of this type is not shown here: ask for it by the command line." : "");
    following = told.next;
    more.disabled = !following;
    table.show(told.rows.map((row, number) => Object.assign(row, { at: number })));
  });
}

function slow() {
  const table = new Table("Slow requests", [
    { head: "At", header: true, value: (row) => new Date(row.at_ms).toLocaleString("sv") },
    { head: "Took", number: true, value: (row) => duration(row.took_us / 1000) },
    { head: "Request", wide: true, kind: "id", value: (row) => text(row.line) },
    { head: "Client", value: (row) => `${text(row.client)} ${text(row.name)}` },
  ], (row) => row.id, "The slow log is empty.");
  return view([el("h1", {}, "Slow log"), el("p", { class: "hint" }, "Requests that took longer than slowlog-log-slower-than."), table.element],
    (told) => table.show(told.rows));
}

function command(at) {
  const db = Number(at.db || 0);
  const line = el("input", { id: "line", autocomplete: "off", spellcheck: "false", placeholder: "XINFO STREAM orders" });
  const reply = el("pre", { "aria-live": "polite", "aria-label": "The reply", tabindex: "0" });
  const problem = el("p", { class: "error", role: "alert" });
  const run = async (event) => {
    event.preventDefault();
    try {
      reply.textContent = await runAndLog({ action: "command", db, line: line.value });
      problem.textContent = "";
      line.select();
    } catch (refusal) {
      problem.textContent = refusal.message;
    }
  };
  const shown = view([el("h1", {}, "Command line"),
    el("form", { class: "line", onsubmit: run }, el("label", { for: "line" }, "Command"), line, el("button", { class: "main", type: "submit" }, "Run")),
    problem, reply], () => null);
  return { ...shown, isStill: true };
}

export const otherViews = { keys, key, slow, command };
