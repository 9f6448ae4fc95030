package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"acescope/engine/ace"
	"acescope/engine/temporal/searchattr"
)

// ErrDenied means that the client has no right to set up the namespace.
var ErrDenied = errors.New("permission denied")

// setupTimeout bounds one step of a setup. Servers read new namespaces and search attributes every few
// seconds.
const setupTimeout = time.Minute

// Setup prepares a namespace of a cluster. Each step needs the steps before it.
type Setup struct {
	Address   string
	Namespace string
	Steps     []SetupStep

	e         *Engine
	retention time.Duration
	store     string
}

// SetupStep is one thing that a namespace needs.
type SetupStep struct {
	Name string // namespace, search attributes or store
	Text string // describes the existing object, or the object that [Setup.Do] creates
	Done bool   // the object exists
	do   func(context.Context) error
}

// PlanSetup connects to the cluster of the options and finds the steps that the namespace needs. A new
// namespace keeps closed runs for the retention. The caller closes the setup.
func PlanSetup(ctx context.Context, o Options, retention time.Duration) (*Setup, error) {
	e := &Engine{log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if err := e.dialRemote(ctx, *o.Remote, o); err != nil {
		return nil, err
	}
	s := &Setup{Address: e.address, Namespace: e.namespace, e: e, retention: retention, store: o.Store}
	plans := []func(context.Context) (SetupStep, error){s.planNamespace, s.planAttributes, s.planStore}
	for _, plan := range plans {
		step, err := plan(ctx)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("set up namespace %s of %s: %w", s.Namespace, s.Address, err)
		}
		if step.Name != "" {
			s.Steps = append(s.Steps, step)
		}
	}
	return s, nil
}

// Close closes the connection.
func (s *Setup) Close() { s.e.Client.Close() }

// Do executes a step of Steps.
func (s *Setup) Do(ctx context.Context, step SetupStep) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	err := step.do(ctx)
	// A server that manages namespaces elsewhere, such as Temporal Cloud, does not implement the calls.
	if isError[*serviceerror.PermissionDenied](err) || isError[*serviceerror.Unimplemented](err) {
		return fmt.Errorf("%w: this client may not create the %s of %s on %s; an administrator of the cluster "+
			"can run the same command", ErrDenied, step.Name, s.Namespace, s.Address)
	}
	return err
}

func (s *Setup) planNamespace(ctx context.Context) (SetupStep, error) {
	step := SetupStep{Name: "namespace", Text: fmt.Sprintf("%s, which keeps closed runs for %s", s.Namespace,
		days(s.retention)), do: s.createNamespace}
	d, err := s.e.Client.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: s.Namespace})
	if isError[*serviceerror.NamespaceNotFound](err) {
		return step, nil
	}
	step.Done = true
	step.Text = fmt.Sprintf("%s, which keeps closed runs for %s", s.Namespace,
		days(d.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()))
	return step, err
}

func days(d time.Duration) string {
	if n := d.Hours() / 24; n != 1 {
		return fmt.Sprintf("%.4g days", n)
	}
	return "1 day"
}

func (s *Setup) createNamespace(ctx context.Context) error {
	_, err := s.e.Client.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: s.Namespace, Description: "acescope: runs of agent-learning loops",
		WorkflowExecutionRetentionPeriod: durationpb.New(s.retention)})
	if isError[*serviceerror.NamespaceAlreadyExists](err) { // another process was faster
		return nil
	}
	return err
}

func (s *Setup) planAttributes(ctx context.Context) (SetupStep, error) {
	gap := searchattr.Gap{Missing: ace.SearchAttributes()}
	if s.Steps[0].Done {
		var err error
		if gap, err = searchattr.ReadGap(ctx, s.e.Client.WorkflowService(), s.Namespace); err != nil {
			return SetupStep{}, err
		}
	}
	if len(gap.Mistyped) > 0 {
		return SetupStep{}, fmt.Errorf(
			"the search attributes %s exist with another type than Keyword; remove them "+
				"with \"temporal operator search-attribute remove\", or choose another namespace",
			strings.Join(gap.Mistyped, ", "))
	}
	step := SetupStep{Name: "search attributes", Text: fmt.Sprintf("%s, of type Keyword",
		strings.Join(gap.Missing, ", "))}
	if step.Done = len(gap.Missing) == 0; step.Done {
		step.Text = fmt.Sprintf("all %d", len(ace.SearchAttributes()))
	}
	step.do = func(ctx context.Context) error {
		c := s.e.Client
		return searchattr.Add(ctx, c.WorkflowService(), c.OperatorService(), s.Namespace, gap.Missing)
	}
	return step, nil
}

// planStore returns no step if there is no store to register.
func (s *Setup) planStore(ctx context.Context) (SetupStep, error) {
	var found registration
	var err error
	if s.Steps[0].Done {
		found, err = s.e.registry().registered(ctx)
	}
	switch {
	case err != nil || found.url == "" && s.store == "":
		return SetupStep{}, err
	case found.url == "":
		return SetupStep{Name: "store", Text: s.store + ", for all machines that serve the namespace",
			do: func(ctx context.Context) error { return s.e.registry().register(ctx, s.store) }}, nil
	}
	return SetupStep{Name: "store", Text: found.url, Done: true}, s.e.registry().check(found.url, s.store)
}
