package playbook

import "slices"

// sectionOrder returns the sections in their order: the given ones, then those of other bullets in the order
// of their first bullet.
func sectionOrder(bullets []Bullet, sections []string) []string {
	seen := map[string]bool{}
	order := make([]string, 0, len(sections))
	add := func(section string) {
		if !seen[section] {
			seen[section] = true
			order = append(order, section)
		}
	}
	for _, s := range sections {
		add(s)
	}
	for i := range bullets {
		add(bullets[i].Section)
	}
	return order
}

// keptSections returns the sections to store: all of them if one has no bullet, otherwise nil, because the
// bullets tell the order. A playbook without bullets need not state the default section.
func keptSections(bullets []Bullet, sections []string) []string {
	if len(sections) == 0 || len(bullets) == 0 && slices.Equal(sections, []string{defaultSection}) {
		return nil
	}
	used := map[string]bool{}
	for i := range bullets {
		used[bullets[i].Section] = true
	}
	if !slices.ContainsFunc(sections, func(s string) bool { return !used[s] }) {
		return nil
	}
	return sectionOrder(bullets, sections)
}

// grouped returns the bullets sorted by section: the given sections first, then others in the order of their
// first bullet. It returns the same slice if the bullets are already in that order.
func grouped(bullets []Bullet, sections []string) []Bullet {
	rank := make(map[string]int, len(sections))
	for i, s := range sectionOrder(bullets, sections) {
		rank[s] = i
	}
	order := func(a, b Bullet) int { return rank[a.Section] - rank[b.Section] }
	if slices.IsSortedFunc(bullets, order) {
		return bullets
	}
	sorted := slices.Clone(bullets)
	slices.SortStableFunc(sorted, order)
	return sorted
}
