// The views: overview, stream, group, entry. Each gives its elements, and shows what the server tells.

import { act, choices } from "./actions.js";
import { go, link } from "./console.js";
import { bytes, draw, duration, el, Facts, History, number, perSecond, put, spark, Table, text, timeOf, token } from "./elements.js";

const histories = new Map(); // for as long as the page is open: a view that is opened again has its past
const IDLE_WARN_MS = 60_000;
const DELIVERIES_WARN = 3;
const TELL_MS = 10_000;

function history(...words) {
  const name = words.join("\n");
  if (!histories.has(name)) histories.set(name, new History());
  return histories.get(name);
}

/** Entries a second since the view was last told, remembered for the sparkline. */
function rateOf(last, db, row, atMs) {
  const before = last.get(row.key);
  last.set(row.key, { atMs, added: row.added });
  history(db, row.key, "length").add(row.length);
  if (!before || atMs <= before.atMs) return before ? before.rate ?? null : null;
  const rate = Math.max(row.added - before.added, 0) * 1000 / (atMs - before.atMs);
  last.get(row.key).rate = rate;
  history(db, row.key, "rate").add(rate);
  return rate;
}

export function view(elements, show) {
  const problem = el("p", { class: "error", role: "alert", hidden: true });
  return {
    elements: [problem, ...elements],
    show(told) { problem.hidden = true; show(told); },
    fail(words) { problem.hidden = false; problem.textContent = words; },
  };
}

export function head(title, ...tools) {
  return el("div", { class: "head" }, el("h2", {}, title), el("span", { class: "grow" }), ...tools);
}

export function button(words, onclick, properties = {}) {
  return el("button", { type: "button", onclick, ...properties }, words);
}

// -- overview ----------------------------------------------------------------------------------------------------------

function overview(at) {
  const db = at.db || "0";
  const start = Number(at.start || 0);
  const last = new Map();
  const facts = new Facts("The server");
  const found = el("span", { class: "hint", role: "status" });
  const pattern = el("input", { id: "pattern", type: "search", placeholder: "a part, or orders:*", value: text(at.pattern || "") });
  const search = (event) => {
    event.preventDefault();
    go(link("overview", { db, pattern: token(pattern.value), sort: at.sort, only: at.only }));
  };
  const turn = (to) => go(link("overview", { db, pattern: at.pattern, sort: at.sort, only: at.only, start: to }));
  const sort = { now: at.sort || "name", turn: (order) => go(link("overview", { db, pattern: at.pattern, only: at.only, sort: order === "name" ? "" : order })) };
  const only = el("input", {
    type: "checkbox", id: "only", checked: at.only === "pending",
    onchange: () => go(link("overview", { db, pattern: at.pattern, sort: at.sort, only: only.checked ? "pending" : "" })),
  });
  const stuckHead = el("span", { class: "hint", role: "status" });
  const stuck = new Table("Groups that are stuck", [
    { head: "Stream", header: true, make: (row) => el("a", { href: link("stream", { db, key: row.key }) }, text(row.key)) },
    { head: "Group", make: (row) => el("a", { href: link("group", { db, key: row.key, group: row.name }) }, text(row.name)) },
    { head: "First pending idle", number: true, value: (row) => duration(row.oldest_idle_ms), warn: (row) => row.oldest_idle_ms > IDLE_WARN_MS },
    { head: "Pending", number: true, value: (row) => number(row.pending) },
    { head: "Lag", number: true, value: (row) => number(row.lag), warn: (row) => row.growth > 0 },
    { head: "Consumers gone", number: true, value: (row) => `${number(row.gone)} of ${number(row.consumers)}`, warn: (row) => row.gone },
    { head: "Dead letters", number: true, value: (row) => number(row.dead_letters) },
  ], (row) => `${row.key} ${row.name}`, "No group is stuck.");
  const previous = button("Previous", () => turn(Math.max(start - size, 0)), { disabled: start === 0 });
  const next = button("Next", () => turn(start + size), { disabled: true });
  let size = 25;
  let commands = null;
  const table = new Table("Streams", [
    { head: "Stream", order: "name", header: true, make: (row) => el("a", { href: link("stream", { db, key: row.key }) }, text(row.key)) },
    { head: "Length", order: "length", number: true, value: (row) => row.error ?? number(row.length) },
    { head: "Length, lately", make: spark, update: (svg, row) => draw(svg, history(db, row.key, "length"), "Length") },
    { head: "Added a second", number: true, value: (row) => perSecond(row.rate ?? null) },
    { head: "Rate, lately", make: spark, update: (svg, row) => draw(svg, history(db, row.key, "rate"), "Entries a second") },
    { head: "Groups", order: "groups", number: true, value: (row) => number(row.groups ?? 0) },
    { head: "Consumers", order: "consumers", number: true, value: (row) => number(row.consumers ?? 0) },
    { head: "Pending", order: "pending", number: true, value: (row) => number(row.pending ?? 0) },
    { head: "Largest lag", order: "lag", number: true, value: (row) => row.groups ? number(row.lag) : "-" },
  ], (row) => row.key, "No streams here yet.", sort);
  const form = el("form", { onsubmit: search, role: "search" },
    el("label", { for: "pattern" }, "Names like "), pattern, " ", el("button", { type: "submit" }, "Find"),
    " ", el("label", { for: "only" }, only, " Only with pending entries"));
  return view([el("h1", {}, "Streams"), head("Stuck", stuckHead), stuck.element, facts.element, head("All streams", found, form, previous, next), table.element], (told) => {
    const server = told.server;
    const rate = commands && told.at_ms > commands.atMs ? (server.commands - commands.count) * 1000 / (told.at_ms - commands.atMs) : null;
    commands = { atMs: told.at_ms, count: server.commands };
    if (server.version) {
      facts.show([
        ["Server", `${server.version}, ${server.build}`], ["Role", server.role],
        ["Up for", duration(server.uptime_s * 1000)], ["Memory", bytes(server.memory)],
        ["Clients, blocked", `${number(server.clients)}, ${number(server.blocked)}`],
        ["Requests/s", perSecond(rate)], ["Keys", number(told.keys)], ["Log", server.log, server.log === "ok" ? "" : "warn"],
      ]);
    }
    size = told.page;
    next.disabled = start + size >= told.chosen;
    stuck.show(told.stuck);
    const known = told.looked < told.total ? `, ${number(told.looked)} of ${number(told.total)} streams looked at` : "";
    put(stuckHead, `${number(told.stuck_total)} of the groups${known}`);
    const range = told.streams.length ? `${start + 1} to ${start + told.streams.length} of ` : "";
    const words = `${range}${number(told.chosen)}${told.complete ? "" : ", still looking"}`;
    if (found.textContent !== words) found.textContent = words;
    for (const row of told.streams) if (!row.error) row.rate = rateOf(last, db, row, told.at_ms);
    table.show(told.streams);
  });
}

