package engine

import (
	"context"
	"regexp"
	"testing"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// changing matches the names of calls that change something, of all calls of this version of Temporal.
var changing = regexp.MustCompile("^(Add|Create|Delete|Deprecate|Execute|Fetch|Patch|Pause|Poll|Record|Register|" +
	"Remove|Request|Reset|Respond|Set|Shutdown|Signal|Start|Stop|Terminate|Trigger|Unpause|Update|Validate)")

func TestRefuseChanges(t *testing.T) {
	called := 0
	call := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		called++
		return nil
	}
	for _, service := range []grpc.ServiceDesc{workflowservice.WorkflowService_ServiceDesc,
		operatorservice.OperatorService_ServiceDesc, grpc_health_v1.Health_ServiceDesc} {
		for _, m := range service.Methods {
			before := called
			err := refuseChanges(t.Context(), "/"+service.ServiceName+"/"+m.MethodName, nil, nil, nil, call)
			allowed := called > before
			if allowed == changing.MatchString(m.MethodName) || allowed != (err == nil) {
				t.Errorf("%s: called %t, error %v", m.MethodName, allowed, err)
			}
		}
	}
}
