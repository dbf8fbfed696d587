// Keys, dialogs and nothing else: the pages work without it. What a key does is written in the page (data-key).
"use strict";
(() => {
  const typing = (element) => element.matches("input:not([type=checkbox]), textarea, select");
  const enabled = () => localStorage.getItem("keys") !== "off";

  const open = (id) => {
    const dialog = document.getElementById(id);
    if (!dialog || dialog.open) return;
    dialog.showModal();
    const box = dialog.querySelector("#keys-on");
    if (box) box.checked = enabled();
    const first = dialog.querySelector("[autofocus], .reasons button");
    if (first) first.focus();
  };

  const move = (list, step) => {
    const rows = [...list.querySelectorAll("[data-row]")];
    const at = rows.indexOf(document.activeElement);
    const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step))];
    if (next) next.focus();
  };

  const act = (element) => {
    if (element.disabled) return;
    if (element.dataset.opens) open(element.dataset.opens);
    else if (typing(element)) element.focus(), element.select();
    else element.click();
  };

  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (event.isComposing || event.altKey) return;
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && target.form) {
      const button = target.form.querySelector("[data-submit]");
      if (button) button.click();
      return;
    }
    if (event.ctrlKey || event.metaKey) return;
    if (typing(target)) {
      if (event.key === "Escape" && !target.closest("dialog")) target.blur();
      return;
    }
    if (!enabled() && event.key !== "?") return;
    const dialog = document.querySelector("dialog[open]");
    const key = CSS.escape(event.key);
    const element = (dialog || document).querySelector(
      dialog ? `[data-key="${key}"]` : `[data-key="${key}"]:not(dialog *)`
    );
    const list = document.querySelector("[data-list]");
    if (element) act(element);
    else if (!dialog && list && (event.key === "j" || event.key === "k")) move(list, event.key === "j" ? 1 : -1);
    else return;
    event.preventDefault();
  });

  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-opens]");
    if (opener) open(opener.dataset.opens);
    else if (event.target.matches("dialog[open]")) event.target.close();
  });

  document.addEventListener("htmx:afterSettle", (event) => {
    const main = document.getElementById("main");
    if (event.detail.target === document.body && main) main.focus({ preventScroll: true });
  });

  document.addEventListener("change", (event) => {
    if (event.target.id === "keys-on") localStorage.setItem("keys", event.target.checked ? "on" : "off");
    else if (event.target.matches(".filters select")) event.target.form.requestSubmit();
  });
})();
