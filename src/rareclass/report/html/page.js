"use strict";
(function () {
  var root = document.documentElement;
  var byId = function (id) { return document.getElementById(id); };

  // Light or dark: the system's, until the button says otherwise.
  var theme = byId("theme");
  var wantsDark = window.matchMedia("(prefers-color-scheme: dark)");
  var isDark = function () {
    return root.dataset.theme ? root.dataset.theme === "dark" : wantsDark.matches;
  };
  var name = function () { theme.textContent = isDark() ? "Light theme" : "Dark theme"; };
  theme.addEventListener("click", function () {
    root.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  wantsDark.addEventListener("change", name);
  theme.hidden = false;
  name();

  var holder = byId("thresholds");
  if (!holder) { return; }
  var data = JSON.parse(holder.textContent);
  var last = data.threshold.length - 1;
  var slider = byId("slider");
  var fields = {
    threshold: byId("by-threshold"), alerts: byId("by-alerts"),
    precision: byId("by-precision"), recall: byId("by-recall")
  };
  var rateOf = function (k) { return data.alerts[k]; };
  var precisionOf = function (k) {
    return data.hits[k] / (data.hits[k] + data.false_alerts[k]);
  };

  // Numbers as the page's other numbers are written.
  var whole = function (value) {
    var digits = Math.abs(value - Math.round(value)) < 1e-9 || Math.abs(value) >= 1000 ? 0 : 1;
    return value.toLocaleString("en-US",
      { minimumFractionDigits: digits, maximumFractionDigits: digits });
  };
  var amount = function (value) {
    return Math.abs(value) >= 100
      ? value.toLocaleString("en-US", { maximumFractionDigits: 0 })
      : String(Number(value.toPrecision(3)));
  };
  var percentNumber = function (share) {
    if (Number.isNaN(share)) { return "–"; }
    var number = 100 * share;
    if (number === 0 || number === 100) { return number.toFixed(0); }
    if (number > 99.9) { return (Math.floor(100 * number + 1e-9) / 100).toFixed(2); }
    return number >= 1 ? number.toFixed(1) : String(Number(number.toPrecision(2)));
  };
  var percent = function (share) {
    return Number.isNaN(share) ? "–" : percentNumber(share) + "\u00a0%";
  };
  var bounds = function (low, high) {
    return percentNumber(low / data.scale) + " to " + percentNumber(high / data.scale) + "\u00a0%";
  };
  var short = function (threshold) { return String(Number(threshold.toPrecision(6))); };
  var write = function (id, text) { var at = byId(id); if (at) { at.textContent = text; } };
  var bar = function (id, low, high) {
    var at = byId(id);
    if (!at) { return; }
    at.style.left = (100 * low / data.scale) + "%";
    at.style.width = (100 * (high - low) / data.scale) + "%";
  };

  var marker = byId("marker");
  var mark = function (k) {
    if (!marker || !data.axis) { return; }
    var rate = rateOf(k), low = Math.log(data.axis[2]), high = Math.log(data.axis[3]);
    var share = rate > 0 ? (Math.log(rate) - low) / (high - low) : 0;
    share = Math.min(Math.max(share, 0), 1);
    marker.style.left = 100 * (data.axis[0] + share * (data.axis[1] - data.axis[0])) + "%";
    marker.hidden = false;
  };

  // What the reader says that errors cost; the interval of a sum of independent parts (each bound
  // by the root of the squares of their reaches), with the exact bounds of both.
  var costFields = [byId("cost-fp"), byId("cost-fn")];
  var typedCosts = function () {
    if (!costFields[0] || costFields[0].value === "" || costFields[1].value === "") { return null; }
    var costs = costFields.map(function (field) { return Number(field.value); });
    return costs.every(function (cost) { return cost >= 0 && cost < Infinity; }) ? costs : null;
  };
  var costAt = function (k, costs) {
    return costs[0] * data.false_alerts[k] + costs[1] * (data.n_rare - data.hits[k]);
  };
  var showTypedCost = function (k) {
    var costs = typedCosts();
    byId("typed-cost").hidden = byId("to-least").hidden = costs === null;
    if (costs === null) { return; }
    var cost = costAt(k, costs), fp = data.false_alerts[k], tp = data.hits[k];
    var low = data.n_rare * data.recall_low[k] / data.scale;
    var high = data.n_rare * data.recall_high[k] / data.scale;
    var below = Math.hypot(costs[0] * (fp - data.false_alerts_low[k]), costs[1] * (high - tp));
    var above = Math.hypot(costs[0] * (data.false_alerts_high[k] - fp), costs[1] * (tp - low));
    write("o-cost", amount(cost));
    write("o-cost-bounds", amount(Math.max(cost - below, 0)) + " to " + amount(cost + above));
  };

  var show = function (k, from) {
    var tp = data.hits[k], fp = data.false_alerts[k];
    var precision = precisionOf(k), recall = tp / data.n_rare;
    slider.value = k;
    write("o-threshold", short(data.threshold[k]));
    write("o-own", k === data.own ? ", the model’s own threshold" : "");
    write("o-tp", whole(tp)); write("o-fp", whole(fp));
    write("o-fn", whole(data.n_rare - tp)); write("o-tn", whole(data.n_rest - fp));
    write("o-precision", percent(precision));
    write("o-precision-bounds", tp + fp ? bounds(data.precision_low[k], data.precision_high[k]) : "no alerts");
    bar("o-precision-bar", data.precision_low[k], data.precision_high[k]);
    write("o-recall", percent(recall));
    write("o-recall-bounds", bounds(data.recall_low[k], data.recall_high[k]));
    bar("o-recall-bar", data.recall_low[k], data.recall_high[k]);
    write("o-alerts", amount(rateOf(k)));
    write("o-alerts-bounds", amount(data.alerts_low[k]) + " to " + amount(data.alerts_high[k]) +
      (data.busiest ? "; at most " + whole(data.busiest[k]) + " on one day" : ""));
    if (data.cost) {
      write("o-cost", amount(data.cost[k]));
      write("o-cost-bounds", amount(data.cost_low[k]) + " to " + amount(data.cost_high[k]));
    }
    if (costFields[0]) { showTypedCost(k); }
    byId("command").value = data.command.replace("{threshold}", data.threshold[k]);
    var said = whole(tp + fp) + " alerts, precision " + percent(precision) + ", recall " + percent(recall);
    slider.setAttribute("aria-valuetext", "score above " + short(data.threshold[k]) + ": " + said);
    if (from !== "threshold") { fields.threshold.value = short(data.threshold[k]); }
    if (from !== "alerts") { fields.alerts.value = Number(rateOf(k).toPrecision(4)); }
    if (from !== "precision") { fields.precision.value = tp + fp ? Number((100 * precision).toPrecision(4)) : ""; }
    if (from !== "recall") { fields.recall.value = Number((100 * recall).toPrecision(4)); }
    mark(k);
  };

  // What is typed: the place that keeps it, or the nearest there is.
  var find = {
    threshold: function (value) {
      for (var k = 0; k <= last; k += 1) { if (data.threshold[k] <= value) { break; } }
      k = Math.min(k, last);
      return k > 0 && data.threshold[k - 1] - value < value - data.threshold[k] ? k - 1 : k;
    },
    alerts: function (value) {
      var found = 0;
      for (var k = 0; k <= last && rateOf(k) <= value * (1 + 1e-9); k += 1) { found = k; }
      return found;
    },
    precision: function (value) {
      var found = -1, best = 0;
      for (var k = 0; k <= last; k += 1) {
        if (!(data.hits[k] + data.false_alerts[k])) { continue; }
        if (100 * precisionOf(k) >= value - 1e-9) { found = k; }
        if (precisionOf(k) > precisionOf(best) || !(data.hits[best] + data.false_alerts[best])) { best = k; }
      }
      return found < 0 ? best : found;
    },
    recall: function (value) {
      for (var k = 0; k < last && 100 * data.hits[k] / data.n_rare < value - 1e-9; k += 1) { continue; }
      return k;
    }
  };
  var unmet = {
    precision: function (value, k) {
      return 100 * precisionOf(k) < value - 1e-9 ? "No threshold here has that precision; this is the highest." : "";
    },
    alerts: function (value, k) {
      return rateOf(k) > value * (1 + 1e-9) ? "No threshold here raises so few alerts." : "";
    },
    threshold: function (value, k) {
      return Math.abs(data.threshold[k] - value) > 1e-5 * Math.abs(value) ? "The nearest threshold that the page has numbers of." : "";
    }
  };

  slider.addEventListener("input", function () { write("o-said", ""); show(Number(slider.value), "slider"); });
  Object.keys(fields).forEach(function (what) {
    fields[what].addEventListener("input", function () {
      var value = Number(fields[what].value);
      if (fields[what].value === "" || Number.isNaN(value)) { return; }
      var k = find[what](value);
      write("o-said", unmet[what] ? unmet[what](value, k) : "");
      show(k, what);
    });
    fields[what].addEventListener("change", function () { show(Number(slider.value), ""); });
  });
  if (costFields[0]) {
    costFields.forEach(function (field) {
      field.addEventListener("input", function () { show(Number(slider.value), ""); });
    });
    byId("to-least").addEventListener("click", function () {
      var costs = typedCosts(), least = 0;
      for (var k = 1; k <= last; k += 1) {
        if (costAt(k, costs) < costAt(least, costs)) { least = k; }
      }
      write("o-said", "The least on these very rows, and flattered by that.");
      show(least, "");
    });
  }
  var toOwn = byId("to-own");
  if (toOwn) {
    toOwn.addEventListener("click", function () { write("o-said", ""); show(data.own, ""); });
  }
  byId("copy").addEventListener("click", function () {
    var field = byId("command");
    field.focus();
    field.select();
    var copied = document.execCommand("copy");
    write("o-said", copied ? "Copied." : "The command is selected: copy it with Ctrl-C.");
  });
  document.querySelectorAll(".controls, .command").forEach(function (each) { each.hidden = false; });
  show(data.own === null ? Number(slider.value) : data.own, "");
}());
