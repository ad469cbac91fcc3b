// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bellwether-dev/bellwether/testbed/podrunner/plan"
)

// partSuffix marks a file that is being written.
const partSuffix = ".part~"

func (vs *Volumes) addSecret(ctx context.Context, pod *corev1.Pod, files map[string][]byte, name string,
	items []corev1.KeyToPath, optional *bool) error {
	data, err := vs.src.Secret(ctx, pod.Namespace, name)
	if err := present(err, optional); err != nil {
		return fmt.Errorf("read secret %q: %w", name, err)
	}
	return addKeys(files, data, items, optional)
}

func (vs *Volumes) addConfigMap(ctx context.Context, pod *corev1.Pod, files map[string][]byte, name string,
	items []corev1.KeyToPath, optional *bool) error {
	data, err := vs.src.ConfigMap(ctx, pod.Namespace, name)
	if err := present(err, optional); err != nil {
		return fmt.Errorf("read configmap %q: %w", name, err)
	}
	return addKeys(files, data, items, optional)
}

// present drops the error for an optional object that is missing.
func present(err error, optional *bool) error {
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	}
	return err
}

func addKeys(files, data map[string][]byte, items []corev1.KeyToPath, optional *bool) error {
	if len(items) == 0 {
		for key, value := range data {
			files[key] = value
		}
		return nil
	}
	for _, item := range items {
		value, ok := data[item.Key]
		switch {
		case ok:
			files[item.Path] = value
		case optional == nil || !*optional:
			return fmt.Errorf("key %q not found", item.Key)
		}
	}
	return nil
}

func addFields(pod *corev1.Pod, files map[string][]byte, items []corev1.DownwardAPIVolumeFile) error {
	for _, item := range items {
		if item.FieldRef == nil {
			return fmt.Errorf("file %q: %w", item.Path, ErrUnsupported)
		}
		value, err := plan.Field(pod, item.FieldRef.FieldPath)
		if err != nil {
			return fmt.Errorf("file %q: %w", item.Path, err)
		}
		files[item.Path] = []byte(value)
	}
	return nil
}

// writeFile replaces path if its content differs, so that a reader sees the
// old content or the new one, and a watcher only real changes.
func writeFile(path string, data []byte) error {
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	part := path + partSuffix
	if err := os.WriteFile(part, data, 0o600); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("replace file: %w", err)
	}
	return nil
}

// prune removes the files below dir that are not wanted any more.
func prune(dir string, wanted map[string][]byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if _, ok := wanted[name]; ok || strings.HasSuffix(name, partSuffix) {
			return nil
		}
		if err := root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}
