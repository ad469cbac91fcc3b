// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// renewedSuffix is appended to the name of the kubeconfig, for files and for keys of a Secret. A
// mounted Secret can therefore be read as files.
const renewedSuffix = ".renewed"

// Files is a Store of a kubeconfig and a file next to it.
type Files struct {
	// Kubeconfig is the path of the kubeconfig.
	Kubeconfig string
}

// Load implements Store.
func (f Files) Load(context.Context) (kubeconfig, renewed []byte, err error) {
	config, err := clientcmd.LoadFromFile(f.Kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, nil, fmt.Errorf("read kubeconfig %s: %w", f.Kubeconfig, err)
	}
	kubeconfig, err = clientcmd.Write(*config)
	if err != nil {
		return nil, nil, fmt.Errorf("read kubeconfig %s: %w", f.Kubeconfig, err)
	}
	renewed, err = os.ReadFile(f.Kubeconfig + renewedSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read renewed credentials: %w", err)
	}
	return kubeconfig, renewed, nil
}

// Save implements Store. Another process reads either the whole old file or the whole new file.
func (f Files) Save(_ context.Context, renewed []byte) error {
	if err := replaceFile(f.Kubeconfig+renewedSuffix, renewed); err != nil {
		return fmt.Errorf("store renewed credentials: %w", err)
	}
	return nil
}

// Secret is a Store in an existing Secret.
type Secret struct {
	Client client.Client
	Name   client.ObjectKey
	// Key is the key of the kubeconfig.
	Key string
}

// Load implements Store.
func (s Secret) Load(ctx context.Context) (kubeconfig, renewed []byte, err error) {
	var secret corev1.Secret
	if err := s.Client.Get(ctx, s.Name, &secret); err != nil {
		return nil, nil, fmt.Errorf("get Secret %s: %w", s.Name, err)
	}
	if len(secret.Data[s.Key]) == 0 {
		return nil, nil, fmt.Errorf("Secret %s has no key %q", s.Name, s.Key)
	}
	return secret.Data[s.Key], secret.Data[s.Key+renewedSuffix], nil
}

// Save implements Store.
func (s Secret) Save(ctx context.Context, renewed []byte) error {
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{s.Key + renewedSuffix: renewed}})
	if err != nil {
		return fmt.Errorf("store renewed credentials: %w", err)
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = s.Name.Namespace, s.Name.Name
	if err := s.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("store renewed credentials in Secret %s: %w", s.Name, err)
	}
	return nil
}

// Mounted is a Store in a Secret that the pod mounts. It reads the mounted files, so that Load
// does not need the cluster's API server.
type Mounted struct {
	Files
	// Client is a client of the agent's own cluster, and Name is the Secret in that cluster.
	Client client.Client
	Name   client.ObjectKey
}

// Save implements Store.
func (m Mounted) Save(ctx context.Context, renewed []byte) error {
	return Secret{Client: m.Client, Name: m.Name, Key: filepath.Base(m.Kubeconfig)}.Save(ctx, renewed)
}