// -- one stream --------------------------------------------------------------------------------------------------------

function fieldsOf(entry) {
  const shown = entry.fields.flatMap(([name, value]) => [
    el("span", {}, el("b", {}, text(name.text)), " ", text(value.text) + (value.size ? "…" : "")),
  ]);
  return el("div", { class: "fields" }, ...shown, entry.more ? `and ${entry.more} more` : "");
}

function policyWords(policy) {
  const words = Object.entries(policy).filter(([, value]) => value !== 0 && value !== "keepref");
  return words.length ? words.map(([name, value]) => `${name} ${typeof value === "string" ? text(value) : number(value)}`).join(", ") : "none";
}

function stream(at) {
  const db = at.db || "0";
  const { key } = at;
  const base = { db, key };
  const last = new Map();
  const chosen = choices();
  const facts = new Facts("The stream");
  const policy = el("p", { class: "hint" });
  const told10 = el("p", { class: "hint", role: "status" });
  let isPaused = Boolean(at.before);
  let tellMs = 0;
  let counted = null;
  let rows = [];
  const lengths = spark();
  const rates = spark();
  const groups = new Table("Consumer groups", [
    { head: "Group", header: true, make: (row) => el("a", { href: link("group", { ...base, group: row.name }) }, text(row.name)) },
    { head: "Lag", number: true, value: (row) => number(row.lag) },
    { head: "Lag, lately", make: spark, update: (svg, row) => draw(svg, history(db, key, row.name, "lag"), "Lag") },
    { head: "Pending", number: true, value: (row) => number(row.pending) },
    { head: "Pending, lately", make: spark, update: (svg, row) => draw(svg, history(db, key, row.name, "pending"), "Pending") },
    { head: "First pending idle", number: true, value: (row) => duration(row.oldest_idle_ms), warn: (row) => row.oldest_idle_ms > IDLE_WARN_MS },
    { head: "Consumers", number: true, value: (row) => number(row.consumers) },
    { head: "Last delivered", kind: "id", value: (row) => row.last_id },
    { head: "Policy", value: (row) => (row.has_policy ? "yes" : "-") },
  ], (row) => row.name, "No groups.");
  const entries = new Table("Newest entries", [
    { head: "Chosen", make: (row) => chosen.box(row.id) },
    { head: "ID", header: true, kind: "id", make: (row) => el("a", { href: link("entry", { ...base, id: row.id }) }, row.id) },
    { head: "Time", value: (row) => timeOf(row.id) },
    { head: "Fields", wide: true, make: fieldsOf },
  ], (row) => row.id, "No entries.");
  const pause = button("Pause", () => {
    isPaused = !isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
  }, { "aria-pressed": String(isPaused) });
  const redrive = button("Redrive …", () => act("redrive", { ...base, ids: chosen.ids() }), { hidden: true });
  const older = button("Older", () => go(link("stream", { ...base, before: rows.at(-1).id })), { disabled: true });
  const newest = button("Newest", () => go(link("stream", base)), { disabled: !at.before });
  chosen.enables(redrive);
  return view([
    el("h1", {}, text(key)), facts.element,
    head("Policy of the stream", button("Change …", () => act("policy", base))), policy,
    head("Groups"), groups.element,
    head(at.before ? "Older entries" : "Live tail", told10, redrive, ...(at.before ? [] : [pause]), older, newest), entries.element,
  ], (told) => {
    const rate = rateOf(last, db, told, told.at_ms);
    facts.show([
      ["Length", number(told.length)], ["Ever added", number(told.added)], ["Added a second", perSecond(rate)],
      ["Memory", bytes(told.memory)], ["Pending", number(told.pending)], ["Last ID", told.last_id],
    ]);
    if (!lengths.parentNode) {
      for (const [svg, words] of [[lengths, "Length, lately"], [rates, "Rate, lately"]]) {
        facts.element.append(el("div", {}, el("dt", {}, words), el("dd", {}, svg)));
      }
    }
    draw(lengths, history(db, key, "length"), "Length");
    draw(rates, history(db, key, "rate"), "Entries a second");
    policy.textContent = policyWords(told.policy);
    for (const row of told.group_rows) {
      history(db, key, row.name, "lag").add(row.lag);
      history(db, key, row.name, "pending").add(row.pending);
    }
    groups.show(told.group_rows);
    if (!isPaused || !rows.length) {
      rows = told.entries;
      entries.show(rows);
      chosen.keep(rows.map((row) => row.id));
      redrive.hidden = !rows.some((row) => row.fields.some(([name]) => name.text === "_stream"));
      older.disabled = rows.length < told.page;
    }
    if (!at.before && told.at_ms - tellMs > TELL_MS) {
      told10.textContent = counted === null ? "" : `${number(told.added - counted)} new in ${Math.round((told.at_ms - tellMs) / 1000)} s`;
      tellMs = told.at_ms;
      counted = told.added;
    }
  });
}

