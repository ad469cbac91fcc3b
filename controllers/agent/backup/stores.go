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
	// Secrets reads the Secrets in Namespace.
	Secrets   client.Reader
	Namespace string
}

// Open opens the folder for a new backup, and returns the folder's URL.
func (s Stores) Open(ctx context.Context, b *v1alpha1.OperatorBackup) (*blob.Bucket, string, error) {
	folderURL, err := s.chooseFolder(b)
	if err != nil {
		return nil, "", err
	}
	folder, err := s.openFolder(ctx, folderURL, b.Spec.CredentialsSecret)
	return folder, folderURL, err
}

// OpenTaken opens the folder of a backup that was taken. The folder is named in the status,
// which an attacker who controls the hub can write. OpenTaken therefore refuses a folder that
// Open would not have used. If the backup names no store, the folder can be in any allowed
// store, because the default store might have changed since.
func (s Stores) OpenTaken(ctx context.Context, b *v1alpha1.OperatorBackup) (*blob.Bucket, error) {
	roots := s.Allowed
	if b.Spec.Store != "" {
		roots = []string{b.Spec.Store}
	}
	for _, root := range roots {
		if folderURL, err := s.buildFolderURL(root, b); err == nil && folderURL == b.Status.Location {
			return s.openFolder(ctx, folderURL, b.Spec.CredentialsSecret)
		}
	}
	return nil, fmt.Errorf("%w: %w: %q is not the folder of this backup of cluster %s in a store that the agent's "+
		"flag --backup-store allows: %s", archive.ErrStore, errRefusedFolder, b.Status.Location, s.Cluster,
		strings.Join(s.Allowed, ", "))
}

// errRefusedFolder means that the status of a backup names a folder that does
// not belong to the backup.
var errRefusedFolder = errors.New("folder refused")

// chooseFolder returns the URL of the folder for a new backup, in the store that the backup names
// or in the default store.
func (s Stores) chooseFolder(b *v1alpha1.OperatorBackup) (string, error) {
	if len(s.Allowed) == 0 {
		return "", fmt.Errorf("%w: the agent has no store: set its flag --backup-store", archive.ErrStore)
	}
	root := b.Spec.Store
	if root == "" {
		root = s.Allowed[0]
	}
	return s.buildFolderURL(root, b)
}

// buildFolderURL returns the URL of a backup's folder in a store. It is an error if
// the store is not allowed.
func (s Stores) buildFolderURL(root string, b *v1alpha1.OperatorBackup) (string, error) {
	if !store.IsAllowed(root, s.Allowed) {
		return "", s.newNotAllowedError(root)
	}
	folderURL, err := store.Folder(root, s.Cluster, b.Spec.Operator.InstallName(), b.Name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", archive.ErrStore, err)
	}
	return folderURL, nil
}

// newNotAllowedError returns the error for a store that the agent's flag does not allow.
func (s Stores) newNotAllowedError(root string) error {
	return fmt.Errorf("%w: the agent may not use %s: its flag --backup-store allows %s", archive.ErrStore, root,
		strings.Join(s.Allowed, ", "))
}

// openFolder opens the folder with a URL, with the credentials of a Secret in Namespace if secret
// is not empty. Its errors wrap archive.ErrStore.
func (s Stores) openFolder(ctx context.Context, folderURL, secret string) (*blob.Bucket, error) {
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
	folder, err := store.Open(ctx, folderURL, credentials)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", archive.ErrStore, err)
	}
	return folder, nil
}
