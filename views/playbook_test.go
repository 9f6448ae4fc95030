package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
	"acescope/theme"
	"acescope/views/console"
	playbookview "acescope/views/playbook"
	"acescope/views/timeline"
)

// newPlaybooks returns a store with a branch "finance-7" made by real merges.
func newPlaybooks(t testing.TB) *playbook.Store {
	t.Helper()
	store, err := playbook.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	teach(t, store, "finance-6", 1, "",
		addBullet("FORMULAS & CALCULATIONS", "Gross margin: (revenue - cost of goods sold) / revenue."))
	teach(t, store, "finance-7", 1, "Both recipes explain the label; later tasks decide.",
		addBullet("FORMULAS & CALCULATIONS", "Return on equity: net income / equity, as a fraction."),
		addBullet("FORMULAS & CALCULATIONS",
			"Current ratio: current assets / current liabilities. Round only at the end."))
	teach(t, store, "finance-7", 2, "The formula was right, its rounding was not.",
		tagBullet("calc-00001", 1, 0),
		ace.Operation{Type: ace.OpUpdate, BulletID: "calc-00001",
			Content: "Return on equity: net income / shareholders' equity, as a fraction with three places."},
		ace.Operation{Type: ace.OpRemove, BulletID: "calc-00099"})
	for i := 3; i <= 30; i++ {
		ops := []ace.Operation{tagBullet("calc-00001", 1, i%5/4), tagBullet("calc-00002", i%2, 1)}
		if i%4 == 0 {
			ops = append(ops, addBullet("STRATEGIES & INSIGHTS",
				fmt.Sprintf("Strategy %d: read question %d twice before you calculate.", i, i*7)))
		}
		teach(t, store, "finance-7", i, fmt.Sprintf("Task %d taught nothing new.", i), ops...)
	}
	teach(t, store, "finance-7", 31, "It had outlived its use.",
		ace.Operation{Type: ace.OpRemove, BulletID: "sai-00003"},
		addBullet("FORMULAS & CALCULATIONS",
			"Current ratio is current assets / current liabilities. Round only at the end!"))
	return store
}

func addBullet(section, content string) ace.Operation {
	return ace.Operation{Type: ace.OpAdd, Section: section, Content: content}
}

func tagBullet(id string, helpful, harmful int) ace.Operation {
	return ace.Operation{Type: ace.OpTag, BulletID: id, Metadata: map[string]int{"helpful": helpful,
		"harmful": harmful}}
}

func teach(t testing.TB, s *playbook.Store, branch string, n int, why string, ops ...ace.Operation) {
	t.Helper()
	if _, err := s.Start(t.Context(), branch, ""); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("q-%04d", n)
	_, err := s.Merge(t.Context(), playbook.Version{DeltaID: id, Operations: ops,
		Source: playbook.Source{Branch: branch, TaskID: id,
			WorkflowID: "ace/" + id, RunID: "run-" + id, Rationale: why,
			At: noon.Add(time.Duration(n-40) * time.Minute)}})
	if err != nil {
		t.Fatal(err)
	}
}

// library reads playbooks as the reader of sources does.
type library struct {
	t     testing.TB
	store *playbook.Store
}