// -- one group ---------------------------------------------------------------------------------------------------------

function group(at) {
  const db = at.db || "0";
  const { key, group: name } = at;
  const base = { db, key, group: name };
  const chosen = choices();
  const facts = new Facts("The group");
  const policy = el("p", { class: "hint" });
  let policyTold = {};
  const lags = spark();
  const pendings = spark();
  const consumers = new Table("Consumers", [
    { head: "Consumer", header: true, make: (row) => el("a", { href: link("group", { ...base, consumer: row.name }) }, text(row.name)) },
    { head: "Pending", number: true, value: (row) => number(row.pending) },
    { head: "Idle", number: true, value: (row) => duration(row.idle_ms), warn: (row) => row.pending && row.idle_ms > IDLE_WARN_MS },
    { head: "Last got an entry", number: true, value: (row) => (row.inactive_ms === null ? "never" : `${duration(row.inactive_ms)} ago`) },
    {
      head: "Action",
      make: (row) => button("Delete …", () => act("delete-consumer", { ...base, consumer: row.name }),
        { class: "row harm", "aria-label": `Delete consumer ${text(row.name)}` }),
    },
  ], (row) => row.name, "No consumers.");
  const pending = new Table("Pending entries", [
    { head: "Chosen", make: (row) => chosen.box(row.id) },
    { head: "ID", header: true, kind: "id", make: (row) => el("a", { href: link("entry", { ...base, id: row.id }) }, row.id) },
    { head: "Consumer", value: (row) => text(row.consumer) || "released" },
    { head: "Idle", number: true, value: (row) => duration(row.idle_ms), warn: (row) => row.idle_ms > IDLE_WARN_MS },
    { head: "Deliveries", number: true, value: (row) => number(row.deliveries), warn: (row) => row.deliveries >= DELIVERIES_WARN },
  ], (row) => row.id, "Nothing is pending.");
  let rows = [];
  let last = "";
  const every = el("input", { type: "checkbox", id: "every", onchange() { tools.forEach((one) => { one.disabled = !every.checked && !chosen.ids().length; }); } });
  const everyLabel = el("label", { for: "every", hidden: true }, every, " All that match, also on other pages");
  const condition = () => ({ consumer: at.consumer || "", idle_ms: String(at.idle_ms || 0), until: last });
  const ask = (action) => () => act(action, { ...base, policy: policyTold, ...(every.checked ? { all: condition() } : { ids: chosen.ids() }) });
  const tools = [["Claim …", "claim"], ["Release (NACK) …", "release"], ["Acknowledge …", "acknowledge"], ["To dead letters …", "dead-letter"]]
    .map(([words, action]) => button(words, ask(action)));
  tools.forEach((one) => chosen.enables(one));
  const all = el("label", {}, chosen.all(() => rows.map((row) => row.id)), " Choose all");
  const idle = el("input", { id: "idle", type: "number", min: "0", step: "1", value: String(Number(at.idle_ms || 0) / 1000) });
  const filter = el("form", {
    onsubmit(event) {
      event.preventDefault();
      go(link("group", { ...base, consumer: at.consumer, idle_ms: Math.round(Number(idle.value) * 1000) }));
    },
  }, el("label", { for: "idle" }, "Idle at least (s) "), idle, " ", el("button", { type: "submit" }, "Show"));
  const more = button("Further", () => go(link("group", { ...base, consumer: at.consumer, idle_ms: at.idle_ms, after: rows.at(-1).id })), { disabled: true });
  const first = button("First", () => go(link("group", { ...base, consumer: at.consumer, idle_ms: at.idle_ms })), { disabled: !at.after });
  const of = at.consumer ? [el("a", { href: link("group", base) }, "of all consumers")] : [];
  return view([
    el("h1", {}, `${text(name)} on ${text(key)}`), facts.element,
    head("Policy of the group", button("Change …", () => act("policy", { ...base, policy: policyTold }))), policy,
    head("Consumers"), consumers.element,
    head(at.consumer ? `Pending entries of ${text(at.consumer)}` : "Pending entries", ...of, filter, first, more),
    el("div", { class: "head", role: "group", "aria-label": "With the chosen entries" }, all, everyLabel, ...tools), pending.element,
  ], (told) => {
    history(db, key, name, "lag").add(told.lag);
    history(db, key, name, "pending").add(told.pending);
    facts.show([
      ["Lag", number(told.lag)], ["Pending", number(told.pending)], ["Consumers", number(told.consumers)],
      ["Entries read", number(told.read)], ["Last delivered ID", told.last_id],
    ]);
    if (!lags.parentNode) {
      for (const [svg, words] of [[lags, "Lag, lately"], [pendings, "Pending, lately"]]) {
        facts.element.append(el("div", {}, el("dt", {}, words), el("dd", {}, svg)));
      }
    }
    draw(lags, history(db, key, name, "lag"), "Lag");
    draw(pendings, history(db, key, name, "pending"), "Pending");
    policyTold = told.policy;
    policy.textContent = policyWords(told.policy);
    consumers.show(told.consumer_rows);
    rows = told.pending_rows;
    pending.show(rows);
    chosen.keep(rows.map((row) => row.id));
    if (every.checked) tools.forEach((one) => { one.disabled = false; });
    last = told.last_id;
    more.disabled = rows.length < told.page;
    everyLabel.hidden = more.disabled && !at.after;
  });
}

