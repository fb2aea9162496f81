"use strict";
const form = document.getElementById("row");
const fields = [...form.querySelectorAll("[data-how]")];
const part = (name) => document.getElementById(name);
const show = (name, is) => { part(name).hidden = !is; };
const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const NAMES = { score: "Score", probability: "Probability", percentile: "Percentile" };

function cell(field) {
  const given = field.value.trim();
  if (given === "") return null;
  // What is no number goes as it is: the service says what is wrong with it.
  return field.dataset.how === "number" && Number.isFinite(Number(given)) ? Number(given) : given;
}

function blame(field, message) {
  const fault = part(field.id + "-fault");
  fault.textContent = message;
  fault.hidden = !message;
  if (message) field.setAttribute("aria-invalid", "true");
  else field.removeAttribute("aria-invalid");
}

function say(text) {
  part("status").textContent = text;
  show("status", Boolean(text));
}

function shown(key, value) {
  if (key === "percentile") return value.toFixed(value > 99 ? 2 : 1);
  return digits.format(value);
}

function element(name, text, kind) {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function answer(told) {
  const row = told.rows[0];
  part("decision").textContent = row.decision;
  const figures = [];
  for (const [key, value] of Object.entries(row)) {
    if (typeof value !== "number") continue;
    const name = NAMES[key] || key.replace(/^probability_/, "Probability of ");
    const both = document.createElement("div");
    both.append(element("dt", name), element("dd", shown(key, value)));
    figures.push(both);
  }
  part("figures").replaceChildren(...figures);
  const reasons = (row.reasons || []).map((each) => {
    const line = document.createElement("tr");
    line.append(
      element("td", each.column),
      element("td", each.value === null ? "empty" : each.value),
      element("td", "+" + digits.format(each.effect), "number"),
    );
    return line;
  });
  part("told").replaceChildren(...reasons);
  show("reasons", reasons.length > 0);
  part("model").textContent = "Answered by model " + told.model;
  show("result", true);
  say("");
  part("answer").scrollIntoView({ block: "nearest" });
}

function refuse(told) {
  const rest = [];
  let first = null;
  for (const fault of told.errors) {
    const field = fields.find((each) => each.name === fault.column);
    const message = (fault.message + " " + fault.remedy).trim();
    if (field) {
      blame(field, message);
      first = first || field;
    } else rest.push(element("li", message));
  }
  part("faults").replaceChildren(...rest);
  show("faults", rest.length > 0);
  say(first ? "The row cannot be scored: see the fields that are marked." : "The row cannot be scored.");
  if (first) first.focus();
}

async function ask(n_reasons) {
  const row = Object.fromEntries(fields.map((field) => [field.name, cell(field)]));
  const asked = await fetch("score?reasons=" + n_reasons, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify([row]),
  });
  return [asked.ok, await asked.json()];
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  fields.forEach((field) => blame(field, ""));
  show("result", false);
  show("faults", false);
  say("Scoring ...");
  try {
    let [is_fine, told] = await ask(form.dataset.reasons);
    // Some models give no reasons: then the score alone.
    const is_of_row = !is_fine && told.errors.some((fault) => fault.column);
    if (!is_fine && !is_of_row) [is_fine, told] = await ask(0);
    if (is_fine) answer(told);
    else refuse(told);
  } catch (error) {
    say("The service did not answer. Try again.");
  }
});

part("example").addEventListener("click", () => {
  fields.forEach((field) => { field.value = field.dataset.example; blame(field, ""); });
});
part("clear").addEventListener("click", () => {
  fields.forEach((field) => { field.value = ""; blame(field, ""); });
  if (fields.length) fields[0].focus();
});
