// Changes: a dialog asks for what is missing and shows the redis-cli commands, before they are run and after.

import { ask } from "./console.js";
import { el, text, token } from "./elements.js";

const dialog = document.getElementById("dialog");
const log = document.getElementById("log");
const logSection = document.getElementById("log-section");
const PAUSE_MS = 150;
const LOGGED = 200; // actions
const LINE = 2000; // characters of a command that are shown

/** The chosen rows of a table. */
export function choices() {
  const ids = new Set();
  const boxes = new Map();
  const buttons = [];
  let every = null;
  const changed = () => {
    for (const one of buttons) one.disabled = ids.size === 0;
    if (every) every.checked = ids.size > 0 && ids.size === boxes.size;
  };
  const choose = (id, isChosen) => {
    if (isChosen) ids.add(id); else ids.delete(id);
    const box = boxes.get(id);
    if (box) box.checked = isChosen;
  };
  return {
    ids: () => [...ids],
    enables(button) { button.disabled = true; buttons.push(button); },
    box(id) {
      const box = el("input", { type: "checkbox", "aria-label": `Choose ${id}`, onchange() { choose(id, box.checked); changed(); } });
      boxes.set(id, box);
      return box;
    },
    all(shown) {
      every = el("input", { type: "checkbox", onchange() { for (const id of shown()) choose(id, every.checked); changed(); } });
      return every;
    },
    keep(shown) {
      const there = new Set(shown);
      for (const id of [...ids]) if (!there.has(id)) ids.delete(id);
      for (const id of [...boxes.keys()]) if (!there.has(id)) boxes.delete(id);
      changed();
    },
  };
}

/** Have an action run, and its commands and replies logged; gives them as a text. */
export async function runAndLog(body) {
  const told = await ask("api/action", { ...body, run: true });
  const shown = told.lines.map((line, at) => [`> ${cut(line)}`, ...told.replies[at]].join("\n")).join("\n");
  logSection.hidden = false;
  log.append(`${new Date().toLocaleTimeString("sv")}\n${shown}\n`);
  while (log.childNodes.length > LOGGED) log.firstChild.remove();
  log.scrollTop = log.scrollHeight;
  return body.all ? { ...told, shown } : shown;
}

function cut(line) { return line.length > LINE ? `${line.slice(0, LINE)} …` : line; }

function field(name, label, properties = {}, note = "") {
  const { options, ...rest } = properties;
  const input = options
    ? el("select", { id: `f-${name}`, name }, ...options.map(([value, words]) => el("option", { value }, words)))
    : el("input", { id: `f-${name}`, name, autocomplete: "off", ...rest });
  return el("div", { class: "field" }, el("label", { for: `f-${name}` }, label), input, note ? el("small", {}, note) : null);
}

const whole = { type: "number", min: "0", step: "1" };
const words = (...values) => [["", "as it is"], ...[...values, "NONE"].map((value) => [value, value])];

