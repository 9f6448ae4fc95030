package builtin

// Shapes returns the number of built-in shapes of calculations among which Reflect searches: what the
// provider knows about the problems before it has seen one.
func Shapes() int { return len(commonShapes()) }

// Stated answers a question with the formula that its prompt states, without a label or a playbook. It is the
// baseline of the provider's accuracy, because Generate ignores stated formulas. It returns false if the
// prompt states no readable formula or the question has too few numbers.
func Stated(prompt string) (answer string, ok bool) {
	p := parseProblem(prompt)
	for _, sh := range statedShapes(p) {
		if sh.source != fromText {
			continue
		}
		slots := make([]slot, len(sh.operands))
		for i, o := range sh.operands {
			slots[i] = slot{Measure: asUsual, Cues: o.words}
		}
		b, ok := bind(slots, quantities(p.Question), nil)
		if !ok {
			return "", false
		}
		v, err := sh.expr.Eval(b.values)
		return format(v), err == nil
	}
	return "", false
}
