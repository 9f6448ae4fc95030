package bucket

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"gocloud.dev/gcerrors"
)

// failure is the error of a request to an object store, without the names and ids that SDKs add.
type failure struct {
	kind   error // ErrUnavailable or ErrDenied
	reason string
	cause  error
}

func (f *failure) Error() string { return f.kind.Error() + ": " + f.reason }

func (f *failure) Unwrap() []error { return []error{f.kind, ErrUnavailable, f.cause} }

func failureOf(err error) error {
	var answer interface {
		ErrorCode() string
		ErrorMessage() string
	} // of S3
	f := &failure{ErrUnavailable, "", err}
	switch {
	case strings.Contains(err.Error(), noCredentials):
		f.kind, f.reason = ErrDenied, "this process has no credentials"
		return f
	case isDenied(err):
		f.kind = ErrDenied
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		f.reason = request.Err.Error() // without the address of the object
	} else if errors.As(err, &answer) {
		f.reason = fmt.Sprintf("%s: %s", answer.ErrorCode(), answer.ErrorMessage())
	} else {
		f.reason = cmp.Or(errors.Unwrap(err), err).Error() // the error of blob repeats the key
	}
	return f
}

// noCredentials is part of the error of the S3 SDK if it finds no credentials.
const noCredentials = "get credentials:"

func isDenied(err error) bool {
	var response interface{ HTTPStatusCode() int } // of S3
	if errors.As(err, &response) && (response.HTTPStatusCode() == http.StatusForbidden ||
		response.HTTPStatusCode() == http.StatusUnauthorized) {
		return true
	}
	return gcerrors.Code(err) == gcerrors.PermissionDenied
}

// noMetadataV1 is a variable of the S3 SDK.
const noMetadataV1 = "AWS_EC2_METADATA_V1_DISABLED"

// quietSDK keeps the S3 SDK from writing warnings to standard error, which would appear on the screen of a
// console: in a process without credentials, and for every answer without checksums. acescope verifies
// contents by their digests.
func quietSDK(u *url.URL) error {
	if u.Scheme != "s3" {
		return nil
	}
	const validation = "response_checksum_validation"
	if q := u.Query(); !q.Has(validation) {
		q.Set(validation, "when_required")
		u.RawQuery = q.Encode()
	}
	if _, set := os.LookupEnv(noMetadataV1); set {
		return nil
	}
	return os.Setenv(noMetadataV1, "true")
}
