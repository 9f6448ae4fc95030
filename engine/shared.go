package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/store/bucket"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/server"
)

// ErrStore means that the shared store of a namespace does not answer, denies access, or is not a store of
// acescope.
var ErrStore = errors.New("the shared store cannot be used")

// The store of a namespace is registered in the memo of an open workflow that no worker executes: every
// client of the namespace can read it, and only one of several concurrent registrations succeeds.
const (
	storeWorkflow = "acescope-store"
	storeMemo     = "store"
)

// Objects that identify a store, and a timeout.
const (
	markerKey    = "acescope.json"
	marker       = `{"format":1}` + "\n"
	usersPrefix  = "namespaces/"    // an object for each namespace whose runs use the store
	storeTimeout = 30 * time.Second // to answer when a process starts
)

// noStore is the hint in errors of the stores of a process on a cluster without a shared store.
const noStore = "; its machines share no store, so only what this one made is here: see \"acescope setup --store\""

// registration names the registered store of a namespace; zero without one.
type registration struct {
	url string
	id  string // differs if the same URL is registered again, perhaps because the store was emptied
}

// registry reads and writes the registration of a namespace.
type registry struct {
	client    client.Client
	namespace string
	codec     bucket.Codec // of stores with the parameter codec=true; may be nil
	cluster   func(context.Context) (id string, err error)
}

func (e *Engine) registry() registry {
	r := registry{client: e.Client, namespace: e.namespace, cluster: e.clusterID}
	if e.Codec != nil {
		r.codec = e.Codec
	}
	return r
}

// openSharedStores opens the stores of the namespace, in the registered store or, without one, in the data
// directory.
func (e *Engine) openSharedStores(ctx context.Context, o Options) error {
	r := e.registry()
	var found registration
	var err error
	// A store that the maker of an unconfirmed data directory has registered must not get credentials.
	if _, unconfirmed := errors.AsType[*server.Unconfirmed](e.withheld); !unconfirmed {
		found, err = r.find(ctx, o.Store)
	}
	if err != nil {
		return err
	}
	e.store = found
	url := found.url
	hint := ""
	if o.Remote != nil {
		hint = noStore
	}
	cache := o.DataDir
	if url != "" {
		hint = ""
		needed := o.Worker || !o.LookOnly
		if e.shared, err = r.open(ctx, url, needed); err != nil {
			if needed {
				return err
			}
			hint = "; " + err.Error()
		}
		sum := sha256.Sum256([]byte(e.namespace + "\n" + url + "\n" + found.id))
		cache = filepath.Join(o.DataDir, "shared", hex.EncodeToString(sum[:8]))
	}
	if err := e.openStores(ctx, o, cache); err != nil {
		return err
	}
	if url == "" && o.Remote != nil && !o.LookOnly {
		if err := os.WriteFile(filepath.Join(cache, "artifacts", clustersFile), nil, 0o600); err != nil {
			return fmt.Errorf("%w: %w", server.ErrDataDir, err)
		}
	}
	e.Artifacts.Hint = hint
	e.Books.Hint = hint
	return nil
}

// find returns the registration. If the namespace has no store and wanted is not "", it registers wanted.
func (r registry) find(ctx context.Context, wanted string) (registration, error) {
	found, err := r.registered(ctx)
	if err == nil && found.url == "" && wanted != "" {
		if err := r.register(ctx, wanted); err != nil {
			return registration{}, err
		}
		found, err = r.registered(ctx) // another process may have been first
	}
	if err == nil {
		err = r.check(found.url, wanted)
	}
	return found, err
}

// check returns an error if wanted is not "" and another store is registered.
func (r registry) check(registered, wanted string) error {
	if wanted != "" && registered != wanted {
		return fmt.Errorf("namespace %s uses the store %s, not %s; omit --store", r.namespace, registered,
			wanted)
	}
	return nil
}

func (r registry) registered(ctx context.Context) (registration, error) {
	d, err := r.client.DescribeWorkflowExecution(ctx, storeWorkflow, "")
	if isError[*serviceerror.NotFound](err) || isError[*serviceerror.NamespaceNotFound](err) {
		return registration{}, nil
	}
	if err != nil {
		return registration{}, fmt.Errorf("read the store of namespace %s: %w", r.namespace, err)
	}
	info := d.GetWorkflowExecutionInfo()
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return registration{}, nil
	}
	found := registration{id: info.GetExecution().GetRunId()}
	memo := history.PayloadJSON(info.GetMemo().GetFields()[storeMemo])
	if err := json.Unmarshal(memo, &found.url); err != nil || found.url == "" {
		return registration{}, fmt.Errorf("%w: the workflow %s of namespace %s does not name it", ErrStore,
			storeWorkflow, r.namespace)
	}
	return found, nil
}

