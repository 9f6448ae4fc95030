package playbook

import (
	"slices"
	"sync"
)

// queue holds the requests that wait for their merge, by the path of their branch's lock file.
type queue struct {
	mu     sync.Mutex
	byPath map[string][]*mergeRequest
}

func (q *queue) enqueue(path string, r *mergeRequest) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byPath == nil {
		q.byPath = map[string][]*mergeRequest{}
	}
	q.byPath[path] = append(q.byPath[path], r)
}

// withdraw removes a request. It returns false if a goroutine is merging it.
func (q *queue) withdraw(path string, r *mergeRequest) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.byPath[path], r)
	if i >= 0 {
		q.byPath[path] = slices.Delete(q.byPath[path], i, i+1)
	}
	return i >= 0
}

// take returns the requests that wait for a branch, and removes them.
func (q *queue) take(path string) []*mergeRequest {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.byPath[path]
	delete(q.byPath, path)
	return all
}

// mergeRequest is a delta that waits for its merge, and the result of the merge.
type mergeRequest struct {
	Version
	done    chan struct{} // closed after the fields below are set by the goroutine that merged it
	record  Version
	content []byte // of a playbook that the shared store may lack, or nil
	err     error
}
