// Mosha: answer a survey of the local model on this device. One file, no dependency; usable on any page.
//
//   import { randomize } from "./survey.js";
//   const report = randomize(1, { size: 3, top: "1494391238981", bottom: "549755813888", width: 1, tag: 108 });
//
// `value` is the number of the chosen answer. The report is the truth with probability top / (top + (size - 1) bottom)
// and each other answer with probability bottom / (...): no answer is more than top / bottom <= e^epsilon times as
// likely under one truth as under another. Draws are exact: whole numbers of the browser's cryptographic randomness.

const fresh = (count) => crypto.getRandomValues(new Uint8Array(count));

export function drawBelow(bound, bytes = fresh) {
  if (bound === 1n) return 0n;
  const bits = (bound - 1n).toString(2).length, size = (bits + 7) >> 3;
  for (;;) {
    let drawn = 0n;
    for (const byte of Array.from(bytes(size)).reverse()) drawn = (drawn << 8n) | BigInt(byte);
    drawn >>= BigInt(8 * size - bits);
    if (drawn < bound) return drawn;
  }
}

export function randomize(value, survey, bytes = fresh) {
  const size = BigInt(survey.size), top = BigInt(survey.top), bottom = BigInt(survey.bottom), truth = BigInt(value);
  if (truth < 0n || truth >= size || top < bottom || bottom < 1n) throw new RangeError("not an answer of this survey");
  const drawn = drawBelow(top + (size - 1n) * bottom, bytes) - top;
  let reported = truth;
  if (drawn >= 0n) {
    const other = drawn / bottom;
    reported = other + (other >= truth ? 1n : 0n);
  }
  const report = new Uint8Array(1 + survey.width);
  report[0] = survey.tag;
  for (let place = 1; place <= survey.width; place++, reported >>= 8n) report[place] = Number(reported & 255n);
  return report;
}

const box = typeof document === "undefined" ? null : document.querySelector("[data-survey]");
if (box) {
  const survey = JSON.parse(box.dataset.survey), send = box.querySelector("#send"), leaves = box.querySelector("#leaves");
  let report = null, kept = null, ticket = null;
  try { kept = localStorage.getItem(box.dataset.address); } catch { /* a browser that keeps nothing */ }
  const show = (name) => box.querySelectorAll("[data-show]").forEach((part) => { part.hidden = part.dataset.show !== name; });
  box.querySelectorAll("input[name=answer]").forEach((field) => { field.disabled = false; });
  box.addEventListener("change", (event) => {
    if (event.target.name !== "answer" || report) return;
    // Drawn once on this device, also after a reload: a second draw of the same truth would tell more.
    // And sent under one ticket: however often it arrives, it counts once.
    const found = kept ? JSON.parse(kept) : null;
    report = found ? Uint8Array.from(found.report ?? found) : randomize(Number(event.target.value), survey);
    ticket = found?.ticket ? Uint8Array.from(found.ticket) : fresh(16);
    const kept_now = JSON.stringify({ report: Array.from(report), ticket: Array.from(ticket) });
    try { localStorage.setItem(box.dataset.address, kept_now); } catch { /* as above */ }
    box.querySelectorAll("input[name=answer]").forEach((field) => { field.disabled = true; });
    const place = report.slice(1).reduceRight((sum, byte) => sum * 256 + byte, 0);
    leaves.textContent = survey.values[place];
    box.querySelector("#bytes").textContent = Array.from(report, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
    show("ready");
    send.disabled = false;
  });
  send.addEventListener("click", async () => {
    send.disabled = true;
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": box.dataset.csrf };
    const [sent, under] = [report, ticket].map((bytes) => btoa(String.fromCharCode(...bytes)));
    const body = JSON.stringify({ reports: [sent], tickets: [under] });
    const reply = await fetch(box.dataset.address, { method: "POST", headers, body }).catch(() => null);
    show(reply && reply.ok ? "sent" : "failed");
    if (!reply || !reply.ok) send.disabled = false;
  });
}
