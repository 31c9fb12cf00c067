// Grid draws the rows of a list that can be seen, in elements that it uses again for others. Arrow keys move in it.
import { element } from "./text.js";

const height = 28, beyond = 4;

export class Grid {
  #tab = null;
  #rows = [];
  #slots = [];
  #active = 0;
  #sort = "";

  constructor(grid, head, body, on) {
    Object.assign(this, { grid, head, body, on });
    grid.addEventListener("scroll", () => this.#soon(), { passive: true });
    grid.addEventListener("keydown", (event) => this.#key(event));
    body.addEventListener("click", (event) => this.#click(event));
    new ResizeObserver(() => this.#soon()).observe(grid);
  }

  focus() { this.grid.focus(); }

  show(tab, rows, state) {
    const other = tab !== this.#tab, key = this.#rows[this.#active]?.key;
    this.#rows = rows;
    if (other) { this.#slots = []; this.body.replaceChildren(); this.grid.scrollTop = 0; this.#active = 0; }
    else if (rows[this.#active]?.key !== key) {
      const now = rows.findIndex((row) => row.key === key);
      this.#active = now < 0 ? Math.min(this.#active, Math.max(0, rows.length - 1)) : now;
    }
    if (other || this.#sort !== state.sort) this.#drawHead(tab, state.sort);
    [this.#tab, this.#sort] = [tab, state.sort];
    this.grid.setAttribute("aria-label", tab.label);
    this.grid.setAttribute("aria-rowcount", rows.length + 1);
    const tall = rows.length * height + "px";
    if (this.body.style.height !== tall) this.body.style.height = tall;
    this.#draw();
  }

  #drawHead(tab, sort) {
    const row = element("div", { role: "row", class: "row " + tab.name, "aria-rowindex": 1 });
    for (const column of tab.columns) {
      const cell = element("div", { role: "columnheader" });
      if (column.by) {
        const button = element("button", { type: "button", text: column.title });
        if (sort.replace("-", "") === column.name) { cell.setAttribute("aria-sort", sort.startsWith("-") ? "descending" : "ascending"); button.textContent += sort.startsWith("-") ? " ↓" : " ↑"; }
        button.addEventListener("click", () => this.on.sort(column.name));
        cell.append(button);
      } else cell.textContent = column.title;
      row.append(cell);
    }
    this.head.replaceChildren(row);
  }

  #due = false;
  #soon() {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => { this.#due = false; this.#draw(); });
  }

  #draw() {
    if (!this.#tab) return;
    const first = Math.max(0, Math.floor(this.grid.scrollTop / height) - beyond);
    const last = Math.min(this.#rows.length, Math.ceil((this.grid.scrollTop + this.grid.clientHeight) / height) + beyond);
    const room = Math.ceil(this.grid.clientHeight / height) + 2 * beyond + 1;
    while (this.#slots.length < room) this.#slots.push(this.#slot());
    for (let i = 0; i < this.#slots.length; i++) {
      // Slot i shows the row between first and last whose index has the remainder i.
      const index = first + ((i - first) % this.#slots.length + this.#slots.length) % this.#slots.length;
      this.#fill(this.#slots[i], index < last ? index : -1);
    }
    this.grid.setAttribute("aria-activedescendant", this.#rows.length ? "row-" + this.#active : "");
  }

  #slot() {
    const row = element("div", { role: "row" });
    const cells = this.#tab.columns.map(() => element("div", { role: "gridcell" }));
    row.append(...cells);
    this.body.append(row);
    return { row, cells, index: -2, item: null, kind: "" };
  }

  #fill(slot, index) {
    const row = this.#rows[index], item = row?.node || row?.pod || row?.workflow || row?.decision || row, active = index === this.#active;
    if (slot.index !== index) {
      slot.row.hidden = index < 0;
      slot.index = index;
      slot.row.style.transform = `translateY(${index * height}px)`;
      slot.row.id = "row-" + index;
      slot.row.setAttribute("aria-rowindex", index + 2);
      slot.item = null;
    }
    if (!row) return;
    const kind = `row ${this.#tab.name}${row.group ? " group" : ""}${active ? " active" : ""}`;
    if (slot.kind !== kind) { slot.kind = kind; slot.row.className = kind; }
    if (slot.item === item && slot.level === row.level) return;
    [slot.item, slot.level] = [item, row.level];
    if (row.group) {
      slot.row.setAttribute("aria-expanded", String(row.open));
      slot.row.setAttribute("aria-level", 1);
      this.#tab.groupCells(row).forEach((text, i) => { slot.cells[i].className = i === 5 ? "number" : ""; slot.cells[i].textContent = text; });
      slot.grouped = true;
      return;
    }
    slot.row.removeAttribute("aria-expanded");
    slot.row.setAttribute("aria-level", row.level || 1);
    if (slot.grouped) { slot.cells.forEach((cell) => { cell.replaceChildren(); cell.className = ""; }); slot.grouped = false; }
    this.#tab.columns.forEach((column, i) => column.draw(slot.cells[i], row));
  }

  #move(to) {
    this.#active = Math.max(0, Math.min(this.#rows.length - 1, to));
    const top = this.#active * height, room = this.grid.clientHeight - this.head.offsetHeight;
    if (top < this.grid.scrollTop) this.grid.scrollTop = top;
    else if (top + height > this.grid.scrollTop + room) this.grid.scrollTop = top + height - room;
    this.#draw();
  }

  #key(event) {
    if (event.target !== this.grid) return;
    const row = this.#rows[this.#active], page = Math.floor(this.grid.clientHeight / height) - 2;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    if (event.key in steps) this.#move(this.#active + steps[event.key]);
    else if (event.key === "Home") this.#move(0);
    else if (event.key === "End") this.#move(this.#rows.length - 1);
    else if (event.key === "ArrowLeft" && row) {
      if (row.group) this.on.fold(row, false);
      else { let up = this.#active; while (up > 0 && !this.#rows[up].group) up--; this.#move(up); }
    } else if (event.key === "ArrowRight" && row?.group) this.on.fold(row, true);
    else if (event.key === "Enter" && row) { if (row.link) window.open(row.link, "_blank", "noopener"); else this.on.open(row); }
    else return;
    event.preventDefault();
  }

  #click(event) {
    const slot = this.#slots.find((s) => s.row.contains(event.target));
    if (!slot || !this.#rows[slot.index] || event.target.tagName === "A") return;
    this.#active = slot.index;
    this.#draw();
    this.on.open(this.#rows[slot.index]);
  }
}
