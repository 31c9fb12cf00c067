// Details is the panel about one node or one pod, with the reasons that `tenon why` gives.
import { age, byId, clock, cores, element, gibibytes, money, percent } from "./text.js";

export class Details {
  #node = "";
  #seen = null;
  #asked = 0;

  constructor(model, closed) { Object.assign(this, { model, closed }); }

  close() {
    if (byId("details").hidden) return;
    byId("details").hidden = true;
    this.#node = "";
    this.#asked++;
    this.closed();
  }

  #open(title) {
    byId("details").hidden = false;
    byId("details-title").textContent = title;
    byId("details-title").focus();
    return ++this.#asked;
  }

  // update draws the node anew if it has changed while the panel shows it.
  update() {
    if (!this.#node) return;
    const node = this.model.nodes.get(this.#node);
    if (node && node !== this.#seen) { this.#seen = node; byId("pods-of-node")?.replaceWith(this.#pods(node)); byId("facts-of-node")?.replaceWith(this.#facts(node)); }
  }

  async showNode(key) {
    const node = this.model.nodes.get(key) || [...this.model.nodes.values()].find((n) => n.name === key);
    if (!node) return;
    const asked = this.#open(node.title);
    [this.#node, this.#seen] = [node.key, node];
    const more = element("div"), why = element("div", { "aria-live": "polite" });
    byId("details-body").replaceChildren(this.#facts(node), element("h3", { text: "Why it stays or goes" }), why, element("h3", { text: "Pods" }), this.#pods(node), more);
    load("api/nodes/" + encodeURIComponent(node.key)).then((full) => { if (asked === this.#asked) more.replaceChildren(...labels(full)); }, () => {});
    this.#ask(why, "api/why/nodes/" + encodeURIComponent(node.claim || node.name), nodeAnswer, asked);
  }

  showPod(pod) {
    const asked = this.#open(pod.namespace + "/" + pod.name);
    this.#node = "";
    const why = element("div", { "aria-live": "polite" });
    byId("details-body").replaceChildren(facts([["State", pod.state], ["Owner", pod.owner], ["CPU", cores(pod.cpu)], ["Memory", gibibytes(pod.memory) + " GiB"], ["Created", clock(pod.created)], ["Expected on", pod.node], ["Reason", pod.reason]]),
      element("h3", { text: "Why it waits" }), why);
    if (["Unjudged", "Promised", "Waits"].includes(pod.state)) this.#ask(why, `api/why/pods/${encodeURIComponent(pod.namespace)}/${encodeURIComponent(pod.name)}`, podAnswer, asked);
    else why.textContent = pod.reason || "it has a node";
  }

  async #ask(at, address, draw, asked) {
    at.textContent = "asking the worker…";
    try {
      const answer = await load(address);
      if (asked === this.#asked) at.replaceChildren(...draw(answer));
    } catch (err) {
      if (asked === this.#asked) at.textContent = err.message;
    }
  }

  #facts(node) {
    const list = facts([["NodeClaim", node.claim], ["NodePool", node.pool], ["State", node.state + (node.note ? ": " + node.note : "")],
      ["Machine", [node.capacityType, node.instanceType, node.zone && "in " + node.zone, node.arch].filter(Boolean).join(" ")], ["Age", age(node.created)],
      ["Per hour", node.perHour ? money(this.model.cost.currency, node.perHour) + (node.onDemand > node.perHour ? ` (${money(this.model.cost.currency, node.onDemand)} on demand)` : "") : "not known"],
      ["CPU", `${cores(node.requested.cpu)} of ${cores(node.allocatable.cpu)} (${percent(node.fill.cpu)})`],
      ["Memory", `${gibibytes(node.requested.memory)} of ${gibibytes(node.allocatable.memory)} GiB (${percent(node.fill.memory)})`],
      ...(node.allocatable.others || []).map((o) => [o.name, `${(node.requested.others || []).find((r) => r.name === o.name)?.value || 0} of ${o.value}`]),
      ["On its way", node.promised ? node.promised + " pods" : ""], ["Replacement", node.replacement]]);
    list.id = "facts-of-node";
    const life = node.claim && this.model.link(this.model.name + "/nodeclaim/" + node.claim);
    if (life) list.append(element("dt", { text: "Life" }), element("dd", {}, element("a", { href: life, target: "_blank", rel: "noopener noreferrer", text: "in Temporal" })));
    const asked = node.approval && this.model.link(this.model.name + "/approval/" + node.approval);
    if (asked) list.append(element("dt", { text: "Approval" }), element("dd", {}, element("a", { href: asked, target: "_blank", rel: "noopener noreferrer", text: node.approval + " in Temporal" })));
    return list;
  }

  #pods(node) {
    const table = element("table", { id: "pods-of-node" }, row("th", ["Pod", "Owner", "State", "CPU", "GiB"]));
    for (const pod of node.pods) table.append(row("td", [pod.namespace + "/" + pod.name, pod.owner || "", pod.state, cores(pod.cpu), gibibytes(pod.memory)]));
    return table;
  }
}

async function load(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
  return answer.json();
}

function row(tag, texts) { return element("tr", {}, ...texts.map((text) => element(tag, tag === "th" ? { scope: "col", text } : { text }))); }

function facts(pairs) {
  const list = element("dl");
  for (const [name, value] of pairs) if (value) list.append(element("dt", { text: name }), element("dd", { text: value }));
  return list;
}

function labels(full) {
  const parts = [];
  const add = (title, texts) => { if (texts.length) parts.push(element("h3", { text: title }), element("ul", {}, ...texts.map((text) => element("li", { text })))); };
  add("Taints", full.taints || []);
  add("Labels", Object.entries(full.labels || {}).sort().map(([name, value]) => name + "=" + value));
  return parts;
}

function nodeAnswer(answer) {
  if (!answer.known) return [element("p", { text: "the worker has not seen it yet; ask again in a moment" })];
  if (!answer.managed) return [element("p", { text: "it has no NodeClaim of a NodePool, so Tenon did not launch it and does not remove it" })];
  const parts = [];
  if (answer.leaving) parts.push(element("p", { text: "it is being removed" + (answer.replacement ? ` by replacement ${answer.replacement}` : "") }));
  if (answer.going) parts.push(element("p", { text: `it goes: ${answer.going.reason}${answer.going.why ? ", " + answer.going.why : ""}` }));
  if (answer.verdicts?.length) {
    const table = element("table", {}, row("th", ["Reason", "Cause", "It stays because"]));
    for (const v of answer.verdicts) table.append(row("td", [v.reason, v.cause, v.message + (v.until ? ` (until ${clock(v.until)})` : "")]));
    parts.push(table);
  }
  return parts.length ? parts : [element("p", { text: "there is no reason for it to go" })];
}

function podAnswer(answer) {
  const says = {
    Unknown: "the worker does not plan for it at present", Promised: "a plan was made for it: it is meant for " + answer.node, Fits: "it fits on " + answer.node,
    Launch: `the next plan launches a node for it: NodePool ${answer.nodePool}, ${answer.capacityType} ${(answer.instanceTypes || []).join(" or ")} in ${(answer.zones || []).join(" or ")}`,
    Unplaced: "no node can be provisioned for it",
  };
  const parts = [element("p", { text: says[answer.verdict] || answer.verdict })];
  if (answer.reasons?.length) parts.push(element("ul", {}, ...answer.reasons.map((r) => element("li", { text: (r.nodePool ? `NodePool ${r.nodePool}: ` : "") + r.message }))));
  return parts;
}
