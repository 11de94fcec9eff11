"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const source = byId("source"), popup = byId("popup");
  const lines = [...document.querySelectorAll(".src")];
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const code = new Map();
  for (const line of document.querySelectorAll("#forms [data-s]")) {
    if (!line.dataset.s) continue;
    if (!code.has(line.dataset.s)) code.set(line.dataset.s, []);
    code.get(line.dataset.s).push(line);
  }
  let selected = null;
  const show = (line) => line.scrollIntoView({ block: "nearest" });
  const visible = (panel) => (code.get(selected?.dataset.s) ?? []).find((line) => panel.contains(line));
  const panel = () => document.querySelector("[role=tabpanel]:not([hidden])");
  function select(line, from) {
    if (!line) return;
    for (const old of document.querySelectorAll(".on")) old.classList.remove("on");
    if (selected) selected.setAttribute("aria-selected", "false");
    selected = line;
    line.setAttribute("aria-selected", "true");
    source.setAttribute("aria-activedescendant", line.id);
    for (const part of code.get(line.dataset.s) ?? []) part.classList.add("on");
    if (from !== source) show(line);
    const first = visible(panel());
    if (first && from !== byId("forms")) show(first);
  }
  function open(tab) {
    for (const other of tabs) {
      other.setAttribute("aria-selected", String(other === tab));
      byId(other.getAttribute("aria-controls")).hidden = other !== tab;
    }
    const first = visible(panel());
    if (first) show(first);
  }
  function step(by) {
    const at = lines.indexOf(selected);
    select(lines[Math.min(lines.length - 1, Math.max(0, at + by))]);
  }
  function next() {
    const at = lines.indexOf(selected);
    select(lines.slice(at + 1).find((line) => line.nextElementSibling?.classList.contains("note")));
  }
  source.addEventListener("click", (event) => select(event.target.closest(".src"), source));
  byId("forms").addEventListener("click", (event) => {
    const part = event.target.closest("[data-s]");
    if (part?.dataset.s && !event.target.closest("a")) select(byId("s" + part.dataset.s), byId("forms"));
  });
  for (const tab of tabs) tab.addEventListener("click", () => open(tab));
  const jump = () => { if (/^#s\d+$/.test(location.hash)) select(byId(location.hash.slice(1))); };
  function begin() {  // at the kernel's first line, at the top of its pane
    const first = byId(document.body.dataset.first);
    if (!first || location.hash) return jump();
    select(first, source);
    source.scrollTop = first.offsetTop - source.clientHeight / 8;
    scrollTo(0, 0);
  }
  addEventListener("hashchange", jump);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inSource = document.activeElement === source;
    if (event.key === "j" || (inSource && event.key === "ArrowDown")) step(1);
    else if (event.key === "k" || (inSource && event.key === "ArrowUp")) step(-1);
    else if (event.key === "n") next();
    else if (event.key === "Escape") hide();
    else if (tabs[Number(event.key) - 1]) open(tabs[Number(event.key) - 1]);
    else if (event.target.role === "tab" && /^Arrow(Left|Right)$/.test(event.key)) {
      const to = tabs[(tabs.indexOf(event.target) + (event.key === "ArrowLeft" ? -1 : 1) + tabs.length) % tabs.length];
      open(to);
      to.focus();
    } else return;
    event.preventDefault();
  });
  function hide() { popup.hidden = true; popup.replaceChildren(); }
  function picture(event) {
    const layout = event.target.closest?.(".layout");
    if (!layout) return;
    popup.replaceChildren(byId("p" + layout.dataset.p).cloneNode(true));
    popup.hidden = false;
    const box = layout.getBoundingClientRect(), size = popup.getBoundingClientRect();
    popup.style.left = Math.max(8, Math.min(box.left, innerWidth - size.width - 8)) + "px";
    const below = box.bottom + 6;
    popup.style.top = (below + size.height < innerHeight ? below : Math.max(8, box.top - size.height - 6)) + "px";
  }
  const leave = (event) => { if (event.target.closest?.(".layout")) hide(); };
  for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, picture);
  for (const kind of ["mouseout", "focusout"]) document.addEventListener(kind, leave);
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("#passes details:not([open])")];
    for (const part of closed) part.open = true;
  });
  addEventListener("afterprint", () => { for (const part of closed) part.open = false; });
  begin();
  document.documentElement.dataset.ready = "true";
})();
