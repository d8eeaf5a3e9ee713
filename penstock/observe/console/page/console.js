// The page: the login, which view is open, and the connection that keeps it up to date.

import { el, text } from "./elements.js";
import { otherViews } from "./other_views.js";
import { views as streamViews } from "./views.js";

const page = {
  main: document.getElementById("main"),
  places: document.getElementById("places"),
  crumbs: document.getElementById("crumbs"),
  status: document.getElementById("status"),
  database: document.getElementById("database"),
  databaseLabel: document.getElementById("database-label"),
  user: document.getElementById("user"),
  logout: document.getElementById("logout"),
};
const AGAIN_MS = 2000;
const views = { ...streamViews, ...otherViews };
const PLACES = [["overview", "Streams"], ["keys", "Keys"], ["slow", "Slow log"], ["command", "Command line"]];
const UNDER = { key: "keys", stream: "overview", group: "overview", entry: "overview" };
const DATABASES = 16;

let session = null;
let events = null;
let again = 0;

export class Refusal extends Error {}

/** Ask the console; Refusal with the server's sentence. */
export async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": session ? session.csrf : "" },
    body: JSON.stringify(body),
  };
  const answer = await fetch(path, options);
  const told = await answer.json();
  if (answer.status === 401) enter();
  if (!answer.ok) throw new Refusal(told.error);
  return told;
}

/** The address of a view; parameters are tokens. */
export function link(view, parameters) {
  const words = Object.entries(parameters).filter(([, value]) => value !== "" && value !== 0 && value !== undefined);
  const query = words.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  return `#/${view}${query ? "?" + query : ""}`;
}

export function go(address) {
  if (location.hash === address) open();
  else location.hash = address;
}

function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: path || "overview", ...Object.fromEntries(new URLSearchParams(query)) };
}

function say(state, words) {
  page.status.className = state;
  if (page.status.textContent !== words) page.status.textContent = words;
}

// -- the login ---------------------------------------------------------------------------------------------------------

async function enter() {
  close();
  try {
    const answer = await fetch("api/session");
    const told = await answer.json();
    if (!answer.ok) throw new Refusal(told.error);
    session = told.user === null ? null : told;
  } catch (problem) {
    say("lost", problem instanceof Refusal ? problem.message : "The server does not answer");
    retry();
    return;
  }
  page.user.textContent = session ? session.user : "";
  page.logout.hidden = !(session && session.hasPassword);
  page.databaseLabel.hidden = !session;
  if (session) open();
  else askForPassword();
}

function retry() {
  clearTimeout(again);
  again = setTimeout(enter, AGAIN_MS);
}

function askForPassword() {
  say("", "Not logged in");
  page.crumbs.replaceChildren();
  page.places.replaceChildren();
  const problem = el("p", { class: "error", role: "alert" });
  const user = el("input", { id: "login-user", value: "default", autocomplete: "username", required: true });
  const password = el("input", { id: "login-password", type: "password", autocomplete: "current-password" });
  const submit = async (event) => {
    event.preventDefault();
    try {
      await ask("api/login", { user: user.value, password: password.value });
      enter();
    } catch (refusal) {
      problem.textContent = refusal instanceof Refusal ? refusal.message : "The server does not answer.";
      password.select();
    }
  };
  page.main.replaceChildren(el("div", { class: "login" },
    el("h1", {}, "Log in"),
    el("p", { class: "hint" }, "With a user of the server, as for AUTH."),
    el("form", { onsubmit: submit },
      el("label", { for: "login-user" }, "User"), user,
      el("label", { for: "login-password" }, "Password"), password,
      problem,
      el("button", { class: "main", type: "submit" }, "Log in"))));
  password.focus();
}

page.logout.addEventListener("click", async () => {
  await ask("api/logout", {}).catch(() => null);
  enter();
});

// -- views -------------------------------------------------------------------------------------------------------------

function close() {
  if (events) events.close();
  events = null;
}

function open() {
  close();
  if (!session) return;
  const at = here();
  const view = views[at.view];
  if (!view) { go("#/"); return; }
  page.database.value = at.db || "0";
  showCrumbs(at);
  const shown = view(at);
  page.main.replaceChildren(...shown.elements);
  if (!shown.isStill) listen(at, shown);
}

function showCrumbs(at) {
  const db = at.db || 0;
  const place = UNDER[at.view] || at.view;
  page.places.replaceChildren(...PLACES.map(([name, words]) =>
    el("a", { href: link(name, { db }), ...(name === place ? { "aria-current": "true" } : {}) }, words)));
  const steps = [[link(place, { db }), PLACES.find(([name]) => name === place)[1]]];
  if (at.key) steps.push([link(at.view === "key" ? "key" : "stream", { db, key: at.key }), text(at.key)]);
  if (at.group) steps.push([link("group", { db, key: at.key, group: at.group }), text(at.group)]);
  if (at.id) steps.push(["", text(at.id)]);
  const shown = steps.map(([address, name], number) => number === steps.length - 1
    ? el("span", { class: "at", "aria-current": "page" }, name) : el("a", { href: address }, name));
  page.crumbs.replaceChildren(...shown.flatMap((one, number) => number ? [el("span", { "aria-hidden": "true" }, "/"), one] : [one]));
  document.title = `${steps.at(-1)[1]} - Penstock console`;
}

/** Have the view brought up to date for as long as the page is seen. */
function listen(at, shown) {
  if (document.hidden) return;
  const query = new URLSearchParams(at);
  events = new EventSource(`api/events?${query}`);
  events.addEventListener("open", () => say("live", "Live"));
  events.addEventListener("message", (event) => {
    const told = JSON.parse(event.data);
    say("live", "Live");
    if (told.error) shown.fail(told.error);
    else shown.show(told);
  });
  events.addEventListener("error", () => {
    say("lost", "Connection lost");
    close();
    retry();
  });
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) { close(); say("", "Paused"); }
  else if (session) open();
});
window.addEventListener("hashchange", () => { open(); page.main.focus({ preventScroll: true }); scrollTo(0, 0); });
for (let db = 0; db < DATABASES; db++) page.database.append(el("option", { value: String(db) }, String(db)));
page.database.addEventListener("change", () => {
  const { view } = here();
  go(link(UNDER[view] || view, { db: Number(page.database.value) }));
});
enter();

