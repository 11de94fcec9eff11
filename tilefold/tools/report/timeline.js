(() => {
  for (const chart of document.querySelectorAll(".timeline svg")) {
    const figure = chart.closest("figure"), told = figure.querySelector(".told"), acts = figure.querySelectorAll("ul > li");
    const rows = [...chart.querySelectorAll("g")], scale = Number(chart.dataset.cycles);
    let at = null;
    const begin = (rect) => rect.x.baseVal.value, end = (rect) => begin(rect) + rect.width.baseVal.value;
    function tell(rect) {
      if (!rect) return;
      at?.classList.remove("at");
      at = rect;
      at.classList.add("at");
      const when = `${Math.round(begin(at) * scale)}–${Math.round(end(at) * scale)}`;
      const act = acts[at.dataset.e].cloneNode(true);
      told.replaceChildren(`${at.parentElement.dataset.name}. Cycles ${when}: `, ...act.childNodes);
    }
    const near = (row) => {
      const rects = [...row.querySelectorAll("rect")], middle = at ? (begin(at) + end(at)) / 2 : 0;
      return rects.find((rect) => begin(rect) <= middle && middle < end(rect)) ?? rects[0];
    };
    chart.addEventListener("click", (event) => tell(event.target.closest("rect")));
    chart.addEventListener("mouseover", (event) => tell(event.target.closest("rect")));
    chart.addEventListener("keydown", (event) => {
      const row = at?.parentElement, next = (by) => rows[Math.min(rows.length - 1, Math.max(0, rows.indexOf(row) + by))];
      const step = {
        ArrowRight: () => (at ? at.nextElementSibling : near(rows[0])), ArrowLeft: () => at?.previousElementSibling,
        ArrowDown: () => near(next(1)), ArrowUp: () => near(next(-1)),
        Home: () => row?.querySelector("rect"), End: () => row?.querySelector("rect:last-of-type"),
      }[event.key];
      if (step) {
        const rect = step();
        if (rect?.tagName === "rect") tell(rect);
      } else if (event.key === "Enter") told.querySelector("a")?.click();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }
})();