// register writes the marker of a store, and registers the store.
func (r registry) register(ctx context.Context, url string) error {
	cluster, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	b, err := bucket.Make(ctx, url, r.codec)
	if err != nil {
		return r.unusable(err)
	}
	defer b.Close()
	within, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	user := usersPrefix + ace.FileName(cluster) + "/" + ace.FileName(r.namespace)
	for _, key := range []string{markerKey, user} {
		err := b.Create(within, key, strings.NewReader(marker))
		if err != nil && !errors.Is(err, bucket.ErrExists) {
			return r.unusable(err)
		}
	}
	_, err = r.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: storeWorkflow, TaskQueue: storeWorkflow, Memo: map[string]any{storeMemo: url},
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, ace.StoreWorkflow)
	if err != nil {
		return fmt.Errorf("register the store: %w", err)
	}
	return nil
}

// open opens a store. If verify is set, it checks that the store can be reached and has the marker.
func (r registry) open(ctx context.Context, url string, verify bool) (bucket.Bucket, error) {
	b, err := bucket.Open(ctx, url, r.codec)
	if err != nil {
		return nil, r.unusable(err)
	}
	if !verify {
		return b, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := r.verify(ctx, b); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// verify checks that a store can be read and has the marker.
func (r registry) verify(ctx context.Context, b bucket.Bucket) error {
	content, err := bucket.Get(ctx, b, markerKey, 1<<10)
	if err == nil && string(content) != marker {
		err = fmt.Errorf("%s was written by another version of this program", b)
	}
	if err != nil {
		return r.unusable(err)
	}
	return nil
}

// CheckStore reads an object of the shared store of the namespace. It returns the URL of the store without
// secrets, or "" if there is no shared store.
func CheckStore(ctx context.Context, e *Engine) (url string, err error) {
	r := e.registry()
	if e.shared != nil {
		return e.shared.String(), r.verify(ctx, e.shared)
	}
	if e.store.url != "" { // it could not be opened
		var b bucket.Bucket
		if b, err = r.open(ctx, e.store.url, true); err == nil {
			err = b.Close()
		}
	}
	url, _, _ = strings.Cut(e.store.url, "?")
	return url, err
}

func (r registry) unusable(err error) error {
	advice := "check the address and that the store is running"
	if errors.Is(err, bucket.ErrDenied) {
		advice = "set the credentials of the store: AWS_…, GOOGLE_APPLICATION_CREDENTIALS or AZURE_STORAGE_…"
	}
	return fmt.Errorf("namespace %s: %w: %w; %s", r.namespace, ErrStore, err, advice)
}

// ErrStoreChanged means that the registered store of the namespace has changed since this process opened its
// stores.
var ErrStoreChanged = errors.New("the store of the namespace has changed")

// storeCheckEvery is the interval at which a process that executes runs reads which store is registered.
const storeCheckEvery = time.Minute

// storeWatch detects that the namespace no longer uses the store of a process that executes runs. The process
// then ends: objects to which its steps refer may be missing in the other store, and objects of other
// processes are missing in its own store.
type storeWatch struct {
	registry
	used    registration // by this process
	dir     string       // of this process
	changed chan error
}

// StoreChanged returns a channel on which a process that executes runs receives [ErrStoreChanged]. The
// process then has to end.
func StoreChanged(e *Engine) <-chan error {
	if w := e.worker.Load(); w != nil {
		return w.store.changed
	}
	return nil
}

// run checks at each tick until the store has changed or the context is done.
func (w *storeWatch) run(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		if err := w.check(ctx); err != nil {
			w.changed <- err
			return
		}
	}
}

// check returns [ErrStoreChanged] if the namespace no longer uses the store. A server that does not answer is
// asked again later.
func (w *storeWatch) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	now, err := w.registered(ctx)
	switch {
	case err != nil || now == w.used:
		return nil
	case now.url == w.used.url:
		return fmt.Errorf("%w: namespace %s registered %s again, so it may be empty; start this process again",
			ErrStoreChanged, w.namespace, now.url)
	case now.url == "":
		return fmt.Errorf("%w: namespace %s no longer names the store %s, which this process uses; register a store "+
			"with \"acescope setup --store\", then start this process again", ErrStoreChanged, w.namespace,
			w.used.url)
	case w.used.url == "":
		return fmt.Errorf("%w: namespace %s uses %s now, and this process used %s; copy its contents with "+
			"\"acescope store import %[4]s\", then start this process again", ErrStoreChanged, w.namespace,
			now.url, w.dir)
	}
	return fmt.Errorf("%w: namespace %s uses %s now, and this process used %s; start this process again",
		ErrStoreChanged, w.namespace, now.url, w.used.url)
}
