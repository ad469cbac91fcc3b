// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package store opens the stores of backups by URL. It supports folders (file:///path) and buckets of S3 and
// compatible stores (s3://bucket/prefix). Other drivers of gocloud.dev/blob also work if a program imports them.
package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/s3blob"
)

// Credentials are the credentials of a store. Without an access key, the credentials of the environment are used.
type Credentials struct{ AccessKeyID, SecretAccessKey, SessionToken string }

// The keys of a Secret with credentials.
const (
	KeyAccessKeyID     = "accessKeyID"
	KeySecretAccessKey = "secretAccessKey"
	KeySessionToken    = "sessionToken"
)

// CredentialsOf reads credentials from a Secret's data.
func CredentialsOf(data map[string][]byte) (Credentials, error) {
	c := Credentials{AccessKeyID: string(data[KeyAccessKeyID]), SecretAccessKey: string(data[KeySecretAccessKey]),
		SessionToken: string(data[KeySessionToken])}
	if c.AccessKeyID == "" || c.SecretAccessKey == "" {
		return Credentials{}, fmt.Errorf("it needs the keys %s and %s", KeyAccessKeyID, KeySecretAccessKey)
	}
	return c, nil
}

// ErrURL means that a URL does not name a store.
var ErrURL = errors.New("invalid URL of a store")

// Folder returns the URL of a folder in a store. Each element must be a single name, so that the folder cannot be
// outside the store, or in the folder of another cluster.
func Folder(store string, elements ...string) (string, error) {
	for _, e := range elements {
		if e == "" || e == "." || e == ".." || strings.ContainsAny(e, `/\`) {
			return "", fmt.Errorf("%w: %q is no name of a folder", ErrURL, e)
		}
	}
	u, err := url.Parse(store)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrURL, err)
	}
	u.Path = path.Join(append([]string{"/", u.Path}, elements...)...)
	return u.String(), nil
}

// IsAllowed reports whether a URL (store) is an allowed store, or a folder in an allowed store. The options of an S3
// store must be the same, because they can name another endpoint.
func IsAllowed(store string, allowed []string) bool {
	u, err := url.Parse(store)
	if err != nil {
		return false
	}
	for _, text := range allowed {
		a, err := url.Parse(text)
		if err != nil || a.Scheme != u.Scheme || a.Host != u.Host || a.RawQuery != u.RawQuery {
			continue
		}
		root, folder := path.Join("/", a.Path), path.Join("/", u.Path)
		if root == "/" || folder == root || strings.HasPrefix(folder, root+"/") {
			return true
		}
	}
	return false
}

// Open opens the folder with the URL location. It creates the folder of a file store. It does not connect to an S3
// store.
func Open(ctx context.Context, location string, c Credentials) (*blob.Bucket, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	switch u.Scheme {
	case fileblob.Scheme:
		return openFolder(u)
	case s3blob.Scheme:
		return openS3(ctx, u, c)
	default:
		bucket, err := blob.OpenBucket(ctx, location)
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrURL, location, err)
		}
		return bucket, nil
	}
}

// openFolder opens a folder of the file system.
func openFolder(u *url.URL) (*blob.Bucket, error) {
	if u.Host != "" || u.Path == "" || u.RawQuery != "" {
		return nil, fmt.Errorf("%w: %q: a folder is file:///path", ErrURL, u)
	}
	// Temporary files are in the same folder, because a written file is renamed,
	// which works only within one file system.
	bucket, err := fileblob.OpenBucket(u.Path, &fileblob.Options{CreateDir: true, NoTempDir: true,
		DirFileMode: 0o700, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return nil, fmt.Errorf("open folder %s: %w", u.Path, err)
	}
	return bucket, nil
}

// The options in the URL of an S3 store.
const (
	optionRegion    = "region"
	optionEndpoint  = "endpoint"
	optionPathStyle = "pathStyle"
)

// openS3 opens a bucket of S3 or of a compatible server (option endpoint), or the prefix of a bucket.
func openS3(ctx context.Context, u *url.URL, c Credentials) (*blob.Bucket, error) {
	for option := range u.Query() {
		if option != optionRegion && option != optionEndpoint && option != optionPathStyle {
			return nil, fmt.Errorf("%w: %q: unknown option %q; known are %s, %s and %s", ErrURL, u, option,
				optionRegion, optionEndpoint, optionPathStyle)
		}
	}
	var options []func(*awsconfig.LoadOptions) error
	if region := u.Query().Get(optionRegion); region != "" {
		options = append(options, awsconfig.WithRegion(region))
	}
	if c.AccessKeyID != "" {
		options = append(options, awsconfig.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)))
	}
	config, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("configure S3: %w", err)
	}
	client := s3.NewFromConfig(config, func(o *s3.Options) {
		if endpoint := u.Query().Get(optionEndpoint); endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
			// Servers that are only compatible with S3 do not support newer checksums.
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
		o.UsePathStyle = u.Query().Get(optionPathStyle) == "true"
	})
	bucket, err := s3blob.OpenBucket(ctx, client, u.Host, nil)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", u.Host, err)
	}
	if prefix := strings.Trim(u.Path, "/"); prefix != "" {
		bucket = blob.PrefixedBucket(bucket, prefix+"/")
	}
	return bucket, nil
}