const kinds = {
  claim: {
    title: "Claim", about: "Give the chosen entries to a consumer.",
    fields: () => [field("consumer", "To consumer", { required: true }), field("min_idle_ms", "Only if idle for (ms)", { ...whole, value: "0" })],
    body: (form) => ({ consumer: token(form.consumer.value), min_idle_ms: form.min_idle_ms.value || "0" }),
  },
  release: {
    title: "Release (NACK)", about: "Give the chosen entries back, so that another consumer may take them.",
    fields: () => [
      field("mode", "As", { options: [["FAIL", "failed: FAIL"], ["SILENT", "not tried: SILENT"], ["FATAL", "poison: FATAL"]] }),
      field("delay_ms", "Hold back for (ms)", { ...whole, value: "0" }, "0: at once"),
    ],
    body: (form) => ({ mode: form.mode.value, delay_ms: form.delay_ms.value || "0" }),
  },
  acknowledge: {
    title: "Acknowledge", about: "Take the chosen entries off the pending list: they are not delivered again.",
    fields: () => [], body: () => ({}),
  },
  "dead-letter": {
    title: "Move to dead letters", about: "Write the chosen entries into another stream, and acknowledge them here.",
    fields: (asked) => [field("target", "Into stream", {
      required: true, value: asked.policy && asked.policy.deadletter ? text(asked.policy.deadletter) : `${text(asked.key)}:dead`,
    })],
    body: (form) => ({ target: token(form.target.value) }),
  },
  redrive: {
    title: "Redrive", about: "Write the chosen dead letters into the stream they came from, and delete them here.",
    fields: () => [field("target", "Into stream", { placeholder: "where it came from" })],
    body: (form) => ({ target: token(form.target.value) }),
  },
  "delete-consumer": {
    title: "Delete consumer",
    about: "Its pending entries are lost to the group, unless a policy with ACKWAIT gives them back: claim them first.",
    fields: () => [], body: () => ({}), isHarm: true,
  },
  policy: {
    title: "Policy", about: "What is empty stays as it is; NONE unsets a value.",
    fields: (asked) => [...(asked.group ? [
      field("ACKWAIT", "ACKWAIT (ms)", {}, "delivered again when not acknowledged within this time"),
      field("MAXDELIVER", "MAXDELIVER", {}, "deliveries before an entry becomes a dead letter"),
      field("DEADLETTER", "DEADLETTER", {}, "stream of the dead letters"),
      field("BACKOFF", "BACKOFF (min max, ms)", {}, "how long failed entries are held"),
      field("JITTER", "JITTER (percent)"),
      field("REAP", "REAP (ms)", {}, "idle consumers that hold nothing are removed"),
      field("KEY", "KEY", {}, "field: of each value one entry is out at a time"),
      field("PARALLEL", "PARALLEL", {}, "entries of a value of KEY that are out at a time, instead of one"),
      field("FAIR", "FAIR", { options: words("YES", "NO") }, "values of KEY take turns"),
      field("PRIORITY", "PRIORITY", {}, "field with a level: 9 comes before 0"),
      field("AGING", "AGING (ms)", {}, "waiting time that is worth a level"),
      field("LOOKAHEAD", "LOOKAHEAD", {}, "entries that may be passed over"),
      field("RATE", "RATE (entries ms)", {}, "at most so many are handed out in any such time"),
      field("INFLIGHT", "INFLIGHT", {}, "entries that are out at a time"),
      field("PAUSE", "PAUSE", {}, "FOREVER, a unix time in ms, or +ms; NONE resumes"),
      field("EXPIRE", "EXPIRE (ms)", {}, "age at which an entry that was not taken is a dead letter, or dropped"),
      field("EXPIREAT", "EXPIREAT", {}, "field with the time at which it is one"),
      field("ONDISCONNECT", "ONDISCONNECT", { options: words("RELEASE") }, "what a consumer holds when its connection ends"),
    ] : [
      field("MAXLEN", "MAXLEN", {}, "entries kept"),
      field("MAXAGE", "MAXAGE (ms)", {}, "age up to which entries are kept"),
      field("MAXBYTES", "MAXBYTES", {}, "bytes of names and values kept"),
      field("REFERENCES", "References", { options: [["", "as it is"], ["ACKED", "ACKED: only what every group has done"], ["KEEPREF", "KEEPREF"], ["DELREF", "DELREF"]] }),
      field("IDLEGROUP", "IDLEGROUP (ms)", {}, "with ACKED: groups that were not read for so long keep nothing"),
      field("FORWARD", "FORWARD", {}, "stream that entries move to when they are due; redrives all dead letters"),
      field("AT", "AT", {}, "field with the time when an entry is due"),
      field("AFTER", "AFTER (ms)", {}, "age at which an entry is due"),
      field("EVERY", "EVERY", {}, "field with times: a copy is forwarded at each"),
      field("MISSED", "MISSED", { options: words("ONCE", "ALL", "SKIP") }, "what happens to times that passed meanwhile"),
    ]), el("div", { class: "field" }, el("label", { for: "f-reset" }, "Take the policy away"), el("input", { id: "f-reset", name: "reset", type: "checkbox" }))],
    body(form) {
      const options = {};
      for (const input of form.elements) {
        if (/^[A-Z]+$/.test(input.name) && input.value) {
          options[input.name] = ["BACKOFF", "RATE", "REFERENCES"].includes(input.name) ? input.value : token(input.value);
        }
      }
      return { options, reset: form.reset.checked };
    },
  },
};

/** Run an action on all entries that match, step by step; `progress` is told how many were met. */
async function runAll(body, progress) {
  let count = 0;
  let told = { after: "" };
  do {
    told = await runAndLog({ ...body, all: { ...body.all, after: told.after } });
    count += told.entries;
    progress(count);
  } while (told.after && dialog.open);
  return `${told.shown}\n${count} entries in all${told.after ? ", then stopped" : ""}`;
}

/** Open the dialog of an action. asked: db, key and what else the view knows. */
export function act(action, asked) {
  const kind = kinds[action];
  const preview = el("pre", { "aria-live": "polite", "aria-label": "The commands" }, "…");
  const problem = el("p", { class: "error", role: "alert" });
  const title = el("h3", {}, "This will be run");
  const run = el("button", { type: "submit", class: kind.isHarm ? "harm" : "main" }, "Run");
  const cancel = el("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const { policy, db, ...known } = asked;
  const body = () => ({ ...known, db: Number(db || 0), action, ...kind.body(form) });
  let timer = 0;
  let asking = 0;
  const look = async () => {
    const mine = ++asking;
    try {
      const told = await ask("api/action", body());
      if (mine !== asking) return;
      preview.textContent = told.lines.map(cut).join("\n") + (told.after ? "\n… and so on, to the last entry that matches" : "");
      problem.textContent = "";
      run.disabled = false;
    } catch (refusal) {
      if (mine !== asking) return;
      preview.textContent = "…";
      problem.textContent = refusal.message;
      run.disabled = true;
    }
  };
  const go = async (event) => {
    event.preventDefault();
    clearTimeout(timer);
    asking++;
    run.disabled = true;
    try {
      const shown = asked.all ? await runAll(body(), (count) => { title.textContent = `${count} entries so far`; }) : await runAndLog(body());
      for (const input of form.elements) input.disabled = true;
      title.textContent = "This was run";
      preview.textContent = shown;
      problem.textContent = "";
      run.hidden = true;
      cancel.textContent = "Close";
      cancel.disabled = false;
      cancel.focus();
    } catch (refusal) {
      problem.textContent = refusal.message;
      run.disabled = false;
    }
  };
  const form = el("form", { onsubmit: go, oninput() { clearTimeout(timer); timer = setTimeout(look, PAUSE_MS); } },
    ...kind.fields(asked), title, preview, problem, el("div", { class: "buttons" }, cancel, run));
  const count = asked.all ? " all that match" : asked.ids ? ` ${asked.ids.length} ${asked.ids.length === 1 ? "entry" : "entries"}` : "";
  const owner = asked.consumer && !asked.ids && !asked.all ? ` ${text(asked.consumer)}` : "";
  dialog.replaceChildren(el("h2", { id: "dialog-title" }, kind.title + count + owner), el("p", { class: "hint" }, kind.about), form);
  dialog.showModal();
  look();
}
