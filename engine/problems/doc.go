// Package problems is the project's own problem set: finance calculations with labels,
// drawn from a seed. It imports the standard library only; commands and tests may
// import it.
//
// Promises: equal seeds and sizes give equal problems, and a longer set begins with the
// shorter one; every formula is as likely as any other at each place; labels are the
// exact value rounded to two decimals. Some prompts state their formula, the others only
// describe it, so that it has to be learnt; some questions hold a number that does not
// matter.
package problems
