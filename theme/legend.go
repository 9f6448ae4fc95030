package theme

// Group is a part of the legend: the marks of a subject.
type Group struct {
	Name  string
	Marks []Mark
}

// Legend explains the marks that the screens draw.
func (s Styles) Legend() []Group {
	statuses := Group{Name: "Runs"}
	for _, word := range append(Statuses(), "continued_as_new") {
		statuses.Marks = append(statuses.Marks, s.Status(word))
	}
	statuses.Marks = append(statuses.Marks, s.Retry())
	verdicts := Group{Name: "Answers"}
	for _, word := range []string{"correct", "wrong", "unlabeled", "ungraded"} {
		verdicts.Marks = append(verdicts.Marks, s.Verdict(word))
	}
	operations := Group{Name: "Playbook"}
	for _, kind := range []string{"ADD", "UPDATE", "MERGE", "REMOVE", "TAG"} {
		operations.Marks = append(operations.Marks, s.Operation(kind))
	}
	operations.Marks = append(operations.Marks, s.Proposed(), s.Rejected())
	return []Group{statuses, verdicts, operations, {"Timeline", s.Bars()}}
}

// Proposed returns the mark of an operation that is not decided yet, Rejected that of one without effect.
func (s Styles) Proposed() Mark { return Mark{s.Glyphs.Pending, "proposed", s.Muted} }
func (s Styles) Rejected() Mark { return Mark{s.Glyphs.Rejected, "rejected", s.Muted} }

// Operation returns the mark of the type of an operation on a playbook.
func (s Styles) Operation(kind string) Mark {
	g := s.Glyphs
	switch kind {
	case "ADD":
		return Mark{g.Added, kind, s.Added}
	case "UPDATE":
		return Mark{g.Updated, kind, s.Updated}
	case "MERGE":
		return Mark{g.Merged, kind, s.Updated}
	case "REMOVE":
		return Mark{g.Removed, kind, s.Removed}
	case "TAG":
		return Mark{g.Tagged, kind, s.Tagged}
	}
	return Mark{g.Unknown, kind, s.Muted}
}

// Bars returns the marks of the parts of bars on a time axis.
func (s Styles) Bars() []Mark {
	g := s.Glyphs
	return []Mark{{g.Empty, "waiting", s.Muted}, {g.Shade, "retried", s.Retrying}, {g.Full, "ran", s.Success},
		{g.Point, "moment", s.Accent}, {g.Failed, "error", s.Error}}
}
