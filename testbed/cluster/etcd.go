// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/process"
)

const etcdLimit = 3 * time.Minute

// Etcd is a running etcd server that any number of clusters share, each under a key prefix of its own.
type Etcd struct {
	process *process.Process
	url     string
}

// StartEtcd runs etcd on free loopback ports with its data, log and process record in dir, and returns when it is
// healthy. It does not sync to disk: the data survives restarts of the API servers, not a crash of the machine. More
// flags of etcd may follow.
func StartEtcd(ctx context.Context, dir, binary string, flags ...string) (*Etcd, error) {
	if err := makeFolders(dir, "logs", "run"); err != nil {
		return nil, err
	}
	e := &Etcd{}
	err := loopback.OnFreePorts(ctx, 2, func(ports []int) error {
		client, peer := "http://"+loopback.Address(ports[0]), "http://"+loopback.Address(ports[1])
		p, err := process.Start(process.Spec{
			Name: build.Etcd,
			Path: binary,
			Args: append([]string{
				"--data-dir", filepath.Join(dir, "etcd-"+strconv.Itoa(ports[0])),
				"--listen-client-urls", client, "--advertise-client-urls", client,
				"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
				"--initial-cluster", "default=" + peer,
				"--unsafe-no-fsync", "--log-level", "warn",
			}, flags...),
			Log: process.LogPath(dir, build.Etcd),
			Dir: filepath.Join(dir, "run"),
		})
		if err != nil {
			return err
		}
		if err := p.WaitReady(ctx, etcdLimit, func(ctx context.Context) error {
			return getOK(ctx,
				client+"/readyz")
		}); err != nil {
			p.Kill()
			return err
		}
		e.process, e.url = p, client
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	return e, nil
}

// URL is where clients reach the server.
func (e *Etcd) URL() string { return e.url }

// Process returns the running server.
func (e *Etcd) Process() *process.Process { return e.process }

// Stop ends the server. The clusters that use it must be stopped before.
func (e *Etcd) Stop(ctx context.Context) { e.process.Stop(ctx) }

// getOK asks for url and wants status 200.
func getOK(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("build request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", url, response.Status)
	}
	return nil
}

func makeFolders(dir string, names ...string) error {
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return fmt.Errorf("create folder: %w", err)
		}
	}
	return nil
}
