// Model is the cluster as the worker has told it: the whole view once, and then what has changed.
const empty = () => ({ nodes: 0, pods: 0, pending: 0, coming: 0, leaving: 0, fill: { cpu: 0, memory: 0 } });

export class Model {
  name = "";
  nodes = new Map();
  pending = new Map();
  pools = [];
  pauses = [];
  workflows = [];
  decisions = [];
  totals = empty();
  cost = { currency: "USD", perHour: 0, onDemand: 0, saved: 0 };
  stale = "";
  trouble = "";
  // temporal is the address before a workflow's id in Temporal's UI; empty if it is not known.
  temporal = "";
  // dirty has the names of what has changed since the last drawing.
  dirty = new Set();

  start({ view, temporal }) {
    this.temporal = temporal || "";
    this.name = view.name;
    this.nodes = new Map(view.nodes.map((node) => [node.key, prepared(node)]));
    this.pending = new Map(view.pending.map((pod) => [pod.uid, pod]));
    for (const name of fields) this[name] = view[name] ?? "";
    this.dirty = new Set(["nodes", "pending", ...fields]);
  }

  apply(delta) {
    for (const key of delta.nodesGone || []) this.nodes.delete(key);
    for (const node of delta.nodes || []) this.nodes.set(node.key, prepared(node));
    if (delta.nodes || delta.nodesGone) this.dirty.add("nodes");
    for (const uid of delta.pendingGone || []) this.pending.delete(uid);
    for (const pod of delta.pending || []) this.pending.set(pod.uid, pod);
    if (delta.pending || delta.pendingGone) this.dirty.add("pending");
    for (const name of fields) if (name in delta) { this[name] = delta[name]; this.dirty.add(name); }
  }

  link(workflow, run) {
    return this.temporal && this.temporal + encodeURIComponent(workflow) + (run ? "/" + encodeURIComponent(run) : "");
  }
}

const fields = ["cost", "totals", "pools", "pauses", "workflows", "decisions", "stale", "trouble"];

// prepared adds to a node what sorting and filtering ask of it again and again.
function prepared(node) {
  node.title = node.name || node.claim;
  const words = [node.title, node.claim, node.pool, node.zone, node.instanceType, node.capacityType, node.state, node.note];
  node.owners = new Set();
  for (const pod of node.pods) {
    node.owners.add(pod.owner ? pod.namespace + " " + pod.owner : pod.namespace + " (no owner)");
    words.push(pod.namespace + "/" + pod.name);
  }
  for (const owner of node.owners) words.push(owner);
  node.words = words.join(" ").toLowerCase();
  return node;
}
