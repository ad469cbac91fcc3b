// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gocloud.dev/blob"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/backups/store"
)

// Stores opens the folders of backups.
type Stores struct {
	Cluster string
	// Allowed are the URLs of the stores that the agent may write to. The first one
	// is the default.
	Allowed []string
	// Secrets reads Secrets of this namespace.
	Secrets   client.Reader
	Namespace string
}

// Open opens the folder of a backup, and returns its URL.
func (s Stores) Open(ctx context.Context, b *v1alpha1.OperatorBackup) (*blob.Bucket, string, error) {
	location, err := s.locate(b)
	if err != nil {
		return nil, "", err
	}
	bucket, err := s.open(ctx, location, b.Spec.CredentialsSecret)
	return bucket, location, err
}

// OpenTaken opens the folder of a backup that was taken. Its status names the folder, and may be written by whoever has
// taken over the hub: a folder that Open would not have written to is refused. Where the backup names no store, that is
// one in any store that is allowed, since the default may have been another one then.
func (s Stores) OpenTaken(ctx context.Context, b *v1alpha1.OperatorBackup) (*blob.Bucket, error) {
	roots := s.Allowed
	if b.Spec.Store != "" {
		roots = []string{b.Spec.Store}
	}
	for _, root := range roots {
		if own, err := s.folder(root, b); err == nil && own == b.Status.Location {
			return s.open(ctx, own, b.Spec.CredentialsSecret)
		}
	}
	return nil, fmt.Errorf("%w: %w: %q is not the folder of this backup of cluster %s in a store that the agent's "+
		"flag --backup-store allows: %s", archive.ErrStore, errRefusedFolder, b.Status.Location, s.Cluster,
		strings.Join(s.Allowed, ", "))
}

// errRefusedFolder says that a backup's status names a folder that is not the backup's.
var errRefusedFolder = errors.New("folder refused")

func (s Stores) locate(b *v1alpha1.OperatorBackup) (string, error) {
	if len(s.Allowed) == 0 {
		return "", fmt.Errorf("%w: the agent has no store: set its flag --backup-store", archive.ErrStore)
	}
	root := b.Spec.Store
	if root == "" {
		root = s.Allowed[0]
	}
	return s.folder(root, b)
}

// folder is the URL of a backup's folder in a store, which has to be allowed.
func (s Stores) folder(root string, b *v1alpha1.OperatorBackup) (string, error) {
	if !store.IsAllowed(root, s.Allowed) {
		return "", s.notAllowed(root)
	}
	location, err := store.Folder(root, s.Cluster, b.Spec.Operator.InstallName(), b.Name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", archive.ErrStore, err)
	}
	return location, nil
}

func (s Stores) notAllowed(location string) error {
	return fmt.Errorf("%w: the agent may not use %s: its flag --backup-store allows %s", archive.ErrStore, location,
		strings.Join(s.Allowed, ", "))
}

func (s Stores) open(ctx context.Context, location, secret string) (*blob.Bucket, error) {
	var credentials store.Credentials
	if secret != "" {
		object := &corev1.Secret{}
		key := client.ObjectKey{Namespace: s.Namespace, Name: secret}
		if err := s.Secrets.Get(ctx, key, object); err != nil {
			return nil, errors.Join(archive.ErrStore, fmt.Errorf("get Secret %s: %w", key, err))
		}
		var err error
		if credentials, err = store.CredentialsOf(object.Data); err != nil {
			return nil, fmt.Errorf("%w: read Secret %s: %w", archive.ErrStore, key, err)
		}
	}
	bucket, err := store.Open(ctx, location, credentials)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", archive.ErrStore, err)
	}
	return bucket, nil
}
