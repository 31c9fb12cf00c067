// The page keeps what the worker has told it (model.js), orders it (list.js), and draws the rows that can be seen (grid.js).
import { Model } from "./model.js";
import { Grid } from "./grid.js";
import { tabs } from "./list.js";
import { Details } from "./details.js";
import { byId, money, paused, percent, clock } from "./text.js";

const model = new Model();
const settings = new URLSearchParams(location.hash.slice(1));
const state = { tab: settings.get("tab") || "nodes", group: settings.get("group") ?? "pool", query: settings.get("q") || "", sort: settings.get("sort") || "", folded: new Set() };
if (!tabs[state.tab]) state.tab = "nodes";
const details = new Details(model, () => grid.focus());
const grid = new Grid(byId("grid"), byId("head"), byId("body"), { open, fold, sort });

// remember keeps in the address what is shown, so that it can be sent to somebody.
function remember() {
  const now = new URLSearchParams();
  for (const [name, value] of [["tab", state.tab], ["group", state.group], ["q", state.query], ["sort", state.sort]]) now.set(name, value);
  history.replaceState(null, "", "#" + now);
}

function open(row) {
  if (row.group) return fold(row, state.folded.has(row.key));
  if (row.node) details.showNode(row.node.key);
  else if (row.pod) details.showPod(row.pod);
  else if (row.workflow?.nodeClaim || row.workflow?.node) details.showNode(row.workflow.nodeClaim || row.workflow.node);
}

// fold folds a group, or unfolds it with opened.
function fold(row, opened) {
  if (!row.group) return;
  if (opened) state.folded.delete(row.key); else state.folded.add(row.key);
  refresh();
}

function sort(column) {
  const [now, down] = [state.sort.replace("-", ""), state.sort.startsWith("-")];
  state.sort = now === column && !down ? "-" + column : column;
  refresh();
}

let due = false;
// changed draws once, however many changes come until then.
function changed() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => { due = false; draw(); });
}

function refresh() { remember(); stale = true; changed(); }

let stale = true;
function draw() {
  const tab = tabs[state.tab];
  if (stale || model.dirty.has(tab.needs)) {
    const rows = tab.rows(model, state);
    grid.show(tab, rows, state);
    byId("found").textContent = rows.said;
    stale = false;
  }
  if (model.dirty.has("nodes") || model.dirty.has("pending")) details.update();
  if (model.dirty.size) totals();
  model.dirty.clear();
}

const shown = new Map();
function tell(id, text) {
  if (shown.get(id) === text) return;
  shown.set(id, text);
  byId(id).textContent = text;
}

function totals() {
  const { totals, cost } = model;
  tell("cluster", model.name);
  document.title = "Tenon " + model.name;
  tell("total-nodes", totals.nodes + (totals.coming ? ` +${totals.coming} coming` : "") + (totals.leaving ? ` −${totals.leaving} leaving` : ""));
  tell("total-pods", String(totals.pods));
  tell("total-pending", String(totals.pending));
  tell("total-cpu", percent(totals.fill.cpu));
  tell("total-memory", percent(totals.fill.memory));
  tell("total-price", money(cost.currency, cost.perHour) + (cost.unpriced ? ` (${cost.unpriced} unknown)` : ""));
  const first = cost.history?.[0];
  if (first) {
    tell("was-label", "Was at " + clock(first.at));
    tell("total-was", money(cost.currency, first.perHour));
  }
  tell("total-spot", money(cost.currency, Math.max(0, cost.onDemand - cost.perHour)));
  if (cost.savedSince) tell("saved-label", "Saved by decisions since " + clock(cost.savedSince));
  tell("total-saved", money(cost.currency, cost.saved));
  if (model.dirty.has("cost")) drawHistory(cost.history || []);
  tell("tab-pending", `Pending pods (${totals.pending})`);
  tell("tab-workflows", `Workflows (${model.workflows.length})`);
  tell("tab-decisions", `Decisions (${model.decisions.length})`);
  tell("paused", (model.pauses || []).map(paused).join("; "));
  tell("trouble", [model.stale, model.trouble].filter(Boolean).join("; "));
}

function drawHistory(samples) {
  const most = Math.max(...samples.map((s) => s.perHour), 0.0001);
  const points = samples.map((s, i) => `${(120 * i) / Math.max(1, samples.length - 1)},${29 - (28 * s.perHour) / most}`);
  byId("history").firstElementChild.setAttribute("points", points.join(" "));
}

function select(tab, focus) {
  state.tab = tab;
  state.sort = "";
  for (const button of document.querySelectorAll("[role=tab]")) {
    const chosen = button.dataset.tab === tab;
    button.setAttribute("aria-selected", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
    if (chosen) byId("panel").setAttribute("aria-labelledby", button.id);
    if (chosen && focus) button.focus();
  }
  byId("group").parentElement.hidden = tab !== "nodes";
  refresh();
}

function connect() {
  const stream = new EventSource("api/events");
  const say = (text, kind) => { byId("connection").className = kind; tell("connection", text); };
  stream.addEventListener("view", (event) => { model.start(JSON.parse(event.data)); say("live", ""); stale = true; changed(); });
  stream.addEventListener("delta", (event) => { model.apply(JSON.parse(event.data)); changed(); });
  stream.onerror = async () => {
    say("not connected, trying again", "lost");
    if (stream.readyState !== EventSource.CLOSED) return;
    const answer = await fetch("api/session").catch(() => null);
    if (answer?.status === 401) login(); else setTimeout(connect, 3000);
  };
}

function login() {
  byId("login").hidden = false;
  byId("token").focus();
}

byId("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = await fetch("api/session", { headers: { Authorization: "Bearer " + byId("token").value } }).catch(() => null);
  byId("token").value = "";
  if (!answer?.ok) { byId("refused").textContent = answer ? "That is not the token." : "The worker does not answer."; return; }
  byId("refused").textContent = "";
  byId("login").hidden = true;
  connect();
});

const themes = ["system", "dark", "light"];
const system = matchMedia("(prefers-color-scheme: dark)");
function dress() {
  const theme = localStorage.getItem("theme") || "system";
  document.documentElement.dataset.theme = theme === "system" ? (system.matches ? "dark" : "light") : theme;
  byId("theme").textContent = "Theme: " + (theme === "system" ? "as the system" : theme);
}
system.addEventListener("change", dress);
byId("theme").addEventListener("click", () => {
  localStorage.setItem("theme", themes[(themes.indexOf(localStorage.getItem("theme") || "system") + 1) % themes.length]);
  dress();
});

byId("filter").value = state.query;
byId("filter").addEventListener("input", (event) => { state.query = event.target.value; refresh(); });
byId("filter").addEventListener("keydown", (event) => { if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); grid.focus(); } });
byId("group").value = state.group;
byId("group").addEventListener("change", (event) => { state.group = event.target.value; refresh(); });
byId("close").addEventListener("click", () => details.close());
byId("tabs").addEventListener("click", (event) => { if (event.target.dataset.tab) select(event.target.dataset.tab); });
byId("tabs").addEventListener("keydown", (event) => {
  const names = Object.keys(tabs), step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step) select(names[(names.indexOf(state.tab) + step + names.length) % names.length], true);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") details.close();
  if (event.key === "/" && !/INPUT|SELECT/.test(event.target.tagName)) { event.preventDefault(); byId("filter").focus(); }
});

dress();
const wanted = state.sort;
select(state.tab);
state.sort = wanted;
connect();
