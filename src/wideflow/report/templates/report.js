"use strict";
(() => {
  const root = document.documentElement;
  const kept = () => { try { return localStorage.getItem("wideflow-theme"); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem("wideflow-theme", theme); } catch { /* no storage from disk */ } };
  const models = () => Bokeh.documents.flatMap((doc) => [...doc.all_models]);

  const inks = { light: { text: "#1d2126", line: "#8a929b", grid: "#d5dae0" }, dark: { text: "#dfe3e8", line: "#7d8792", grid: "#48515b" } };
  const paint = (theme) => {
    root.dataset.theme = theme;
    const ink = inks[theme];
    if (typeof Bokeh === "undefined") return;
    for (const model of models()) {
      const type = model.type ?? "";
      if (type.endsWith("Axis")) {
        model.axis_label_text_color = ink.text;
        model.major_label_text_color = ink.text;
        model.axis_line_color = ink.line;
        model.major_tick_line_color = ink.line;
      } else if (type === "Grid") model.grid_line_color = ink.grid;
      else if (type === "Title") model.text_color = ink.text;
      else if (type === "Legend") model.label_text_color = ink.text;
      else if (type === "ColorBar") { model.title_text_color = ink.text; model.major_label_text_color = ink.text; }
    }
  };

  const preferred = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => kept() ?? (preferred.matches ? "dark" : "light");
  root.dataset.theme = chosen();
  document.getElementById("theme").addEventListener("click", () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    keep(theme);
    paint(theme);
  });
  preferred.addEventListener("change", () => { if (kept() === null) paint(chosen()); });

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
  window.addEventListener("beforeprint", () => document.querySelectorAll(".panel.waiting").forEach(drawn));

  const ready = () => typeof Bokeh !== "undefined" && Bokeh.documents.length > 0;
  const wait = setInterval(() => { if (ready()) { clearInterval(wait); paint(chosen()); } }, 50);

  for (const button of document.querySelectorAll(".entry")) {
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      for (const model of models()) if (model.tags?.includes(button.dataset.entry)) model.visible = shown;
    });
  }
})();
