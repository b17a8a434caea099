"use strict";
(() => {
  const { paint, root, models } = wideflowTheme;
  const setup = JSON.parse(document.getElementById("setup").textContent);
  const $ = (id) => document.getElementById(id);
  const token = new URLSearchParams(location.search).get("token");
  const form = $("choices"), free = setup.scene === "free";
  let talk = null, count = 0, lost = false, state = "ready", uploads = setup.uploads ? [setup.uploads] : [], home = setup.home, step = 0, reached = "";
  const events = new Map();
  window.lab = { messages: [] }; // what the server has sent, for tests and for debugging

  const ask = (order) => { if (talk && !lost) talk.request = JSON.stringify({ ...order, count: ++count }); };
  const number = (value) => value === null || value === undefined ? "–" : Math.abs(value) < 1e-9 ? "0" : String(Number(Number(value).toPrecision(3)));
  const address = (query) => `${location.origin}/?token=${token}&${query}`;

  // the form
  const scaling = () => {
    const kind = $("scaling-kind").value;
    return kind === "zipf" ? `zipf:${$("gamma").value},${$("alpha").value}` : kind;
  };
  const place = () => {
    const choices = { scene: setup.scene, seed: form.elements.seed.value };
    if (form.elements.point) choices.point = form.elements.point.value;
    if (!free) return choices;
    for (const input of form.querySelectorAll("[name]")) {
      const field = input.closest(".field");
      if (input.value !== "" && !(field && field.hidden)) choices[input.name] = input.value;
    }
    choices.scaling = scaling();
    return choices;
  };
  const own = () => uploads.find((one) => one.code === form.elements.data.value);
  const kinds = () => {
    const data = form.elements.data.value, table = data.startsWith("uci:") || data.startsWith("upload:");
    return { generated: !table, wide: !table && !data.startsWith("wave"), noisy: !table && data !== "random-labels", table,
      upload: data.startsWith("upload:"), wave: data.startsWith("wave"), steps: form.elements.dynamics.value !== "flow", flow: form.elements.dynamics.value === "flow" };
  };
  const arrange = () => {
    if (!free) return;
    const present = kinds();
    for (const field of form.querySelectorAll(".field[data-only]")) if (field.dataset.only) field.hidden = !present[field.dataset.only];
    const depth = Number(form.elements.depth.value) > 1 ? "deep" : "shallow", list = $("scaling-kind");
    for (const option of list.options) option.hidden = option.disabled = Boolean(option.dataset.depth) && option.dataset.depth !== depth;
    if (list.selectedOptions[0]?.disabled) list.value = "ntk"; // a node scaling is for one layer, a parametrisation's name for several
    for (const field of form.querySelectorAll("[data-scaling]")) field.hidden = field.dataset.scaling !== $("scaling-kind").value;
    $("gamma-out").textContent = $("gamma").value;
    $("alpha-out").textContent = $("alpha").value;
    $("dynamics-help").textContent = present.flow ? "Flow is descent with vanishing steps, solved to a tolerance; there is no rate to choose. Time is the flow's own time, not seconds."
      : "Too large a rate makes the loss grow or oscillate. Time is rate × steps.";
    const target = form.elements.target, columns = own()?.columns ?? [], before = target.value || setup.choices.target;
    target.replaceChildren(...columns.map((name) => new Option(name, name)));
    target.value = columns.includes(before) ? before : columns.at(-1) ?? "";
    const last = target.value === columns.at(-1), classes = last ? own()?.classes ?? [] : []; // only the last column may hold names
    const positive = form.elements.positive, one = positive.value || setup.choices.positive;
    positive.replaceChildren(...classes.map((name) => new Option(name, name)));
    positive.value = classes.includes(one) ? one : classes[0] ?? "";
    positive.closest(".field").hidden = classes.length < 3; // two names are -1 and 1
  };
  const offer = () => {
    if (!free) return;
    $("own").hidden = uploads.length === 0;
    $("own").replaceChildren(...uploads.map((one) => new Option(`${one.name} (${one.rows} rows)`, one.code)));
  };
  const fill = () => {
    form.elements.seed.value = setup.seed;
    if (form.elements.point) form.elements.point.value = setup.choices.point;
    if (!free) return;
    offer();
    for (const [name, value] of Object.entries(setup.choices)) {
      const input = form.elements[name];
      if (input && !["scaling", "target", "positive"].includes(name)) input.value = value;
    }
    const choice = String(setup.choices.scaling), [kind, rest] = choice.split(":"), kinds = $("scaling-kind");
    if (kind === "zipf") {
      const [gamma, alpha] = (rest || "0.5,0.7").split(",");
      slide($("gamma"), gamma);
      slide($("alpha"), alpha);
    } else if (![...kinds.options].some((one) => one.value === choice)) kinds.append(new Option(choice, choice)); // only an address can ask for it
    kinds.value = kind === "zipf" ? kind : choice;
    arrange();
  };
  const slide = (input, value) => { // to the exact number in the address, even between the steps of the slider
    if (Math.abs(value / input.step - Math.round(value / input.step)) > 1e-9) input.step = "any";
    input.min = Math.min(input.min, value);
    input.max = Math.max(input.max, value);
    input.value = value;
  };
  const complete = () => {
    const empty = [...form.querySelectorAll('input[type="number"]')].find((input) => input.value === "" && !input.closest(".field").hidden);
    if (empty) trouble(`${empty.labels[0].textContent} needs a number${empty.min ? ` from ${empty.min} to ${empty.max}` : ""}.`);
    return !empty;
  };
  let soon = 0;
  const choose = () => { clearTimeout(soon); arrange(); if (complete()) ask({ do: "choose", place: place() }); };
  const later = () => { arrange(); clearTimeout(soon); soon = setTimeout(choose, 350); }; // a slider that is still moving

  // the run
  const trouble = (sentence) => { $("trouble").textContent = sentence; $("trouble").hidden = !sentence; };
  const show = (name, sentence) => {
    state = name;
    $("state").textContent = name;
    $("state").className = `chip ${name}`;
    if (sentence !== undefined) $("where").textContent = ["finished", "diverged"].includes(name) ? [sentence === name ? "" : sentence.replace(/^finished: /, ""), reached].filter(Boolean).join("; ") : name === "failed" ? "" : sentence || reached;
    $("start").textContent = name === "ready" ? "Start" : "Start again";
    $("pause").disabled = !["running", "paused"].includes(name);
    $("pause").textContent = name === "paused" ? "Resume" : "Pause";
    const focused = document.activeElement;
    $("reset").disabled = name === "ready";
    if (focused?.disabled) $("start").focus(); // a button that is disabled would lose the focus
    if (name === "running" && $("headline")?.textContent.startsWith("Evaluated for")) $("headline").textContent = "Evaluating the theorems for this network and these data.";
    if (name === "failed") { trouble(sentence); $("progress").value = 0; }
    sessionStorage.setItem("wideflow-running", ["running", "paused"].includes(name) ? home.link : "");
  };

  // the end of the server: announced once, and checked again
  const inputs = () => [...form.querySelectorAll("input, select"), ...["start", "pause", "reset", "pace", "compare"].map($).filter(Boolean)];
  const sentences = { ended: "The lab has ended: its terminal was closed, or Ctrl-C was pressed in it. The plots stay, but nothing runs. Start it again with: wideflow lab",
    anew: "The lab was restarted with a new token, so this page no longer belongs to it. Open the address that the terminal shows.",
    forgotten: "The connection was lost for too long, and the run of this tab has ended. The lab itself is still running.",
    waiting: "The connection to the lab is lost. Trying to reconnect." };
  const tell = (kind) => {
    if ($("lost").dataset.kind === kind) return;
    $("lost").dataset.kind = kind;
    $("lost").hidden = false;
    $("lost-words").textContent = sentences[kind];
    const apart = kind === "ended" || kind === "anew";
    $("lost-state").hidden = $("copy-state").hidden = !apart;
    $("lost-link").textContent = `&${home.link}`;
    $("reload").hidden = kind !== "forgotten";
    if (kind !== "waiting") { for (const input of inputs()) input.disabled = true; $("state").textContent = "ended"; $("state").className = "chip"; }
  };
  const look = async () => {
    if (!lost) return;
    let kind = "ended";
    try {
      const { status } = await fetch(`/alive?token=${token}&tab=${setup.tab}`);
      kind = { 204: "waiting", 403: "anew", 410: "forgotten" }[status] ?? "ended";
    } catch { /* nobody answers */ }
    if (lost) { tell(kind); setTimeout(look, 2000); }
  };
  const cut = () => { if (!lost) { lost = true; look(); } };
  const reconnected = () => { if (lost && $("lost").dataset.kind === "waiting") { lost = false; $("lost").hidden = true; $("lost").dataset.kind = ""; } };
  const fresh = () => {
    events.clear();
    if ($("elsewhere")) $("elsewhere").hidden = true;
    reached = "";
    delete document.body.dataset.prepared;
    $("progress").removeAttribute("value"); // the progress is not known yet
    if ($("verdicts")) {
      $("rows").replaceChildren();
      $("numbers").hidden = $("silent").hidden = true;
      $("headline").textContent = state === "ready" ? "Evaluated for this network and these data when the run starts." : "Evaluating the theorems for this network and these data.";
    }
    card();
  };
  const hideEmptyNote = () => { $("empty").hidden = Boolean(models().some((model) => model.type === "Figure")); };

  // the dial: the larger of the two numbers on a logarithmic line from a thousandth to ten
  const turn = (worst) => { const at = Math.min(1, Math.max(0, (Math.log10(Math.max(worst, 1e-9)) + 3) / 4)); return -90 + 180 * at; };
  const arc = (from, to) => {
    const point = (degrees) => { const a = (degrees - 90) * Math.PI / 180; return `${110 + 88 * Math.cos(a)} ${110 + 88 * Math.sin(a)}`; };
    return `M ${point(from)} A 88 88 0 0 1 ${point(to)}`;
  };
  const verdictOf = (now) => now.verdict === "between" ? "between lazy and rich" : now.verdict;
  const dial = (now, other) => {
    $("dial").hidden = !now;
    if (!now) return;
    const [low, high] = [turn(now.lazy), turn(now.rich)];
    const zones = $("dial").querySelectorAll(".zone");
    [[-90, low], [low, high], [high, 90]].forEach(([a, b], i) => zones[i].setAttribute("d", arc(a, b)));
    $("needle").style.transform = `rotate(${turn(now.richness ?? 0)}deg)`;
    $("other-needle").toggleAttribute("hidden", !other);
    $("dial-other").hidden = !other;
    if (other) {
      $("other-needle").style.transform = `rotate(${turn(other.richness ?? 0)}deg)`;
      $("dial-other").textContent = `For comparison, NTK: ${verdictOf(other)}, richness ${number(other.richness)} (the thin needle).`;
    }
    const words = verdictOf(now);
    $("dial").dataset.verdict = now.verdict;
    if ($("dial-words").textContent !== words) $("dial-words").textContent = words;
    $("dial-change").textContent = number(now.kernel_change);
    $("dial-gap").textContent = number(now.linearisation_gap);
    $("dial-richness").textContent = number(now.richness);
    $("dial-rule").textContent = `Here lazy means that both numbers are below ${now.lazy}, rich that one is above ${now.rich}.`;
  };

  const legend = (chips) => {
    const names = chips.map((chip) => chip.name).join("|");
    $("legend").hidden = chips.length === 0;
    if ($("legend").dataset.names === names && $("legend").children.length) return;
    $("legend").dataset.names = names;
    $("legend").replaceChildren(...chips.map((chip) => {
      const button = document.createElement("button"), line = document.createElement("i");
      button.type = "button";
      button.className = "entry";
      button.setAttribute("aria-pressed", "true");
      line.style.borderTop = `3px ${chip.dash === "solid" ? "solid" : chip.dash === "dotted" ? "dotted" : "dashed"} ${chip.colour}`;
      button.append(line, chip.name);
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        for (const model of models()) if (model.tags?.includes(`lab/${chip.name}`)) model.visible = on;
      });
      return button;
    }));
  };

  const kindsOf = { HOLDS: "holds", VIOLATED: "failed", VACUOUS: "declared", NOT_APPLICABLE: "" };
  const verdicts = (summary) => {
    if (!$("verdicts")) return;
    $("headline").textContent = summary.headline;
    const row = (cells) => {
      const line = document.createElement("tr");
      for (const cell of cells) { const td = document.createElement("td"); td.append(cell); line.append(td); }
      return line;
    };
    $("rows").replaceChildren(...summary.rows.map(([outcome, says, name, asks, why]) => {
      const chip = document.createElement("span"), source = document.createElement("span"), words = document.createElement("div");
      chip.className = `chip ${kindsOf[outcome]}`;
      chip.textContent = outcome.replace("_", " ").toLowerCase();
      source.className = "meta";
      source.textContent = ` ${name}`;
      words.append(says, source);
      return row([chip, words, asks, why]);
    }));
    $("silent").hidden = summary.silent.length === 0;
    $("silent-count").textContent = `Statements that do not apply here: ${summary.silent.length}`;
    $("silent-rows").replaceChildren(...summary.silent.flatMap(([names, why]) => {
      const term = document.createElement("dt"), reason = document.createElement("dd");
      term.textContent = names;
      reason.textContent = why;
      return [term, reason];
    }));
    $("numbers").hidden = summary.numbers.length === 0;
    $("number-rows").replaceChildren(...summary.numbers.map(row));
  };

  // the tour
  const card = () => {
    if (setup.steps.length === 0) return;
    const now = setup.steps[step], event = events.get(step);
    $("counter").textContent = `Step ${step + 1} of ${setup.steps.length}`;
    $("tour").dataset.happened = [...events.keys()].sort().join(",");
    if (!$("dots").children.length) $("dots").append(...setup.steps.map((_, i) => {
      const dot = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.addEventListener("click", () => go(i));
      dot.append(button);
      return dot;
    }));
    [...$("dots").querySelectorAll("button")].forEach((button, i) => {
      const moment = events.get(i);
      button.className = `${i === step ? "here" : ""} ${moment ? "came" : ""}`;
      button.textContent = moment ? "✓" : String(i + 1);
      button.setAttribute("aria-label", `step ${i + 1}, ${setup.steps[i].title}${moment ? ", its moment has occurred" : ""}`);
      if (i === step) button.setAttribute("aria-current", "step"); else button.removeAttribute("aria-current");
    });
    $("step-title").textContent = now.title;
    $("step-text").innerHTML = now.html; // rendered and escaped by the server
    $("step-moment").hidden = !event;
    if (event) $("step-moment").textContent = event.sentence;
    const focused = document.activeElement;
    $("back").disabled = step === 0;
    $("next").disabled = step === setup.steps.length - 1;
    if (focused?.disabled) $(focused === $("next") ? "back" : "next").focus();
    highlight();
  };
  const highlight = () => {
    const look = setup.steps[step]?.look;
    for (const model of models()) {
      if (model.type !== "Figure") continue;
      const on = Boolean(look) && model.title?.text === look;
      const others = model.css_classes.filter((name) => name !== "looked-at");
      if (on === (others.length === model.css_classes.length)) model.css_classes = on ? [...others, "looked-at"] : others;
    }
  };
  const framedPanel = (root = $("plots")) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.classList.contains("looked-at")) return element;
      const inner = element.shadowRoot && framedPanel(element.shadowRoot);
      if (inner) return inner;
    }
    return null;
  };
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const go = (to) => {
    $("elsewhere").hidden = true;
    step = Math.min(setup.steps.length - 1, Math.max(0, to));
    card();
    setTimeout(() => framedPanel()?.scrollIntoView({ block: "nearest", behavior: calm ? "auto" : "smooth" }), 150); // when the frame is drawn
  };

  // downloads and links
  const carry = (addresses) => {
    home = addresses;
    $("link").textContent = address(home.link);
    $("command").textContent = home.command;
    $("lines").textContent = home.lines;
    history.replaceState(null, "", address(home.link));
  };
  const take = async (event, kind) => {
    event.preventDefault();
    if (lost) { $("taken").textContent = "Nothing can be downloaded any more: the lab has ended."; return; }
    $("taken").textContent = "Preparing the file…";
    const answer = await fetch(`/take/${kind}?token=${token}&tab=${setup.tab}`);
    if (!answer.ok) { $("taken").textContent = await answer.text(); return; }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await answer.blob());
    link.download = answer.headers.get("Content-Disposition").match(/filename="(.*)"/)[1];
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    $("taken").textContent = `${link.download} was downloaded.`;
  };
  const upload = async () => {
    const file = $("file").files[0];
    if (!file) return;
    trouble("");
    let table;
    try {
      const answer = await fetch(`/upload?token=${token}&name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
      table = await answer.json();
    } catch { table = { trouble: `The file has ${(file.size / 2 ** 20).toFixed(1)} MB and could not be sent; at most ${setup.limit / 2 ** 20} MB are accepted.` }; }
    $("file").value = "";
    if (table.trouble) { trouble(table.trouble); return; }
    uploads.push(table);
    offer();
    form.elements.data.value = table.code;
    choose();
  };

  const receive = (message) => {
    window.lab.messages.push(message);
    if (window.lab.messages.length > 200) window.lab.messages.shift();
    if ("trouble" in message) trouble(message.trouble);
    if ("state" in message) show(message.state, message.sentence);
    if ("home" in message) carry(message.home);
    if ("fresh" in message) fresh();
    if ("prepared" in message) { document.body.dataset.prepared = "yes"; $("where").textContent = ""; $("progress").value = 0; resume(); }
    if ("point" in message) form.elements.point.value = message.point; // a map was clicked on
    if ("progress" in message) $("progress").value = message.progress;
    if ("verdicts" in message) verdicts(message.verdicts);
    if ("event" in message) {
      events.set(message.event.step, message.event);
      card();
      if (message.event.step !== step) {
        $("elsewhere").hidden = false;
        $("elsewhere").textContent = `Step ${message.event.step + 1}: ${message.event.sentence}`;
      }
    }
    if (message.drawn) {
      reached = `step ${message.step}, time ${number(message.time)}`;
      if (["running", "paused"].includes(state)) $("where").textContent = reached;
      $("caption").textContent = message.caption;
      $("warning").hidden = !message.warning;
      $("warning").textContent = message.warning;
      dial(message.dial, message.rival);
      legend(message.legend);
      paint(root.dataset.theme);
      highlight();
      ask({ do: "seen" });
    }
    hideEmptyNote();
  };

  const resume = () => { // after a reload the run that it interrupted is started again: the same settings give the same run
    if (before === home.link) ask({ do: "start", place: place() });
    before = "";
  };
  let before = sessionStorage.getItem("wideflow-running");
  const paceBefore = sessionStorage.getItem("wideflow-pace");
  if (paceBefore) $("pace").value = paceBefore;
  const connect = setInterval(() => {
    const channel = typeof Bokeh === "undefined" ? null : Bokeh.documents.map((doc) => doc.get_model_by_name("talk")).find(Boolean);
    if (!channel) return;
    clearInterval(connect);
    talk = channel;
    talk.properties.message.change.connect(() => receive(JSON.parse(talk.message)));
    talk.document.on_event("connection_lost", cut);
    talk.document.on_event("client_reconnected", reconnected);
    document.body.dataset.connected = "yes";
    ask({ do: "pace", pace: $("pace").value });
    if (!setup.trouble) ask({ do: "choose", place: place() });
  }, 40);

  window.addEventListener("pagehide", () => navigator.sendBeacon(`/leave?token=${token}&tab=${setup.tab}`));
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  if (matchMedia("(max-width: 899px)").matches) $("settings").open = false; // on a phone the run comes first
  fill();
  carry(home);
  trouble(setup.trouble);
  card();
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => { if (event.target.type === "range") later(); else arrange(); });
  form.addEventListener("change", (event) => { if (event.target.id !== "file") choose(); });
  if (free) $("file").addEventListener("change", upload);
  $("start").addEventListener("click", () => { trouble(""); if (complete()) ask({ do: "start", place: place() }); });
  $("pause").addEventListener("click", () => ask({ do: state === "paused" ? "resume" : "pause" }));
  $("reset").addEventListener("click", () => ask({ do: "reset" }));
  $("pace").addEventListener("change", () => { sessionStorage.setItem("wideflow-pace", $("pace").value); ask({ do: "pace", pace: $("pace").value }); });
  if (free) $("compare").addEventListener("click", () => {
    trouble("");
    if (!complete()) return;
    const choices = place();
    $("scaling-kind").value = "mean-field"; // what the form shows is the run whose settings are taken home
    arrange();
    ask({ do: "compare", place: choices });
  });
  $("take-figure").addEventListener("click", (event) => take(event, "figure"));
  $("take-table").addEventListener("click", (event) => take(event, "table"));
  const copy = async (from) => { await navigator.clipboard?.writeText($(from).textContent); return "Copied."; };
  for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", async () => { $("taken").textContent = await copy(button.dataset.copy); });
  $("copy-link").addEventListener("click", async () => { $("taken").textContent = await copy("link"); });
  $("copy-state").addEventListener("click", async () => { $("copy-state").textContent = await copy("lost-link"); });
  $("reload").addEventListener("click", () => location.reload());
  for (const link of document.querySelectorAll("[data-scene]")) link.href = address(`scene=${link.dataset.scene}`);
  if (setup.steps.length) { $("back").addEventListener("click", () => go(step - 1)); $("next").addEventListener("click", () => go(step + 1)); }
})();
