// Forms with data-live fetch their own page as one types and put its [data-part]s in place; [data-poll] asks again by
// itself. Without this script every form still has its button, and every page that waits reloads itself.
(() => {
  "use strict";
  let timer, latest = 0;
  const fresh = async (address, push) => {
    const turn = ++latest, box = document.querySelector("main");
    box.setAttribute("aria-busy", "true");
    try {
      const reply = await fetch(address, { headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      if (turn !== latest) return;
      for (const part of document.querySelectorAll("[data-part]")) {
        const next = page.querySelector(`[data-part="${part.dataset.part}"]`);
        if (next && !part.contains(document.activeElement)) part.replaceWith(document.adoptNode(next));
      }
      if (push) history.replaceState(null, "", address);
    } catch { /* the button still works */ } finally { box.removeAttribute("aria-busy"); poll(); }
  };
  const live = (event) => {
    const form = event.target.form;
    if (!form || !form.hasAttribute("data-live")) return;
    const mode = event.target.dataset.mode && form.querySelector(`[name=mode][value=${event.target.dataset.mode}]`);
    if (mode) mode.checked = true;
    clearTimeout(timer);
    timer = setTimeout(() => {
      const address = new URL(form.getAttribute("action"), location.href);
      address.search = new URLSearchParams(new FormData(form));
      fresh(address, true);
    }, 350);
  };
  const poll = () => {
    const wait = document.querySelector("[data-poll]");
    if (wait) setTimeout(() => fresh(location.href, false), 1000 * (wait.dataset.poll || 1));
  };
  document.addEventListener("input", live);
  poll();
})();