// -- one entry ---------------------------------------------------------------------------------------------------------

function entry(at) {
  const db = at.db || "0";
  const { key, id } = at;
  const base = { db, key, ids: [id] };
  const when = el("p", { class: "hint" }, timeOf(id));
  const redrive = button("Redrive …", () => act("redrive", base), { hidden: true });
  const fields = new Table("Fields", [
    { head: "Field", header: true, value: (row) => text(row[0].text) },
    { head: "Value", wide: true, kind: "id", value: (row) => text(row[1].text) + (row[1].size ? `… (${bytes(row[1].size)})` : "") },
  ], (row) => row.at, "No fields.");
  const held = new Table("Groups in which the entry is pending", [
    { head: "Group", header: true, make: (row) => el("a", { href: link("group", { db, key, group: row.group }) }, text(row.group)) },
    { head: "Consumer", value: (row) => text(row.consumer) || "released" },
    { head: "Idle", number: true, value: (row) => duration(row.idle_ms) },
    { head: "Deliveries", number: true, value: (row) => number(row.deliveries), warn: (row) => row.deliveries >= DELIVERIES_WARN },
    {
      head: "Actions",
      make: (row) => el("span", {}, ...[["Claim …", "claim"], ["Release …", "release"], ["Acknowledge …", "acknowledge"], ["To dead letters …", "dead-letter"]]
        .map(([words, action]) => button(words, () => act(action, { ...base, group: row.group }),
          { class: "row", "aria-label": `${words.replace(" …", "")}, group ${text(row.group)}` }))),
    },
  ], (row) => row.group, "Pending in no group.");
  return view([
    el("h1", {}, `Entry ${id}`), when, head("Pending"), held.element, head("Fields", redrive), fields.element,
  ], (told) => {
    fields.show(told.fields.map((row, number) => Object.assign(row, { at: number })));
    held.show(told.held);
    redrive.hidden = !told.is_dead_letter;
  });
}

export const views = { overview, stream, group, entry };
