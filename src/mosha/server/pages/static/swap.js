// Forms with data-live fetch their page as one types and put its [data-part]s in place, those that it names in turn;
// [data-poll] asks again. Without this script forms have a button, and pages that wait reload.
(() => {
  "use strict";
  let timer, latest = 0;
  const all = (what) => document.querySelectorAll(what);
  const fresh = async (address, push, parts = [""]) => {
    const turn = ++latest, box = all("main")[0];
    box.ariaBusy = push;
    try {
      for (const part of parts) {
        const from = new URL(address);
        if (part) from.searchParams.set("part", part);
        const reply = await fetch(from);
        const page = new DOMParser().parseFromString(await reply.text(), "text/html");
        if (turn !== latest) return;
        for (const old of all("[data-part]")) {
          const next = page.querySelector(`[data-part="${old.dataset.part}"]`);
          if (next && !old.contains(document.activeElement)) old.replaceWith(document.adoptNode(next));
          else if (parts.indexOf(old.dataset.part) > parts.indexOf(part)) old.ariaBusy = "true";
        }
        box.ariaBusy = null;
      }
      if (push) history.replaceState(null, "", address);
    } catch { /* its button works */ } finally { box.ariaBusy = null; poll(); }
  };
  const live = (event) => {
    const form = event.target.form, parts = form?.dataset.live;
    if (parts == null) return;
    const mode = event.target.dataset.mode && form.querySelector(`[name=mode][value=${event.target.dataset.mode}]`);
    if (mode) mode.checked = true;
    clearTimeout(timer);
    timer = setTimeout(() => {
      const address = new URL(form.getAttribute("action"), location.href);
      address.search = new URLSearchParams(new FormData(form));
      fresh(address, true, parts.split(" "));
    }, parts ? 120 : 350);
  };
  const poll = () => {
    const wait = all("[data-poll]")[0];
    if (wait) setTimeout(() => fresh(location.href, false), 1000 * (wait.dataset.poll || 1));
  };
  document.addEventListener("input", live);
  poll();
})();
