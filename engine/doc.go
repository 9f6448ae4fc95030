// Package engine joins the parts: it connects to a Temporal server (this process's own,
// another process's, or a cluster), serves the workflows and activities there, and
// starts and cancels runs. It may import every engine package and is imported by cmd
// only.
//
// Order and loss are Temporal's: what a finished step returned is kept through any
// crash. Bounds: an engine runs at most [MaxActivities] steps at a time.
package engine