// answer returns the playbooks for a wish.
func (l library) answer(w playbooks.Ask) *playbooks.Playbooks {
	l.t.Helper()
	must := func(err error) {
		if err != nil {
			l.t.Helper()
			l.t.Fatal(err)
		}
	}
	b := &playbooks.Playbooks{Updated: noon, From: 1}
	var err error
	b.Branches, err = l.store.Branches()
	must(err)
	name := w.Branch
	if name == "" {
		name = "finance-7"
	}
	b.Branch, err = l.store.Branch(name)
	must(err)
	b.Versions, err = l.store.Page(name, 1, b.Branch.Versions)
	must(err)
	seq := w.Seq
	if seq < 0 {
		seq = b.Branch.Versions
	}
	h := playbook.NewHistory(name)
	must(l.store.Read(l.t.Context(), h, seq))
	book, err := l.store.Get(l.t.Context(), h.Head())
	must(err)
	at := &playbooks.VersionDetail{VersionRef: playbooks.VersionRef{Branch: name, Seq: seq}, Hash: h.Head(),
		HasBullets: true, Bullets: h.Blame(book), Totals: h.Totals(),
		Sizes: h.Sizes(), Changes: &playbook.Difference{},
		Record: playbook.Version{Source: playbook.Source{Hash: h.Head()}, Bullets: len(book.Bullets)}}
	if seq > 0 {
		at.Record = b.Versions[seq-1]
		before, err := l.store.Get(l.t.Context(), at.Record.Parent)
		must(err)
		at.Changes = playbook.Diff(before, book)
	}
	b.Version = at
	if w.Health {
		b.Health = &playbooks.VersionHealth{VersionRef: at.VersionRef, Judged: 12,
			Health: playbook.Check(book, h, playbook.Evidence{})}
	}
	if w.Compare {
		b.Compared = &playbooks.Pair{A: w.A, B: w.B}
		var books [2]*playbook.Playbook
		for i, m := range []playbooks.VersionRef{w.A, w.B} {
			hash, err := l.store.At(m.Branch, m.Seq)
			must(err)
			books[i], err = l.store.Get(l.t.Context(), hash)
			must(err)
		}
		b.Compared.Diff = playbook.Diff(books[0], books[1])
	}
	if w.Run.WorkflowID != "" {
		b.Steps = map[playbooks.RunKey]playbooks.RunSteps{w.Run: {Curator: 29, Persist: 35}}
	}
	return b
}

// shelved is a console on the playbook screen whose feed is updated after each key.
type shelved struct {
	*screen
	library
	wish playbooks.Ask
}

func newShelved(t testing.TB, styles theme.Styles, width, height int) *shelved {
	sh := &shelved{library: library{t, newPlaybooks(t)}, wish: playbooks.Ask{Seq: -1, Around: -1}}
	snap := full(5)
	snap.Books = sh.answer(sh.wish)
	sh.screen = newScreen(t, snap, styles, width, height)
	sh.keys("4")
	return sh
}

func (s *shelved) keys(names ...string) {
	s.screen.t.Helper()
	for _, n := range names {
		s.press(n)
		for range 3 { // an answer may lead to another wish
			w := s.wished()
			if w == s.wish {
				break
			}
			s.wish = w
			snap := full(5)
			snap.Books = s.answer(w)
			s.screen.show(snap)
			s.model.View()
		}
	}
}

// wished returns the last request of the screen.
func (s *shelved) wished() playbooks.Ask {
	for _, sc := range s.screens {
		for _, v := range sc.Views {
			if l, ok := v.(*playbookview.List); ok {
				return l.Sent
			}
		}
	}
	return playbooks.Ask{}
}

func (s *shelved) list() *playbookview.List {
	for _, sc := range s.screens {
		for _, v := range sc.Views {
			if l, ok := v.(*playbookview.List); ok {
				return l
			}
		}
	}
	return nil
}

func TestPlaybookScreens(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{
		"bullets": {}, "bullets-detail": {"enter", "j", "j", "j"}, "versions": {"v", "j", "j"},
		"versions-detail": {"v", "G", "k", "k", "enter"},
		"diff":            {"v", "G", "k", " ", "g", "="}, "diff-detail": {"v", "G", "k", " ", "g", "=", "j",
			"enter"},
		"health": {"K"}, "health-detail": {"K", "enter", "G"},
	} {
		for _, size := range [][2]int{{80, 24}, {200, 50}} {
			for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
				"nocolor": theme.New(true, true)} {
				t.Run(fmt.Sprintf("%s-%dx%d-%s", name, size[0], size[1], look), func(t *testing.T) {
					sh := newShelved(t, styles, size[0], size[1])
					sh.keys(keys...)
					golden.RequireEqual(t, sh.drawn())
				})
			}
		}
	}
}

// booksOnly returns the playbook screen with given playbooks.
func booksOnly(t testing.TB, b *playbooks.Playbooks, width, height int, change ...func(*snapshot)) *screen {
	snap := full(3)
	snap.Books = b
	for _, c := range change {
		c(snap)
	}
	sc := newScreen(t, snap, plainLook, width, height)
	sc.press("4")
	return sc
}

