"use strict";
(() => {
  const { root, models, paint, currentTheme } = wideflowTheme;

  // Plots are drawn when the reader comes near them: a page of a hundred opens at once.
  const entries = () => [...document.querySelectorAll('.entry[aria-pressed="false"]')].map((button) => button.dataset.entry);
  const drawn = async (panel) => {
    if (!panel.classList.contains("waiting")) return;
    panel.classList.remove("waiting");
    const item = JSON.parse(panel.querySelector("script").textContent);
    await Bokeh.embed.embed_item(item);
    paint(root.dataset.theme);
    const hidden = new Set(entries());
    for (const model of models()) if (model.tags?.some((tag) => hidden.has(tag))) model.visible = false;
  };
  const near = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) if (isIntersecting) { near.unobserve(target); drawn(target); }
  }, { rootMargin: "600px" });
  for (const panel of document.querySelectorAll(".panel.waiting")) near.observe(panel);

  // On paper the drawn picture stands in for the live plots, which cannot be finished in time; folded claims are opened.
  const folded = [];
  window.addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details.judged:not([open])")) { fold.open = true; folded.push(fold); }
  });
  window.addEventListener("afterprint", () => { while (folded.length) folded.pop().open = false; });

  const ready = () => typeof Bokeh !== "undefined" && Bokeh.documents.length > 0;
  const wait = setInterval(() => { if (ready()) { clearInterval(wait); paint(currentTheme()); } }, 50);

  for (const button of document.querySelectorAll(".entry")) {
    button.addEventListener("click", () => {
      const visible = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(visible));
      for (const model of models()) if (model.tags?.includes(button.dataset.entry)) model.visible = visible;
    });
  }
})();
