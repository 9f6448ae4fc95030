// Package prompts keeps the instructions that the phases give to a model: named branches of versions, whose
// texts are artifacts.
//
// Order: the versions of a branch are numbered from 1 without gaps, and of several writers of a number one
// succeeds. Bounds: a text has at most [MaxText] bytes. Loss: nothing is deleted; a deleted branch is hidden
// until it gets a new version.
package prompts

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"acescope/engine/ace"
	"acescope/engine/store/artifact"
	"acescope/engine/store/bucket"
)

// Errors for [errors.Is].
var (
	ErrNotFound = ace.NotFound{Kind: "phase prompt", Hint: `run "acescope phase-prompt list"`}
	ErrName     = errors.New("invalid name of a phase prompt")
	ErrShipped  = errors.New(`the prompt "default" is a part of acescope and cannot be changed`)
)

// MediaType is the media type of a text.
const MediaType = "text/markdown; charset=utf-8"

const (
	root      = "prompts/" // begins the keys
	maxRecord = 64 << 10   // bytes of a version without its text
	atATime   = 8          // versions that are read
)

// Prompt is a version of a prompt.
type Prompt struct {
	Phase ace.Phase `json:"phase"`
	ace.PhasePrompt
	At time.Time `json:"at,omitzero"`
	// From is the prompt that it was made from, such as default or NAME@N; "" if that is not known.
	From string `json:"from,omitempty"`
	// Deleted marks the end of a branch: the version has no text.
	Deleted bool `json:"deleted,omitempty"`
}

// Store holds the prompts of a namespace. Each version is an object of a bucket:
//
//	prompts/<namespace>/<phase>/<name>/00000001
//
// Methods may be called concurrently, also by several processes and machines.
type Store struct {
	bucket bucket.Bucket
	prefix string
	texts  *artifact.Store
	known  sync.Map // versions by key; they never change
}

// Open opens the prompts of a namespace in a shared store.
func Open(b bucket.Bucket, namespace string, texts *artifact.Store) *Store {
	return &Store{bucket: b, prefix: root + ace.FileName(namespace) + "/", texts: texts}
}

// OpenDir opens the prompts of a data directory, which it creates if necessary.
func OpenDir(ctx context.Context, dir string, texts *artifact.Store) (*Store, error) {
	return openDir(ctx, dir, texts, bucket.Make)
}

// OpenDirReadOnly opens the prompts of a data directory, which may have none, for reading.
func OpenDirReadOnly(ctx context.Context, dir string, texts *artifact.Store) (*Store, error) {
	if _, err := os.Stat(filepath.Join(dir, root)); errors.Is(err, fs.ErrNotExist) {
		b, err := bucket.Open(ctx, "mem://", nil)
		return &Store{bucket: b, texts: texts}, err
	}
	return openDir(ctx, dir, texts, bucket.Open)
}

func openDir(ctx context.Context, dir string, texts *artifact.Store,
	open func(context.Context, string, bucket.Codec) (bucket.Bucket, error)) (*Store, error) {
	dir, err := filepath.Abs(filepath.Join(dir, root))
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}
	b, err := open(ctx, u.String(), nil)
	return &Store{bucket: b, texts: texts}, err
}

//go:embed shipped
var shipped embed.FS

// Default returns the shipped prompt of a phase.
func Default(phase ace.Phase) Prompt {
	text, _ := shipped.ReadFile("shipped/" + string(phase) + ".md") // a test reads all
	sum := sha256.Sum256(text)
	ref := ace.Ref{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(text)), MediaType: MediaType}
	p := ace.PhasePrompt{Name: ace.DefaultPrompt, Ref: ref, Text: string(text)}
	return Prompt{Phase: phase, PhasePrompt: p}
}

// DefaultTemplate returns the parsed text of [Default].
var DefaultTemplate = sync.OnceValue(func() map[ace.Phase]Template {
	all := map[ace.Phase]Template{}
	for _, phase := range ace.PromptedPhases() {
		all[phase], _ = Parse(phase, Default(phase).Text) // a test parses all
	}
	return all
})

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// CheckName returns [ErrName] or [ErrShipped] for a name that no branch can have.
func CheckName(name string) error {
	switch {
	case name == ace.DefaultPrompt:
		return ErrShipped
	case !validName.MatchString(name):
		return fmt.Errorf("%w: %.80q; use at most 64 lower-case letters, digits, dots, dashes and underscores",
			ErrName, name)
	}
	return nil
}

func (s *Store) branch(phase ace.Phase, name string) string {
	return s.prefix + string(phase) + "/" + name
}

func (s *Store) key(phase ace.Phase, name string, n int) string {
	return fmt.Sprintf("%s/%08d", s.branch(phase, name), n)
}

