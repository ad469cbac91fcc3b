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

// errChanged says that a kubeconfig is not the one that the agent started with.
var errChanged = errors.New("a kubeconfig has changed")

// checkFilesEvery is how often kubeconfigs are read. They are polled: a mounted
// Secret is exchanged by symbolic links, which is hard to watch.
const checkFilesEvery = 5 * time.Second

// fileWatcher compares kubeconfigs with what they were at the start. Credentials
// that a kubeconfig names by file need no watcher: client-go reads token files
// again each minute, and client certificates for each connection.
type fileWatcher struct {
	paths []string
	start [sha256.Size]byte
}

// newFileWatcher takes in the files as they are now. Empty paths are left out.
func newFileWatcher(paths ...string) (*fileWatcher, error) {
	w := &fileWatcher{}
	for _, path := range paths {
		if path != "" {
			w.paths = append(w.paths, path)
		}
	}
	var err error
	w.start, err = w.digest()
	return w, err
}

// wait returns errChanged once the files have other content that can be used, and
// nil when the context ends.
func (w *fileWatcher) wait(ctx context.Context) error {
	ticker := time.NewTicker(checkFilesEvery)
	defer ticker.Stop()
	unusable := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now, err := w.digest()
		switch {
		case err != nil && !unusable:
			log.FromContext(ctx).Error(err, "Cannot use the changed kubeconfig; staying with the one before")
		case err == nil && now != w.start:
			log.FromContext(ctx).Info("A kubeconfig has changed; starting again with it", "files", w.paths)
			return errChanged
		}
		unusable = err != nil
	}
}

// digest covers the kubeconfigs and the certificate authorities that they name. The
// error says which one cannot be used.
func (w *fileWatcher) digest() (sum [sha256.Size]byte, err error) {
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

// loadKubeconfig reads a kubeconfig and the certificates that it names. It does not fall back
// to the pod's ServiceAccount, as clientcmd does for an empty file.
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

// restart replaces this process by a new one of the same program, with the same
// arguments. It returns only if that fails.
//
// Exchanging the credentials of running clients would be less work for the agent,
// but watches would go on where they were, also against another hub or one that was
// restored, whose resource versions mean something else. A new process knows nothing
// of the old hub; it costs a second without catalog views, for which OLM waits. And
// it does not depend on something outside that starts the agent again, nor on the
// growing delays with which a kubelet does that.
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
