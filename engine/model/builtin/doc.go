// Package builtin is the provider that needs no language model, key or network: a
// learner of calculation recipes. It owns the reading of named-formula problems, the
// recipes' wording as playbook bullets, and the search for recipes that explain a label.
// It may import engine/ace, engine/model and engine/playbook.
//
// How it learns. Generate picks, among the bullets that hold a recipe for the formula
// which the prompt names, the one with the best counters and the best fit to the
// question; with none it guesses that the answer is the first number over the second.
// Skills looks the recipe up, inspects the question for its quantities and calculates,
// each through the toolbox. Reflect compares the answer with the label, and after a
// mistake tries the formula that the prompt states and a list of common calculations,
// with every choice of operands, for those that give the label. Curate adds the
// plausible ones as competing bullets, rewords, counts and removes; later tasks decide
// between rivals. The formula that a prompt states is used for learning only: what is
// not in the playbook is not known.
//
// Promises: equal inputs give equal outputs; nothing is held between calls; every search
// is bounded (maxTrials, maxAssignments) and a capped one says so in its findings;
// questions are read up to maxQuestion bytes and maxQuantities numbers, the rest is
// ignored. Any prompt but an empty one is answered, if only with the statement that
// no formula is known. Tokens in its usage are words counted, as nothing has tokens
// here; the cost is 0.
package builtin
