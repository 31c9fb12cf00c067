// What each tab lists: its columns, and its rows filtered, grouped and ordered.
import { age, clock, cores, element, gibibytes, money, percent } from "./text.js";

// matcher returns whether something matches all words of a query. A word such as pool:web asks for a field.
function matcher(query, fields) {
  const tests = query.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    const [name, value] = [word.slice(0, word.indexOf(":")), word.slice(word.indexOf(":") + 1)];
    const field = word.includes(":") && fields[name];
    return field ? (item) => String(field(item)).toLowerCase().includes(value) : (item) => fields.words(item).includes(word);
  });
  return (item) => tests.every((test) => test(item));
}

function ordered(items, columns, sort) {
  const column = columns.find((c) => c.name === sort.replace("-", "")), down = sort.startsWith("-") ? -1 : 1;
  if (!column?.by) return items;
  const by = column.by;
  return items.sort((a, b) => { const x = by(a), y = by(b); return x < y ? -down : x > y ? down : 0; });
}

const text = (read, kind) => (cell, item) => { cell.textContent = read(item) ?? ""; if (kind) cell.className = kind; };
const number = (read) => text(read, "number");

function bar(read) {
  return (cell, item) => {
    if (!cell.firstChild) cell.append(element("i", { "aria-hidden": "true" }, element("b")), element("span"));
    const share = read(item);
    cell.className = share > 0.9 ? "bar high" : "bar";
    cell.firstChild.firstChild.style.transform = `scaleX(${Math.min(1, share)})`;
    cell.lastChild.textContent = percent(share);
  };
}

const mostBlocks = 40;
function pods(cell, { node }) {
  cell.className = "pods";
  if (!cell.firstChild) cell.append(element("span"));
  cell.firstChild.textContent = node.pods.length;
  const want = Math.min(mostBlocks, node.pods.length);
  while (cell.childElementCount - 1 > want) cell.lastChild.remove();
  while (cell.childElementCount - 1 < want) cell.append(element("i", { "aria-hidden": "true" }));
  let block = cell.firstChild;
  for (let i = 0; i < want; i++) { block = block.nextSibling; if (block.className !== node.pods[i].state) block.className = node.pods[i].state; }
}

function state(cell, { node }) {
  cell.textContent = node.state;
  cell.className = node.state === "NotReady" ? "bad" : node.state === "Serving" ? "" : "high";
}

const nodeColumns = [
  { name: "name", title: "Node", by: (n) => n.title, draw: text((r) => r.node.title) },
  { name: "type", title: "Type", by: (n) => n.instanceType || "", draw: text((r) => r.node.instanceType) },
  { name: "zone", title: "Zone", by: (n) => n.zone || "", draw: text((r) => r.node.zone) },
  { name: "capacity", title: "Capacity", by: (n) => n.capacityType || "", draw: text((r) => r.node.capacityType) },
  { name: "state", title: "State", by: (n) => n.state, draw: state },
  { name: "price", title: "Per hour", by: (n) => n.perHour, draw: number((r) => (r.node.perHour ? r.node.perHour.toFixed(4) : "–")) },
  { name: "cpu", title: "CPU", by: (n) => n.fill.cpu, draw: bar((r) => r.node.fill.cpu) },
  { name: "memory", title: "Memory", by: (n) => n.fill.memory, draw: bar((r) => r.node.fill.memory) },
  { name: "pods", title: "Pods", by: (n) => n.pods.length, draw: pods },
];

const nodeFields = {
  words: (n) => n.words, pool: (n) => n.pool || "", zone: (n) => n.zone || "", type: (n) => n.instanceType || "", state: (n) => n.state, capacity: (n) => n.capacityType || "",
  owner: (n) => [...n.owners].join(" "), name: (n) => n.title, note: (n) => n.note || "",
};

const groupsOf = { pool: (n) => [n.pool || "no NodePool"], zone: (n) => [n.zone || "no zone yet"], owner: (n) => n.owners };

function nodeRows(model, { query, group, sort, folded }) {
  const matches = query.trim() ? matcher(query, nodeFields) : () => true;
  const found = [];
  for (const node of model.nodes.values()) if (matches(node)) found.push(node);
  ordered(found, nodeColumns, sort || "name");
  const said = `${found.length} of ${model.nodes.size} nodes`;
  if (!groupsOf[group]) return Object.assign(found.map((node) => ({ key: node.key, node })), { said });
  const groups = new Map();
  for (const node of found) {
    for (const name of groupsOf[group](node)) {
      const members = groups.get(name);
      if (members) members.push(node); else groups.set(name, [node]);
    }
  }
  const rows = [];
  for (const name of [...groups.keys()].sort()) {
    const members = groups.get(name), key = "group " + name, open = !folded.has(key);
    rows.push({ key, group: true, open, name, members, currency: model.cost.currency });
    if (open) for (const node of members) rows.push({ key: name + " " + node.key, node, level: 2 });
  }
  return Object.assign(rows, { said });
}

// groupCells fills the cells of a group's row, in the order of the columns. Sums are made only for rows that are drawn.
function groupCells(row) {
  let price = 0, cpu = 0, memory = 0, allCPU = 0, allMemory = 0, count = 0;
  for (const n of row.members) {
    price += n.perHour; count += n.pods.length;
    cpu += n.requested.cpu; allCPU += n.allocatable.cpu; memory += n.requested.memory; allMemory += n.allocatable.memory;
  }
  return [`${row.open ? "▾" : "▸"} ${row.name}`, `${row.members.length} nodes`, "", "", "", price.toFixed(3), allCPU ? percent(cpu / allCPU) : "", allMemory ? percent(memory / allMemory) : "", count + " pods"];
}

