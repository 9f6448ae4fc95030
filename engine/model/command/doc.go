// Package command serves ACE's steps by runs of a blueprint: a program in any language, started
// on a runner for each step, that is given the step's input of the contract as its parameters
// and writes the step's result. It may import engine/ace, engine/model, engine/model/llm (which
// reads what programs write, as it reads what models say), engine/playbook and engine/run, and
// Temporal's word for a cancellation.
//
// Order: the run of a step is started before its end is waited for, and a step that is tried
// again finds the run that its last attempt started, by its id. Bounds: parameters have at most
// [run.MaxParams] bytes; prompts above [ace.InlineBytes] and playbooks above [MaxBook] are named
// instead, and at most [MaxWritten] bytes of what a program writes are read. Loss: a run that no
// runner took, or whose runner died, is started again by the step's next attempt, as another
// run: a program that serves steps must bear that.
package command
