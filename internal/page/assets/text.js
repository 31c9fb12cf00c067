// How numbers and times are written. Everything the cluster says is put into the page as text, never as HTML.
export const byId = (id) => document.getElementById(id);

export function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") made.textContent = value;
    else if (name === "class") made.className = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export const money = (currency, amount) => (currency === "CNY" ? "CNY " : "$") + amount.toFixed(amount < 100 ? 3 : 1);
export const percent = (share) => Math.round(100 * share) + " %";
export const cores = (cpu) => (cpu / 1000).toFixed(cpu % 1000 ? 1 : 0);
export const gibibytes = (bytes) => (bytes / 2 ** 30).toFixed(1);

export function age(since) {
  const seconds = Math.max(0, (Date.now() - Date.parse(since)) / 1000);
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["m", 60]]) if (seconds >= 2 * length) return Math.floor(seconds / length) + unit;
  return Math.floor(seconds) + "s";
}

const times = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const days = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
export function clock(at) {
  const time = new Date(at);
  return (Math.abs(Date.now() - time) < 12 * 3600e3 ? times : days).format(time);
}

// paused says in a sentence what is stopped, where, by whom, until when and why.
export function paused({ what, nodePool, observed, by, until, reason }) {
  const where = nodePool ? "for NodePool " + nodePool : "in the whole cluster";
  if (observed) return "everything is only observed " + where;
  return `${what} is paused ${where}` + (by ? " by " + by : "") + (until ? " until " + clock(until) : "") + (reason ? ": " + reason : "");
}