const pendingColumns = [
  { name: "name", title: "Pod", by: (p) => p.namespace + "/" + p.name, draw: text((r) => r.pod.namespace + "/" + r.pod.name) },
  { name: "owner", title: "Owner", by: (p) => p.owner || "", draw: text((r) => r.pod.owner) },
  { name: "state", title: "State", by: (p) => p.state, draw: text((r) => r.pod.state) },
  { name: "cpu", title: "CPU", by: (p) => p.cpu, draw: number((r) => cores(r.pod.cpu)) },
  { name: "memory", title: "GiB", by: (p) => p.memory, draw: number((r) => gibibytes(r.pod.memory)) },
  { name: "age", title: "Age", by: (p) => p.created, draw: number((r) => age(r.pod.created)) },
  { name: "reason", title: "Why it waits", by: (p) => p.reason || "", draw: text((r) => r.pod.reason) },
];

const workflowColumns = [
  { name: "type", title: "Workflow", by: (w) => w.type, draw: text((r) => r.workflow.type) },
  { name: "summary", title: "What it does", by: (w) => w.summary || "", draw: text((r) => r.workflow.summary || r.workflow.id) },
  { name: "phase", title: "Phase", by: (w) => w.phase || "", draw: text((r) => r.workflow.phase) },
  { name: "node", title: "Node", by: (w) => w.node || w.nodeClaim || "", draw: text((r) => r.workflow.node || r.workflow.nodeClaim) },
  { name: "reason", title: "Reason", by: (w) => w.reason || "", draw: text((r) => r.workflow.reason) },
  { name: "age", title: "Age", by: (w) => w.started, draw: number((r) => age(r.workflow.started)) },
  { name: "link", title: "Temporal", draw: (cell, row) => link(cell, row.link) },
];

function link(cell, address) {
  if (!address) { cell.replaceChildren(); return; }
  cell.replaceChildren(element("a", { href: address, target: "_blank", rel: "noopener noreferrer", text: "history" }));
}

const anyNumber = (n) => (n < 0 ? "any" : n);
const poolColumns = [
  { name: "pool", title: "NodePool", by: (b) => b.pool, draw: text((r) => r.budget.pool) },
  { name: "reason", title: "Reason", by: (b) => b.reason, draw: text((r) => r.budget.reason) },
  { name: "nodes", title: "Nodes", by: (b) => b.nodes, draw: number((r) => r.budget.nodes) },
  { name: "disrupting", title: "Disrupted", by: (b) => b.disrupting, draw: number((r) => r.budget.disrupting) },
  { name: "allowed", title: "Allowed", by: (b) => b.allowed, draw: number((r) => anyNumber(r.budget.allowed)) },
  { name: "left", title: "Left", by: (b) => b.left, draw: number((r) => anyNumber(r.budget.left)) },
  { name: "opens", title: "More at", by: (b) => b.opens || "", draw: text((r) => r.budget.mistake || (r.budget.opens ? clock(r.budget.opens) : "")) },
];

const decisionColumns = [
  { name: "at", title: "When", by: (d) => d.at, draw: text((r) => clock(r.decision.at)) },
  { name: "type", title: "Workflow", by: (d) => d.type, draw: text((r) => r.decision.type) },
  { name: "what", title: "What", by: (d) => d.what, draw: text((r) => r.decision.what) },
  { name: "why", title: "Why", by: (d) => d.why || "", draw: text((r) => r.decision.why) },
  { name: "saves", title: "Saves per hour", by: (d) => d.savesPerHour || 0, draw: number((r) => (r.decision.savesPerHour ? money(r.currency, r.decision.savesPerHour) : "")) },
  { name: "outcome", title: "Outcome", by: (d) => d.outcome || "", draw: text((r) => r.decision.outcome || "under way") },
  { name: "link", title: "Temporal", draw: (cell, row) => link(cell, row.link) },
];

// flat is a tab whose rows are not grouped.
function flat(label, needs, columns, read, wrap, sort) {
  return { label, needs, columns, rows(model, state) {
    const words = (item) => Object.values(item).join(" ").toLowerCase();
    const fields = { words, ...Object.fromEntries(columns.filter((c) => c.by).map((c) => [c.name, c.by])) };
    const all = read(model), matches = matcher(state.query, fields);
    const found = ordered(state.query.trim() ? all.filter(matches) : [...all], columns, state.sort || sort);
    return Object.assign(found.map((item) => wrap(item, model)), { said: `${found.length} of ${all.length}` });
  } };
}

export const tabs = {
  nodes: { label: "Nodes", needs: "nodes", columns: nodeColumns, rows: nodeRows, groupCells },
  pending: flat("Pending pods", "pending", pendingColumns, (m) => [...m.pending.values()], (pod) => ({ key: pod.uid, pod }), "age"),
  workflows: flat("Workflows", "workflows", workflowColumns, (m) => m.workflows, (w, m) => ({ key: w.id + w.run, workflow: w, link: m.link(w.id, w.run) }), "-age"),
  pools: flat("Budgets", "pools", poolColumns, (m) => m.pools.flatMap((p) => p.budgets.map((b) => ({ ...b, pool: p.name, nodes: p.nodes, disrupting: p.disrupting }))),
    (budget) => ({ key: budget.pool + budget.reason, budget }), "pool"),
  decisions: flat("Decisions", "decisions", decisionColumns, (m) => m.decisions, (d, m) => ({ key: d.id + d.run, decision: d, link: m.link(d.id, d.run), currency: m.cost.currency }), "-at"),
};
for (const [name, tab] of Object.entries(tabs)) tab.name = name;