func TestPlaybookWithoutBooks(t *testing.T) {
	for want, b := range map[string]*playbooks.Playbooks{
		"reading the playbooks":        nil,
		"no playbook store":            {Missing: "this console has no playbook store"},
		"no playbooks yet":             {Updated: noon},
		"the playbooks cannot be read": {Err: "playbook store is corrupt: main.log, line 7"},
		`no such playbook branch: "x"`: {Err: `no such playbook branch: "x"`},
		"reading the authors":          {Branch: playbook.Branch{Name: "main", Versions: 3}},
		"main.log, line 7: it does not follow": {Branch: playbook.Branch{Name: "main", Versions: 3},
			Err: "main.log, line 7: it does not follow"},
		"this version has no bullets": {Branch: playbook.Branch{Name: "main"},
			Version: &playbooks.VersionDetail{VersionRef: playbooks.VersionRef{Branch: "main"},
				HasBullets: true}},
	} {
		booksOnly(t, b, 80, 24).has(want)
	}
	remote := booksOnly(t, &playbooks.Playbooks{}, 80, 24, func(s *snapshot) { s.Connection.Mode = "remote" })
	remote.has("the worker of a remote cluster")
	remote.has("what a run of another program changed is on its run screen")
}

// Three keys lead to the task that wrote a bullet, one more to its run.
func TestWhoWroteABullet(t *testing.T) {
	sh := newShelved(t, plainLook, 200, 50)
	sh.keys("j")
	sh.has("Author")
	sh.has("q-0001  ADD  v1  39m ago")
	sh.has("ace/q-0001  curator: event 29, persist: event 35")
	sh.has("because Both recipes explain the label")
	sh.keys("J")
	to := sh.screen.named("timeline").Views[0].(*timeline.Timeline)
	if to.Want != 35 || sh.screen.shared.Navigation.Selected.Run.TaskID != "q-0001" {
		t.Errorf("jumps to event %d of %+v", to.Want, sh.screen.shared.Navigation.Selected.Run)
	}
	if !slices.Contains(sh.store().heard(), "select ace/q-0001 run-q-0001") {
		t.Errorf("the store heard %q", sh.store().heard())
	}
}

func (s *shelved) store() *store { return s.screen.store }

func TestLaterChangesLeadToTheirRuns(t *testing.T) {
	sh := newShelved(t, plainLook, 200, 50)
	sh.has("net income / {+shareholders' +}equity")
	sh.keys("enter")
	for range 40 {
		if by := sh.list().RowBy; by != nil && by.WorkflowID == "ace/q-0002" {
			break
		}
		sh.keys("j")
	}
	sh.keys("enter")
	if got := sh.shared.Navigation.Selected.Run.TaskID; got != "q-0002" {
		t.Errorf("the run is of %s, want q-0002", got)
	}
}

func TestVersionsFollowTheNewest(t *testing.T) {
	sh := newShelved(t, plainLook, 80, 24)
	sh.keys("v")
	sh.has("v31 of 31 (newest)")
	teach(t, sh.library.store, "finance-7", 32, "", addBullet("A", "one more"))
	sh.answerNow()
	sh.has("v32 of 32 (newest)")
	sh.keys("j", "j")
	sh.has("v30 of 32")
	teach(t, sh.library.store, "finance-7", 33, "", addBullet("A", "and one more"))
	sh.answerNow()
	sh.has("v30 of 33")
	if w := sh.wished(); w.Seq != 30 || w.Bullets {
		t.Errorf("%+v", w)
	}
	sh.keys("g", "enter")
	teach(t, sh.library.store, "finance-7", 34, "", addBullet("A", "the last one"))
	sh.answerNow()
	sh.has("v33 of finance-7") // the user reads it
}

func (s *shelved) answerNow() {
	snap := full(5)
	snap.Books = s.answer(s.wish)
	s.screen.show(snap)
	s.model.View()
}

