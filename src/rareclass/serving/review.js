"use strict";
const part = (name) => document.getElementById(name);
const REASONS = {
  score: "its score is high", teaches: "its label teaches most", random: "drawn at random",
  other: "other",
};
let list = { labels: [], rows: [], round: 0 };
let at = 0;
let last = null; // row of the last verdict
let busy = false;

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

function fault(message) {
  part("fault").textContent = message;
  part("fault").hidden = !message;
}

function show() {
  const row = list.rows[at];
  if (!row) return;
  const open = list.rows.filter((each) => each.verdict === null).length;
  part("where").textContent =
    `Round ${list.round}, row ${at + 1} of ${list.rows.length}, ${open} without a verdict. ` +
    `Row ${row.row}: ${REASONS[row.reason] || row.reason}` +
    (row.verdict === null ? "" : `. Verdict: ${row.verdict}`);
  part("cells").replaceChildren(...row.cells.map(([name, value]) => {
    const both = document.createElement("div");
    both.append(element("dt", name), element("dd", value === "" ? "empty" : value));
    return both;
  }));
  part("why").textContent = row.why || "";
  part("labels").replaceChildren(...list.labels.map((label, k) => {
    const button = element("button", `${k + 1}: ${label}`);
    button.type = "button";
    button.setAttribute("aria-pressed", String(row.verdict === label));
    if (row.verdict === label) button.className = "main";
    button.addEventListener("click", () => give(label));
    return button;
  }));
  part("note").value = "";
}

async function ask(path, body) {
  const how = body === undefined ? {} : {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  };
  const response = await fetch(path, how);
  const told = await response.json();
  if (!response.ok) throw new Error(told.message);
  return told;
}

async function once(act) {
  if (busy) return;
  busy = true;
  fault("");
  try {
    await act();
  } catch (error) {
    part("status").textContent = "";
    fault(`Not kept: ${error.message}`);
  } finally {
    busy = false;
  }
}

function give(label) {
  const row = list.rows[at];
  if (!row) return;
  once(async () => {
    const corrects = row.verdict !== null && row.verdict !== label;
    const told = await ask("verdict", { row: row.row, label, note: part("note").value, corrects });
    row.verdict = label;
    last = row;
    part("status").textContent = `In the journal: row ${row.row} is ${label} (${told.verdicts} verdicts).`;
    const open = list.rows.findIndex((each, k) => k > at && each.verdict === null);
    at = open >= 0 ? open : Math.max(list.rows.findIndex((each) => each.verdict === null), at);
    if (list.rows.every((each) => each.verdict !== null)) {
      part("status").textContent += " Every row has a verdict: n makes the next list.";
    }
    show();
  });
}

function move(step) {
  at = Math.min(Math.max(at + step, 0), list.rows.length - 1);
  show();
}

function undo() {
  if (!list.rows.includes(last)) return;
  at = list.rows.indexOf(last);
  part("status").textContent = `Row ${last.row} is ${last.verdict}: another label replaces it.`;
  show();
}

function next() {
  once(async () => {
    part("status").textContent = "Learning from the verdicts";
    list = await ask("next", {});
    at = 0;
    part("status").textContent = "";
    show();
  });
}

part("back").addEventListener("click", () => move(-1));
part("on").addEventListener("click", () => move(1));
part("undo").addEventListener("click", undo);
part("next").addEventListener("click", next);
part("verdict").addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  if (event.target === part("note") || event.ctrlKey || event.metaKey || event.altKey) return;
  const label = list.labels[Number(event.key) - 1];
  if (label !== undefined && !event.repeat) give(label);
  else if (event.key === "ArrowLeft") move(-1);
  else if (event.key === "ArrowRight") move(1);
  else if (event.key === "u") undo();
  else if (event.key === "n" && !event.repeat) next();
});
once(async () => {
  list = await ask("rows");
  at = Math.max(list.rows.findIndex((each) => each.verdict === null), 0);
  show();
});
