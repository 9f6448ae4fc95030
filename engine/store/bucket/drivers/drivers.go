// Package drivers adds the object stores of three clouds to package bucket. Only what opens a user's store
// imports it, because the libraries of the clouds take most of the time to link a test.
package drivers

import (
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
)