// A bullet stays selected by its ID when rows are added and in every order.
func TestChosenBulletStays(t *testing.T) {
	sh := newShelved(t, plainLook, 80, 24)
	sh.keys("j", "j", "j")
	want := sh.list().Bullet
	for range int(playbookview.Orders) {
		sh.keys("s")
		if got := sh.list().Bullet; got != want {
			t.Errorf("sorted %s, the bullet is %s, want %s", sh.list().Order, got, want)
		}
	}
	teach(t, sh.library.store, "finance-7", 32, "", addBullet("FORMULAS & CALCULATIONS", "one more"))
	sh.answerNow()
	if got := sh.list().Bullet; got != want {
		t.Errorf("after a new version the bullet is %s, want %s", got, want)
	}
}

func TestComparing(t *testing.T) {
	sh := newShelved(t, plainLook, 200, 50)
	sh.keys("=")
	sh.has("v30 → v31")
	sh.keys("v", "j", " ", "G", " ")
	sh.has("marked finance-7 v30 and finance-7 v0; = compares them")
	sh.keys("=")
	sh.has("v0 → v30")
	sh.keys("v", " ", "[", "g", " ", "=")
	sh.has("finance-7 v30 → finance-6 v1")
	sh.has("Gross margin")
}

func TestBranches(t *testing.T) {
	sh := newShelved(t, plainLook, 80, 24)
	sh.has("Playbook finance-7")
	sh.press("]")
	sh.press("ctrl+s")
	sh.has("reading the playbook finance-6")
	sh.keys("]")
	sh.has("Playbook finance-6")
	sh.keys("B", "7", "enter")
	sh.has("Playbook finance-7")
	cmd := func() (out string) {
		sh.press("B", "x", "y", "z")
		sh.has("no matching branch")
		if c := sh.press("enter"); c != nil {
			sh.model.Update(c())
		}
		return sh.plain()
	}
	if !strings.Contains(cmd(), `playbook branch "xyz" not found`) {
		t.Error("an unknown branch is not reported")
	}
}

func TestSearchingBullets(t *testing.T) {
	sh := newShelved(t, plainLook, 80, 24)
	sh.keys("/", "s", "t", "r", "a", "t", "e", "g", "y", "enter")
	first := sh.list().Bullet
	sh.keys("ctrl+n")
	second := sh.list().Bullet
	sh.keys("ctrl+p")
	if !strings.HasPrefix(first, "sai-") || second == first || sh.list().Bullet != first {
		t.Errorf("%s, %s, %s", first, second, sh.list().Bullet)
	}
	sh.keys("/", "ctrl+u", "q", "q", "q", "enter")
	sh.has("no row matches")
	sh.keys("g", "e")
	if got := sh.list().Bullet; got != "calc-00002" {
		t.Errorf("e goes to %s", got)
	}
}

// A finding leads to its bullet.
func TestFindingLeadsToItsBullet(t *testing.T) {
	sh := newShelved(t, plainLook, 200, 50)
	sh.keys("K")
	sh.has("calc-00002 was voted harmful 28 times")
	sh.has("Not checked")
	sh.keys("enter", "G", "enter")
	sh.has("Author")
	if got := sh.list().Bullet; got != "calc-00002" {
		t.Errorf("it leads to %s", got)
	}
}

func TestPlaybookCopiesAndKeeps(t *testing.T) {
	sh := newShelved(t, plainLook, 80, 24)
	if what, text := sh.list().Copy(); what != "bullet calc-00001" ||
		!strings.HasPrefix(text, "Return on equity") {
		t.Errorf("%q, %q", what, text)
	}
	sh.keys("v", "j")
	if what, text := sh.list().Copy(); what != "hash of v30" || len(text) != 64 {
		t.Errorf("%q, %q", what, text)
	}
	sh.keys("K", "s")
	other := playbookview.Screen(console.New(console.Options{Controls: newStore(nil)}, nil),
		newStore(nil).feeds().Playbooks).Views[0].(*playbookview.List)
	other.Restore(sh.list().Keep())
	if other.Mode != playbookview.HealthMode || other.Order != playbookview.ByHelpful ||
		other.Bullet != sh.list().Bullet {
		t.Errorf("%+v", other.Keep())
	}
	other.Restore(map[string]string{"mode": "?", "order": "99"})
}

