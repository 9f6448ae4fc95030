// Package buckettest gives tests an empty store of every kind. Only tests import it.
package buckettest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"acescope/engine/store/bucket/buckettest/ports"
	_ "acescope/engine/store/bucket/drivers"
)

// emulator is a program that serves an object store on this machine.
type emulator struct {
	variable string // the environment variable with the path of the program
	install  string
	args     func(port, dir string) []string
	env      []string
	path     string // of a request that is answered once the program is ready
	prepare  func(t *testing.T, address, dir string) (url string)
}

// name is the name of the bucket in every emulator, and of the account except for S3, whose account is
// accessKey. secret is the key of the account. accessKey is not a common word, because its value is removed
// from logs.
const (
	name      = "acescope"
	accessKey = "AKIA0123456789TESTS"
	secret    = "c2VjcmV0LW9mLXRlc3Rz"
)

var emulators = map[string]emulator{
	"S3": {
		variable: "ACESCOPE_TEST_S3", install: "go install github.com/versity/versitygw/cmd/versitygw@v1.8.0",
		args: func(port, dir string) []string {
			return []string{"--port", "127.0.0.1:" + port, "--quiet", "posix", dir}
		},
		env: []string{"ROOT_ACCESS_KEY=" + accessKey, "ROOT_SECRET_KEY=" + secret},
		prepare: func(t *testing.T, address, dir string) string {
			setCredentials(t)
			check(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			return s3URL(address)
		},
	},
	"Google Cloud Storage": {
		variable: "ACESCOPE_TEST_GCS", install: "go install github.com/fsouza/fake-gcs-server@v1.56.1",
		args: func(port, dir string) []string {
			return []string{"-scheme", "http", "-host", "127.0.0.1", "-port", port, "-backend", "memory",
				"-public-host", "127.0.0.1:" + port}
		},
		path: "/storage/v1/b?project=" + name,
		prepare: func(t *testing.T, address, _ string) string {
			t.Setenv("STORAGE_EMULATOR_HOST", address)
			bucket := strings.NewReader(`{"name":"` + name + `"}`)
			answer, err := http.Post("http://"+address+"/storage/v1/b?project="+name, "application/json",
				bucket)
			check(t, err)
			check(t, answer.Body.Close())
			return "gs://" + name
		},
	},
	"Azure": {
		variable: "ACESCOPE_TEST_AZURE", install: "npm install azurite, then node_modules/.bin/azurite-blob",
		args: func(port, dir string) []string {
			return []string{"--blobHost", "127.0.0.1", "--blobPort", port, "--location", dir, "--silent",
				"--skipApiVersionCheck", "--disableTelemetry"}
		},
		env: []string{"AZURITE_ACCOUNTS=" + name + ":" + secret},
		prepare: func(t *testing.T, address, _ string) string {
			t.Setenv("AZURE_STORAGE_ACCOUNT", name)
			t.Setenv("AZURE_STORAGE_KEY", secret)
			key, err := azblob.NewSharedKeyCredential(name, secret)
			check(t, err)
			client, err := azblob.NewClientWithSharedKeyCredential("http://"+address+"/"+name, key, nil)
			check(t, err)
			_, err = client.CreateContainer(t.Context(), name, nil)
			check(t, err)
			return "azblob://" + name + "?localemu=true&protocol=http&domain=" + address
		},
	},
}

// Each runs a test with the URL of an empty store of each kind: a directory, [S3], the emulators whose
// variables name their program, and a part of the store that ACESCOPE_TEST_STORE names, such as
// s3://BUCKET?endpoint=http://127.0.0.1:7070&use_path_style=true&disable_https=true.
func Each(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("directory", func(t *testing.T) { test(t, "file://"+t.TempDir()) })
	t.Run("S3 in memory", func(t *testing.T) {
		setCredentials(t)
		test(t, StartS3(t).URL())
	})
	for kind, e := range emulators {
		t.Run(kind, func(t *testing.T) { test(t, e.start(t)) })
	}
	t.Run("environment", func(t *testing.T) {
		url := os.Getenv("ACESCOPE_TEST_STORE")
		if url == "" {
			t.Skip("set ACESCOPE_TEST_STORE to the URL of a store")
		}
		test(t, fmt.Sprintf("%s&prefix=%s-%d/", url, strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid()))
	})
}

// start starts the emulator until the test ends and returns the URL of its bucket. Without a program it skips
// the test.
func (e emulator) start(t *testing.T) string {
	program := os.Getenv(e.variable)
	if program == "" {
		t.Skipf("set %s to the emulator's program: %s", e.variable, e.install)
	}
	address, release, err := ports.Reserve()
	check(t, err)
	t.Cleanup(release)
	_, port, err := net.SplitHostPort(address)
	check(t, err)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, e.args(port, dir)...)
	cmd.Env = append(os.Environ(), e.env...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	check(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	for deadline := time.Now().Add(time.Minute); ; {
		answer, err := http.Get("http://" + address + cmp.Or(e.path, "/"))
		if err == nil {
			check(t, answer.Body.Close())
			return e.prepare(t, address, dir)
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s: %v: %s", program, err, output.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer: %v", program, err)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
