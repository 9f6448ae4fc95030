// Package links checks the documentation: every link, and every test that a page names.
package links

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

var (
	picture   = regexp.MustCompile(`(?:src|srcset)="([^"]+)"`)
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fence     = regexp.MustCompile("(?s)```.*?```")
	test      = regexp.MustCompile("`(Test\\w+)`")
	script    = regexp.MustCompile("`(\\w+\\.txt)`")
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		text := fence.ReplaceAllString(read(t, page), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s does not exist", page, m[1])
			} else if anchor != "" && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s: no heading for %s", page, m[1])
			}
		}
	}
}

// TestPictures checks that the pictures of the pages exist, for dark and light pages, and that pages show all
// pictures.
func TestPictures(t *testing.T) {
	shown := map[string]bool{}
	for _, page := range pages(t) {
		for _, m := range picture.FindAllStringSubmatch(read(t, page), -1) {
			file := filepath.Join(filepath.Dir(page), m[1])
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s does not exist", page, m[1])
			}
			shown[file] = true
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "docs/pictures/*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no pictures", err)
	}
	const largest = 150_000
	for _, file := range files {
		if !shown[file] {
			t.Errorf("no page shows %s", file)
		}
		if size := len(read(t, file)); size > largest {
			t.Errorf("%s has %d bytes", file, size)
		}
	}
}

// TestNamedTests checks that the tests and scripts that documents.md and programs.md name exist.
func TestNamedTests(t *testing.T) {
	known := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			for _, m := range testFunc.FindAllStringSubmatch(read(t, path), -1) {
				known[m[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page := read(t, filepath.Join(root, "docs/design/documents.md")) +
		read(t, filepath.Join(root, "docs/reference/programs.md"))
	for _, m := range test.FindAllStringSubmatch(page, -1) {
		if !known[m[1]] && m[1] != "TestX" {
			t.Errorf("no test %s", m[1])
		}
	}
	for _, m := range script.FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join(root, "cmd/acescope/testdata/script", m[1])); err != nil &&
			m[1] != "x.txt" {
			t.Errorf("no script %s", m[1])
		}
	}
}

func pages(t *testing.T) []string {
	list := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(t *testing.T, page string) (list []string) {
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(read(t, page), ""), -1) {
		slug := notInSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, strings.ReplaceAll(slug, " ", "-"))
	}
	return list
}

func read(t *testing.T, path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
