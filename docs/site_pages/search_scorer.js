// Order of search results: pages for readers with a need come before notes and tables of measurements.
"use strict";

const NEEDS = /^(tutorial|how-to|reference\/|explanation\/|which-method)/;
const DEPTHS = /^(decisions|generated\/benchmarks|reproduction|changelog|licences|contributing)/;

var Scorer = {
  // A heading that holds the whole question is the best answer.
  score: ([docname, , , , score, , kind]) =>
    score
    + (NEEDS.test(docname) ? 12 : DEPTHS.test(docname) ? -12 : 0)
    + (kind === "title" ? 12 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