// newest returns the number of the last version of each branch whose key begins with a prefix.
func (s *Store) newest(ctx context.Context, prefix string) (map[[2]string]int, error) {
	last := map[[2]string]int{} // by phase and name
	for object, err := range s.bucket.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		parts := strings.Split(strings.TrimPrefix(object.Key, s.prefix), "/")
		if len(parts) != 3 {
			continue
		}
		if n, err := strconv.Atoi(parts[2]); err == nil {
			branch := [2]string{parts[0], parts[1]}
			last[branch] = max(last[branch], n)
		}
	}
	return last, nil
}

// read reads versions of one branch, or of several, in the order of the keys.
func (s *Store) read(ctx context.Context, keys []string) ([]Prompt, error) {
	list := make([]Prompt, len(keys))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(atATime)
	for i, key := range keys {
		if v, ok := s.known.Load(key); ok {
			list[i] = v.(Prompt)
			continue
		}
		work.Go(func() error {
			data, err := bucket.Get(ctx, s.bucket, key, maxRecord)
			if err != nil {
				return err
			}
			if err := json.Unmarshal(data, &list[i]); err != nil {
				return fmt.Errorf("phase prompt %s in %s: %w", path.Dir(key), s.bucket, err)
			}
			s.known.Store(key, list[i])
			return nil
		})
	}
	return list, work.Wait()
}

// List returns the newest version of every prompt, by phase and name; of each phase first the default.
func (s *Store) List(ctx context.Context) ([]Prompt, error) {
	all, err := s.All(ctx)
	return slices.CompactFunc(all, func(a, b Prompt) bool { return a.Phase == b.Phase && a.Name == b.Name }),
		err
}

// All returns all versions of every prompt that is not deleted, by phase and name, the newest first; of each
// phase first the default.
func (s *Store) All(ctx context.Context) ([]Prompt, error) {
	last, err := s.newest(ctx, s.prefix)
	if err != nil {
		return nil, err
	}
	var keys []string
	for branch, n := range last {
		for ; n > 0; n-- {
			keys = append(keys, s.key(ace.Phase(branch[0]), branch[1], n))
		}
	}
	stored, err := s.read(ctx, keys)
	if err != nil {
		return nil, err
	}
	deleted := map[[2]string]bool{}
	for _, v := range stored {
		branch := [2]string{string(v.Phase), v.Name}
		if v.Deleted && v.Version == last[branch] {
			deleted[branch] = true
		}
	}
	slices.SortFunc(stored, func(a, b Prompt) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Version, a.Version))
	})
	var list []Prompt
	for _, phase := range ace.PromptedPhases() {
		list = append(list, Default(phase))
		for _, v := range stored {
			if v.Phase == phase && !v.Deleted && !deleted[[2]string{string(phase), v.Name}] {
				list = append(list, v)
			}
		}
	}
	return list, nil
}

// Versions returns the versions of a branch, oldest first, also of a deleted one. The only one of the default
// is the shipped one.
func (s *Store) Versions(ctx context.Context, phase ace.Phase, name string) ([]Prompt, error) {
	if !slices.Contains(ace.PromptedPhases(), phase) {
		return nil, fmt.Errorf("%w: phase %.40q has no prompt; use generator, skills, reflector or curator",
			ErrNotFound, string(phase))
	}
	if name == ace.DefaultPrompt {
		return []Prompt{Default(phase)}, nil
	}
	if err := CheckName(name); err != nil {
		return nil, err
	}
	last, err := s.newest(ctx, s.branch(phase, name)+"/")
	if err != nil {
		return nil, err
	}
	var keys []string
	for n := range last[[2]string{string(phase), name}] {
		keys = append(keys, s.key(phase, name, n+1))
	}
	return s.read(ctx, keys)
}

// Find returns the version that ref names: NAME@N, or NAME for the newest version of a branch.
func (s *Store) Find(ctx context.Context, phase ace.Phase, ref string) (Prompt, error) {
	name, number, numbered := strings.Cut(ref, "@")
	all, err := s.Versions(ctx, phase, name)
	if err != nil {
		return Prompt{}, err
	}
	if numbered {
		n, err := strconv.Atoi(number)
		i := slices.IndexFunc(all, func(v Prompt) bool { return v.Version == n && !v.Deleted })
		if err == nil && i >= 0 && name != ace.DefaultPrompt {
			return all[i], nil
		}
	} else if len(all) > 0 && !all[len(all)-1].Deleted {
		return all[len(all)-1], nil
	}
	return Prompt{}, ErrNotFound.Of(string(phase) + "/" + ref)
}

// Text returns the text of a version.
func (s *Store) Text(ctx context.Context, p ace.PhasePrompt) (string, error) {
	if p.Text != "" {
		return p.Text, nil
	}
	data, err := s.texts.Get(ctx, p.Ref, MaxText)
	if err != nil {
		err = fmt.Errorf("text of the phase prompt %s: %w", &p, err)
	}
	return string(data), err
}