func TestPlaybookReadsWhileShown(t *testing.T) {
	sh := newShelved(t, plainLook, 80, 24)
	sh.press("ctrl+r", "1")
	heard := strings.Join(sh.store().heard(), "\n")
	for _, want := range []string{"look playbook true", "read books", "look playbook false"} {
		if !strings.Contains(heard, want) {
			t.Errorf("the store did not hear %q:\n%s", want, heard)
		}
	}
}

func TestPlaybookEverySize(t *testing.T) {
	t.Parallel()
	sh := newShelved(t, theme.New(true, false), 80, 24)
	evil := "\x1b[2J財務\u202e 📈 e\u0301\n\ttab " + strings.Repeat("long ", 900)
	teach(t, sh.library.store, "finance-7", 90, evil, addBullet(evil[:80], evil[:3000]),
		addBullet("A", "שלום "+evil[10:60]),
		ace.Operation{Type: ace.OpUpdate, BulletID: "calc-00001", Content: evil[:400]},
		ace.Operation{Type: "\x1b]0;x\a", Content: evil})
	sh.answerNow()
	for _, keys := range [][]string{{"G"}, {"enter", "G"}, {"esc", "v", "g"}, {"enter", "G"},
		{"esc", "=", "G"}, {"enter"}, {"esc", "K"}, {"enter", "G"}, {"?"}} {
		sh.keys(keys...)
		for w := 40; w <= 220; w += 12 {
			for _, h := range []int{10, 11, 17, 24, 50} {
				sh.resize(w, h)
				sh.drawn()
			}
		}
		if t.Failed() {
			t.Fatalf("after %v", keys)
		}
	}
}

func TestPlaybookInASCII(t *testing.T) {
	sh := newShelved(t, theme.NoColor().Styles(theme.ASCII()), 200, 50)
	for _, keys := range [][]string{{}, {"v"}, {"="}, {"K"}} {
		sh.keys(keys...)
		for _, r := range sh.plain() {
			if r > 0x7e {
				t.Fatalf("after %v %q is on a screen that must be ASCII", keys, r)
			}
		}
	}
}

// BenchmarkPlaybookKey measures a keystroke in a playbook of 10,000 bullets, to the finished frame.
func BenchmarkPlaybookKey(b *testing.B) {
	at := &playbooks.VersionDetail{VersionRef: playbooks.VersionRef{Branch: "main", Seq: 20_000},
		HasBullets: true, Changes: &playbook.Difference{}}
	for i := range 10_000 {
		l := playbook.BulletHistory{Bullet: playbook.Bullet{ID: fmt.Sprintf("calc-%05d", i),
			Section: "FORMULAS", Content: strings.Repeat("words that say much ", 12), Helpful: i % 9}}
		for n := range 60 {
			l.Counts = append(l.Counts, playbook.Count{Seq: i + n*10, Helpful: n})
		}
		at.Bullets = append(at.Bullets, l)
	}
	sc := newScreen(b, full(5), theme.New(true, false), 200, 50)
	snap := full(5)
	snap.Books = &playbooks.Playbooks{Branch: playbook.Branch{Name: "main", Versions: 20_000}, Version: at}
	sc.press("4")
	sc.show(snap)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		sc.press([]string{"j", "k"}[i/500%2])
		i++
	}
}

// The detail stays on its bullet while the list is hidden.
func TestDetailOutlivesANewVersion(t *testing.T) {
	sh := newShelved(t, plainLook, 80, 24)
	sh.keys("j", "enter")
	sh.has("calc-00002")
	for n := 32; n < 34; n++ {
		teach(t, sh.library.store, "finance-7", n, "", tagBullet("calc-00002", 1, 0))
		sh.answerNow()
		sh.has("calc-00002")
		sh.has(fmt.Sprintf("Counted by  %d, newest first", n-3))
	}
}

// The key of a mode leads from the detail to the list.
func TestModeKeysLeadToTheList(t *testing.T) {
	sh := newShelved(t, plainLook, 80, 24)
	sh.keys("enter")
	sh.has("Author")
	sh.keys("v")
	sh.has("▸Versions")
}
