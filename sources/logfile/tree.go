package logfile

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// found is a file that a scan met.
type found struct {
	path  string
	given bool
	at    time.Time
}

// scan is one look at all roots.
type scan struct {
	number int
	met    []found
	roots  map[string]bool // given directories that are there
}

// rescan looks at all roots, watches what has to be watched and marks every file. Watches
// are made before what they watch is read, so that nothing falls between.
func (fo *follower) rescan(first bool) error {
	sc := &scan{number: len(fo.watched) + 1, roots: map[string]bool{}}
	for _, d := range fo.watched {
		sc.number = max(sc.number, d.seen+1)
	}
	for _, root := range fo.roots {
		if err := fo.scanRoot(sc, root); err != nil {
			return err
		}
	}
	for real, d := range fo.watched {
		if d.seen != sc.number {
			fo.unwatch(real)
		}
	}
	if err := fo.take(sc, first); err != nil {
		return err
	}
	fo.index()
	fo.allDirty()
	return nil
}

func (fo *follower) scanRoot(sc *scan, root string) error {
	if isDir(root) {
		sc.roots[root] = true
		if link, err := os.Lstat(root); err == nil && link.Mode()&os.ModeSymlink != 0 {
			if err := fo.watchParent(root, sc.number); err != nil {
				return err
			}
		}
		return fo.scanDir(sc, root, fo.o.Depth)
	}
	sc.met = append(sc.met, found{path: root, given: true})
	return fo.watchFile(sc, root)
}

// watchFile watches where a file's name lies, and where what it links to lies.
func (fo *follower) watchFile(sc *scan, path string) error {
	if err := fo.watchParent(path, sc.number); err != nil {
		return err
	}
	if target, ok := linkTarget(path); ok {
		return fo.watchParent(target, sc.number)
	}
	return nil
}

// linkTarget is what a symbolic link leads to, there or not; ok is false where path is none.
func linkTarget(path string) (target string, ok bool) {
	target, err := os.Readlink(path)
	if err != nil {
		return "", false
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, true
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(path), target)
	}
	return target, true
}

func (fo *follower) scanDir(sc *scan, dir string, depth int) error {
	if _, err := fo.watch(dir, sc.number); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if os.IsNotExist(err) {
			return nil
		}
		return fo.event(NotReadable, dir, err.Error())
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if depth > 1 && !strings.HasPrefix(e.Name(), ".") && !matches(fo.o.Skip, e.Name()) {
				if err := fo.scanDir(sc, path, depth-1); err != nil {
					return err
				}
			}
		case matches(fo.o.Match, e.Name()):
			if err := fo.meet(sc, path, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// meet notes a file of a directory. What is neither a file nor a link to one is passed by.
func (fo *follower) meet(sc *scan, path string, e os.DirEntry) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	sc.met = append(sc.met, found{path: path, at: info.ModTime()})
	if e.Type()&os.ModeSymlink != 0 {
		return fo.watchFile(sc, path)
	}
	return nil
}

// take follows what was met, as far as the bound lets it.
func (fo *follower) take(sc *scan, first bool) error {
	slices.SortStableFunc(sc.met, func(a, b found) int {
		if a.given != b.given {
			return map[bool]int{true: -1, false: 1}[a.given]
		}
		return b.at.Compare(a.at)
	})
	left := 0
	for _, m := range sc.met {
		if fo.byPath[m.path] != nil {
			continue
		}
		if len(fo.byPath) >= MaxFiles && !fo.forget() {
			left++
			continue
		}
		f := &file{File: File{Path: m.path, State: Waiting}, given: m.given, late: !first}
		fo.byPath[m.path] = f
	}
	for path, f := range fo.byPath {
		if f.given && sc.roots[path] {
			f.close()
			delete(fo.byPath, path)
		}
	}
	if left == fo.leftOut {
		return nil
	}
	fo.leftOut = left
	return fo.event(LeftOut, "", strconv.Itoa(left)+" files are left out: only the newest "+strconv.Itoa(MaxFiles)+" are followed")
}

// forget drops a file that was removed, and tells whether there was one.
func (fo *follower) forget() bool {
	for path, f := range fo.byPath {
		if f.State == Removed && !f.given && f.old == nil && f.cur == nil {
			delete(fo.byPath, path)
			return true
		}
	}
	return false
}

// index puts the files in order and notes the names that notices use for them.
func (fo *follower) index() {
	fo.files = fo.files[:0]
	fo.byName = map[string][]*file{}
	for _, f := range fo.byPath {
		fo.files = append(fo.files, f)
		f.known()
		for i, n := range f.names {
			if i == 0 || n != f.names[0] {
				fo.byName[n] = append(fo.byName[n], f)
			}
		}
	}
	slices.SortFunc(fo.files, func(a, b *file) int { return cmp.Compare(a.Path, b.Path) })
	fo.work = slices.DeleteFunc(fo.work, func(f *file) bool { return fo.byPath[f.Path] != f })
}
