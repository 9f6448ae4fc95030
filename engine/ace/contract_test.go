package ace

import "testing"

func TestVerdict(t *testing.T) {
	for want, v := range map[string]*ParseReport{
		"":                          nil,
		"odd":                       {Parse: ParseClean, Note: "odd"},
		"extracted from other text": {Parse: ParseExtracted},
		"repaired: it was cut off":  {Parse: ParseRepaired, Note: "it was cut off"},
		"asked again: it was prose": {Parse: ParseAsked, Note: "it was prose"},
		"by-hand":                   {Parse: "by-hand"},
	} {
		if got := v.String(); got != want {
			t.Errorf("%+v is %q, want %q", v, got, want)
		}
	}
	f := StepCompleted(PhaseGenerator,
		[]byte(`{"plan": "p", "verdict": {"parse": "repaired", "attempts": 1}}`))
	s := State{}
	s.Apply(Started(TaskInput{}))
	s.Apply(f)
	if got := s.CurrentPhase().Steps[0].Parsed; got == nil || got.Parse != ParseRepaired {
		t.Errorf("the fold kept %+v", got)
	}
	if u := (Usage{CostUSD: 1}).Add(Usage{Unpriced: true}); !u.Unpriced || u.CostUSD != 1 {
		t.Errorf("%+v", u)
	}
}
