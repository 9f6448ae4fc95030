package sources

func publishBench(w *watcher) {
	s := &w.folder.State
	w.detail.Phase, w.detail.Skills, w.detail.Delta = s.CurrentPhase(), s.SkillUsage(), s.PlaybookDelta()
	w.takeDirty()
}
