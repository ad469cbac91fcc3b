// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// errChanged means that a kubeconfig differs from the kubeconfig that the agent started with.
var errChanged = errors.New("a kubeconfig has changed")

// fileCheckInterval is how often kubeconfigs are read. Files are polled, because a mounted
// Secret is replaced with symbolic links, which is hard to watch.
const fileCheckInterval = 5 * time.Second

// fileWatcher compares kubeconfigs with their content at the start. Files that a
// kubeconfig names are not compared: client-go reads token files each minute, and client
// certificates for each connection.
type fileWatcher struct {
	paths       []string
	startDigest [sha256.Size]byte
}

// newFileWatcher reads the current content of the files. Empty paths are ignored.
func newFileWatcher(paths ...string) (*fileWatcher, error) {
	w := &fileWatcher{}
	for _, path := range paths {
		if path != "" {
			w.paths = append(w.paths, path)
		}
	}
	var err error
	w.startDigest, err = w.computeDigest()
	return w, err
}

// waitForChange returns errChanged when the files have changed and can be used, and
// nil when the context ends.
func (w *fileWatcher) waitForChange(ctx context.Context) error {
	ticker := time.NewTicker(fileCheckInterval)
	defer ticker.Stop()
	unusable := false // whether the error was logged already
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		current, err := w.computeDigest()
		switch {
		case err != nil && !unusable:
			log.FromContext(ctx).Error(err, "Cannot use the changed kubeconfig; continuing with the previous one")
		case err == nil && current != w.startDigest:
			log.FromContext(ctx).Info("A kubeconfig has changed; starting again with it", "files", w.paths)
			return errChanged
		}
		unusable = err != nil
	}
}

// computeDigest returns a digest of the kubeconfigs and of the certificate authorities that they
// name. It returns an error if a kubeconfig cannot be used.
func (w *fileWatcher) computeDigest() (sum [sha256.Size]byte, err error) {
	hash := sha256.New()
	for _, path := range w.paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return sum, fmt.Errorf("read kubeconfig: %w", err)
		}
		config, err := loadKubeconfig(path)
		if err != nil {
			return sum, fmt.Errorf("use kubeconfig %s: %w", path, err)
		}
		hash.Write(content)
		hash.Write(config.CAData)
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}

// loadKubeconfig reads a kubeconfig and the certificates that it names. For an empty file it
// returns an error, while clientcmd would use the pod's ServiceAccount.
func loadKubeconfig(path string) (*rest.Config, error) {
	file, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, err
	}
	if err := clientcmd.ResolveLocalPaths(file); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	return config, rest.LoadTLSFiles(config)
}

// restart replaces this process by a new process of the same program with the same arguments. It
// returns only if that fails.
//
// A replacement of the credentials in running clients would be cheaper, but watches would
// continue at their resource versions, which have another meaning on another hub or on a
// restored hub. A new process has no state of the old hub. During the restart, the agent serves no
// catalog views for about a second, and OLM waits. The process replaces itself, so that no other
// program must start the agent again: the kubelet would wait longer before each start.
func restart() error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start again: %w", err)
	}
	if err := syscall.Exec(program, os.Args, os.Environ()); err != nil { //nolint:gosec // it is this very program
		return fmt.Errorf("start again: %w", err)
	}
	return nil
}
