// Light and dark, on the page and in its plots; the choice of the reader is stored.
const wideflowTheme = (() => {
  const root = document.documentElement;
  const storedTheme = () => { try { return localStorage.getItem("wideflow-theme"); } catch { return null; } };
  const storeTheme = (theme) => { try { localStorage.setItem("wideflow-theme", theme); } catch { /* no storage from disk */ } };
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
  const currentTheme = () => storedTheme() ?? (preferred.matches ? "dark" : "light");
  root.dataset.theme = currentTheme();
  document.getElementById("theme").addEventListener("click", () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    storeTheme(theme);
    paint(theme);
  });
  preferred.addEventListener("change", () => { if (storedTheme() === null) paint(currentTheme()); });
  return { root, models, paint, currentTheme };
})();
