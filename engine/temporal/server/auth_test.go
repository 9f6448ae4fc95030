package server

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Calls without required fields, one of each service of the frontend.
var outsideCalls = []string{
	"/temporal.api.workflowservice.v1.WorkflowService/ListNamespaces",
	"/temporal.api.workflowservice.v1.WorkflowService/GetSystemInfo",
	"/temporal.api.workflowservice.v1.WorkflowService/GetClusterInfo",
	"/temporal.api.operatorservice.v1.OperatorService/ListClusters",
	"/temporal.server.api.adminservice.v1.AdminService/DescribeCluster",
}

func call(t *testing.T, address, method string, creds credentials.TransportCredentials, token string) error {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := testContext(t)
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", token)
	}
	return conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
}

func TestToken(t *testing.T) {
	t.Parallel()
	n := join(t, Options{Dir: t.TempDir()})
	address := n.Endpoint().Address
	tests := []struct {
		name, token string
		want        codes.Code
	}{
		{"right", "Bearer " + n.token, codes.OK},
		{"none", "", codes.PermissionDenied},
		{"empty", "Bearer ", codes.PermissionDenied},
		{"wrong", "Bearer " + strings.Repeat("0", len(n.token)), codes.PermissionDenied},
		{"short", "Bearer " + n.token[:len(n.token)-1], codes.PermissionDenied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, method := range outsideCalls {
				if err := call(t, address, method, insecure.NewCredentials(),
					tt.token); status.Code(err) != tt.want {
					t.Errorf("%s: %v, want %v", method, err, tt.want)
				}
			}
		})
	}
	if err := call(t, address, grpc_health_v1.Health_Check_FullMethodName, insecure.NewCredentials(),
		""); err != nil {
		t.Errorf("health check: %v", err)
	}
}

// Every port that the process listens on rejects callers without credentials, in plain text
// and in TLS.
func TestPortsRequireCredentials(t *testing.T) {
	before := listening(t)
	n := join(t, Options{Dir: t.TempDir()})
	dial(t, n)
	var opened []string
	for address := range listening(t) {
		if !before[address] {
			opened = append(opened, address)
		}
	}
	if len(opened) < 5 {
		t.Fatalf("found %v, expected at least the five services", opened)
	}
	anyCert := credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	for _, address := range opened {
		if !strings.HasPrefix(address, "127.0.0.1:") {
			t.Errorf("%s is not on loopback", address)
		}
		methods := append([]string{
			"/temporal.server.api.historyservice.v1.HistoryService/GetShard",
			"/temporal.server.api.matchingservice.v1.MatchingService/ListTaskQueuePartitions",
		}, outsideCalls...)
		for _, method := range methods {
			for name, creds := range map[string]credentials.TransportCredentials{
				"plain": insecure.NewCredentials(), "tls": anyCert,
			} {
				switch err := call(t, address, method, creds, ""); status.Code(err) {
				case codes.PermissionDenied, codes.Unavailable:
				case codes.Unimplemented:
					if address != n.Endpoint().Address {
						t.Errorf("%s %s answered %s: %v", address, name, method, err)
					}
				default:
					t.Errorf("%s %s let %s in: %v", address, name, method, err)
				}
			}
		}
		if err := reflect(testContext(t), address); err == nil {
			t.Errorf("%s opened a stream", address)
		}
	}
}

// reflect opens a stream, which passes through other interceptors than a call.
func reflect(ctx context.Context, address string) error {
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
	if err != nil {
		return err
	}
	return errors.Join(stream.SendMsg(&emptypb.Empty{}), stream.RecvMsg(&emptypb.Empty{}))
}

// listening returns the addresses on which this process accepts TCP connections.
func listening(t *testing.T) map[string]bool {
	t.Helper()
	mine := map[string]bool{}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc")
	}
	for _, fd := range fds {
		to, _ := os.Readlink(filepath.Join("/proc/self/fd", fd.Name()))
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			mine[strings.TrimSuffix(inode, "]")] = true
		}
	}
	found := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, _ := os.ReadFile(table)
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == "0A" && mine[f[9]] {
				found[procAddress(t, f[1])] = true
			}
		}
	}
	return found
}

func TestTokenFile(t *testing.T) {
	dir := t.TempDir()
	token, err := hostToken(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := hostToken(dir, ""); err != nil || again != token {
		t.Errorf("second time: %q, %v", again, err)
	}
	path := filepath.Join(dir, tokenFile)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := readToken(dir); !errors.Is(err, ErrDataDir) || !strings.Contains(err.Error(), "0640") {
		t.Errorf("a token that others can read: %v", err)
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("abc"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := readToken(dir); !errors.Is(err, ErrDataDir) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged token: %v", err)
	}
}
