package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"go.temporal.io/server/common/authorization"
)

const bearer = "Bearer "

// loadToken reads the token that lets a process in, and makes it the first time: 32
// random bytes as hexadecimal digits. A token that others could have read is refused.
func loadToken(dir string) (string, error) {
	path := filepath.Join(dir, tokenFile)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeToken(dir, path); err != nil {
			return "", err
		}
		info, err = os.Stat(path)
	}
	if err != nil {
		return "", dirError(dir, err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "", failf(ErrDataDir, nil,
			"token %s has mode %04o, so other users may have read it: stop acescope, delete the file and start again, which makes a new one",
			path, info.Mode().Perm())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", dirError(dir, err)
	}
	token := strings.TrimSpace(string(data))
	if raw, err := hex.DecodeString(token); err != nil || len(raw) != 32 {
		return "", failf(ErrDataDir, err, "token %s is damaged: stop acescope, delete the file and start again, which makes a new one", path)
	}
	return token, nil
}

// makeToken puts a new token in place unless another process was faster.
func makeToken(dir, path string) error {
	raw := make([]byte, 32)
	rand.Read(raw)
	tmp, err := os.CreateTemp(dir, "."+tokenFile+"-*")
	if err != nil {
		return dirError(dir, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(hex.EncodeToString(raw) + "\n")
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Link(tmp.Name(), path)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return dirError(dir, err)
	}
	return nil
}

// gate lets calls in that carry the token. It is both halves of Temporal's
// authorization: who is calling, and whether they may.
type gate struct{ want [sha256.Size]byte }

func newGate(token string) *gate { return &gate{want: sha256.Sum256([]byte(token))} }

// GetClaims makes the holder of the token an administrator and everybody else
// nobody. Hashes are compared, so the time taken tells neither content nor length.
func (g *gate) GetClaims(info *authorization.AuthInfo) (*authorization.Claims, error) {
	token, _ := strings.CutPrefix(info.AuthToken, bearer)
	got := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(got[:], g.want[:]) != 1 {
		return &authorization.Claims{}, nil
	}
	return &authorization.Claims{System: authorization.RoleAdmin}, nil
}

// Authorize allows administrators everything and everybody the health check. The
// server's own workers come in by the internal frontend, whose claims the server
// makes itself and whose port asks for a certificate.
func (g *gate) Authorize(
	_ context.Context, claims *authorization.Claims, target *authorization.CallTarget,
) (authorization.Result, error) {
	if claims != nil && claims.System&authorization.RoleAdmin != 0 {
		return authorization.Result{Decision: authorization.DecisionAllow}, nil
	}
	if target.APIName == "/grpc.health.v1.Health/Check" {
		return authorization.Result{Decision: authorization.DecisionAllow}, nil
	}
	return authorization.Result{
		Decision: authorization.DecisionDeny,
		Reason:   "this server needs its user's token; acescope serve --print-env shows how to send it",
	}, nil
}

// tokenHeader sends the token with every call of a client.
type tokenHeader string

// GetHeaders is the SDK's HeadersProvider.
func (t tokenHeader) GetHeaders(context.Context) (map[string]string, error) {
	return map[string]string{"authorization": bearer + string(t)}, nil
}
