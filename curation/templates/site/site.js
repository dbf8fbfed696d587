// Filters, order and keys. Every page is whole without it.
"use strict";
(() => {
  const stored = {
    get: (name) => { try { return localStorage.getItem(name); } catch { return null; } },
    set: (name, value) => { try { localStorage.setItem(name, value); } catch { /* not kept then */ } },
  };
  const box = document.getElementById("keys-on");
  box.closest("[hidden]").hidden = false;
  box.checked = stored.get("perfquarry-keys") !== "off";
  box.addEventListener("change", () => stored.set("perfquarry-keys", box.checked ? "on" : "off"));

  const shown = () => [...document.querySelectorAll("[data-row]")].filter((link) => !link.closest("tr").hidden);
  const move = (step) => {
    const links = shown();
    const at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + step))];
    if (next) next.focus();
    return Boolean(next);
  };
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.matches("input:not([type=checkbox]), select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (!box.checked) return;
    const element = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (element && element.matches("input")) element.focus(), element.select();
    else if (element) element.click();
    else if (!["j", "k"].includes(event.key) || !move(event.key === "j" ? 1 : -1)) return;
    event.preventDefault();
  });

  const form = document.getElementById("filters");
  if (!form) return;
  const tasks = JSON.parse(document.getElementById("index").textContent);
  const body = document.querySelector(".tasks tbody");
  const rows = [...body.rows];
  const found = document.getElementById("found");
  const orders = {
    "": (a, b) => a - b,
    slow: (a, b) => b - a,
    new: (a, b) => (tasks[b].at > tasks[a].at) - (tasks[b].at < tasks[a].at) || a - b,
    old: (a, b) => (tasks[a].at > tasks[b].at) - (tasks[a].at < tasks[b].at) || a - b,
    repo: (a, b) => tasks[a].repo.localeCompare(tasks[b].repo, "en") || a - b,
    title: (a, b) => tasks[a].title.localeCompare(tasks[b].title, "en") || a - b,
  };
  let order = "";

  const fits = (task, wanted, words) =>
    (!wanted.repo || task.repo === wanted.repo) &&
    (!wanted.year || task.at.startsWith(wanted.year)) &&
    (!wanted.kind || task.kind === wanted.kind) &&
    (!wanted.workload || task.workloads.includes(wanted.workload)) &&
    !(task.speedup < parseFloat(wanted.least)) &&
    !(task.speedup > parseFloat(wanted.most)) &&
    words.every((word) => task.text.includes(word));

  const apply = () => {
    const wanted = Object.fromEntries([...new FormData(form)].filter(([, value]) => value));
    const words = (wanted.q || "").toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    tasks.forEach((task, number) => {
      const fit = fits(task, wanted, words);
      rows[number].hidden = !fit;
      count += fit;
    });
    if ((wanted.order || "") !== order) {
      order = wanted.order || "";
      body.append(...rows.map((_, number) => number).sort(orders[order]).map((number) => rows[number]));
    }
    found.textContent = count === rows.length ? "" : `${count} of ${rows.length} tasks`;
    document.getElementById("nothing").hidden = count > 0;
    document.querySelector(".tasks").hidden = !count;
    const place = new URLSearchParams(wanted).toString();
    history.replaceState(null, "", place ? `#${place}` : location.pathname + location.search);
  };
  const restore = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    for (const field of form.elements) if (field.name) field.value = wanted.get(field.name) || "";
    for (const field of form.querySelectorAll("select")) if (field.selectedIndex < 0) field.value = "";
    apply();
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  document.getElementById("clear").addEventListener("click", () => { form.reset(); form.elements.q.focus(); });
  window.addEventListener("hashchange", () => document.getElementById(location.hash.slice(1)) || restore());
  restore();
})();