// Base returns the prompt, with its text, that a change of NAME or NAME@N begins with. It is the shipped one
// for "" and for a name without a version.
func (s *Store) Base(ctx context.Context, phase ace.Phase, ref string) (p Prompt, err error) {
	p, err = s.Find(ctx, phase, cmp.Or(ref, ace.DefaultPrompt))
	if errors.Is(err, ErrNotFound) && !strings.Contains(ref, "@") {
		p, err = s.Find(ctx, phase, ace.DefaultPrompt)
	}
	if err == nil {
		p.Text, err = s.Text(ctx, p.PhasePrompt)
	}
	return p, err
}

// Clean returns a text as it is stored: with Unix line ends and one line break at its end.
func Clean(text string) string {
	return strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), " \t\n") + "\n"
}

// PutText stores a text that belongs to no branch, under the name of its file.
func (s *Store) PutText(ctx context.Context, phase ace.Phase, file, text string) (ace.PhasePrompt, error) {
	text = Clean(text)
	if _, err := Parse(phase, text); err != nil {
		return ace.PhasePrompt{}, err
	}
	ref, err := s.texts.PutBytes(ctx, []byte(text), MediaType)
	return ace.PhasePrompt{Name: file, Ref: ref}, err
}

// maxTries bounds the attempts to add a version while other writers add theirs.
const maxTries = 20

// Put adds a version to a branch, which it creates if necessary. If the newest version has that text, it
// returns this one and false. from says what the text was made from; "" is the newest version.
func (s *Store) Put(ctx context.Context, phase ace.Phase, name, text, from string) (v Prompt, added bool,
	err error) {
	if err := CheckName(name); err != nil {
		return v, false, err
	}
	p, err := s.PutText(ctx, phase, name, text)
	if err != nil {
		return v, false, err
	}
	return s.add(ctx, Prompt{Phase: phase, PhasePrompt: p, From: from})
}

// Delete hides a branch. Its versions stay stored, because runs refer to them.
func (s *Store) Delete(ctx context.Context, phase ace.Phase, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if _, err := s.Find(ctx, phase, name); err != nil {
		return err
	}
	_, _, err := s.add(ctx, Prompt{Phase: phase, PhasePrompt: ace.PhasePrompt{Name: name}, Deleted: true})
	return err
}

// add creates the next entry of a branch, unless it would repeat the newest one.
func (s *Store) add(ctx context.Context, v Prompt) (Prompt, bool, error) {
	from := v.From
	for range maxTries {
		all, err := s.Versions(ctx, v.Phase, v.Name)
		if err != nil {
			return v, false, err
		}
		if len(all) > 0 {
			last := all[len(all)-1]
			if last.Ref == v.Ref {
				return last, false, nil
			}
			if v.From = from; from == "" && !last.Deleted && !v.Deleted {
				v.From = last.PhasePrompt.String()
			}
		}
		v.Version = len(all) + 1
		v.At = time.Now().UTC()
		data, err := json.Marshal(v)
		if err != nil {
			return v, false, err
		}
		err = s.bucket.Create(ctx, s.key(v.Phase, v.Name, v.Version), bytes.NewReader(data))
		if err == nil || !errors.Is(err, bucket.ErrExists) {
			return v, err == nil, err
		}
	}
	return v, false, fmt.Errorf("phase prompt %s of the %s: other processes keep adding versions; try again",
		v.Name, v.Phase)
}

// ErrDiffers means that a branch of the same name has other versions.
var ErrDiffers = errors.New("the phase prompt exists with other versions")

// Import copies the branches of another store, whose texts this one must have. It returns the number of
// versions that it lacked. It skips branches with other versions; the error names them.
func (s *Store) Import(ctx context.Context, from *Store) (versions int, err error) {
	last, err := from.newest(ctx, from.prefix)
	if err != nil {
		return 0, err
	}
	var differing []error
branches:
	for branch := range last {
		phase, name := ace.Phase(branch[0]), branch[1]
		theirs, err := from.Versions(ctx, phase, name)
		if err != nil {
			return versions, err
		}
		ours, err := s.Versions(ctx, phase, name)
		if err != nil {
			return versions, err
		}
		for i, v := range theirs {
			switch {
			case i >= len(ours):
				data, err := json.Marshal(v)
				if err == nil {
					err = s.bucket.Create(ctx, s.key(phase, name, v.Version), bytes.NewReader(data))
				}
				if err != nil {
					return versions, err
				}
				versions++
			case ours[i].Ref != v.Ref:
				differing = append(differing, fmt.Errorf("%w: %s of the %s", ErrDiffers, name, phase))
				continue branches
			}
		}
	}
	return versions, errors.Join(differing...)
}

// Hashes calls yield with the hash of the text of every version.
func (s *Store) Hashes(ctx context.Context, yield func(hash string)) error {
	last, err := s.newest(ctx, s.prefix)
	if err != nil {
		return err
	}
	for branch := range last {
		all, err := s.Versions(ctx, ace.Phase(branch[0]), branch[1])
		if err != nil {
			return err
		}
		for _, v := range all {
			yield(v.SHA256)
		}
	}
	return nil
}
