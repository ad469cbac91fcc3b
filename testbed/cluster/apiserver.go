// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/process"
)

const (
	apiServerLimit = 5 * time.Minute
	// unservedRange is where the addresses of Services come from if nothing serves them.
	unservedRange = "10.0.0.0/16"
	// Issuer is the issuer and the audience of ServiceAccount tokens.
	Issuer = "https://kubernetes.default.svc.cluster.local"
)

func (c *Cluster) startAPIServer(ctx context.Context) error {
	return loopback.OnFreePorts(ctx, 1, func(ports []int) error {
		c.port = ports[0]
		if err := c.writeAdmin(); err != nil {
			return err
		}
		return c.launchAPIServer(ctx)
	})
}

// launchAPIServer runs the API server on the cluster's port and waits until it is ready.
func (c *Cluster) launchAPIServer(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	p, err := process.Start(process.Spec{
		Name: build.KubeAPIServer,
		Path: c.opts.Binaries[build.KubeAPIServer],
		Args: c.apiServerArgs(),
		Env:  c.memory(),
		Log:  process.LogPath(c.opts.Dir, build.KubeAPIServer),
		Dir:  c.path("run"),
	})
	if err != nil {
		return err
	}
	err = p.WaitReady(ctx, apiServerLimit, func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	if err != nil {
		p.Kill()
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apiServer = p
	return nil
}

func (c *Cluster) apiServerArgs() []string {
	return []string{
		"--etcd-servers", c.etcd.URL(),
		"--etcd-prefix", c.etcdPrefix(),
		"--bind-address", "127.0.0.1",
		"--advertise-address", "127.0.0.1",
		"--secure-port", strconv.Itoa(c.port),
		// An endpoint's address cannot be on loopback, so the server does not publish its own.
		"--endpoint-reconciler-type", "none",
		"--service-cluster-ip-range", c.ranges.services,
		"--client-ca-file", c.path("pki", fileCA),
		"--tls-cert-file", c.path("pki", fileServerCert),
		"--tls-private-key-file", c.path("pki", fileServerKey),
		"--service-account-issuer", Issuer,
		"--service-account-key-file", c.path("pki", fileSigningPub),
		"--service-account-signing-key-file", c.path("pki", fileSigningKey),
		"--authorization-mode", "RBAC",
		"--allow-privileged=true",
		"--shutdown-delay-duration", "0s",
		"--profiling=false",
	}
}

// RESTConfig returns a new client configuration with all rights and no client-side limit of requests. On a cluster for
// tests, reads that the API server fails to answer are repeated.
func (c *Cluster) RESTConfig() *rest.Config {
	config := rest.CopyConfig(c.config)
	if c.opts.Quick {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return repeatReads{next} })
	}
	return config
}

// KillAPIServer ends the API server as a crash would. Its data stays in etcd; RestartAPIServer brings it back.
func (c *Cluster) KillAPIServer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apiServer.Kill()
}

// RestartAPIServer ends the API server, if it runs, and starts it again with the same address, keys and data.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	c.apiServer.Stop(ctx)
	c.mu.Unlock()
	if err := c.launchAPIServer(ctx); err != nil {
		return fmt.Errorf("restart API server of %s: %w", c.opts.Name, err)
	}
	return nil
}

// Failure returns an error once the API server has ended without having been told to, and nil otherwise.
func (c *Cluster) Failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.apiServer == nil {
		return errors.New("API server was never started")
	}
	select {
	case <-c.apiServer.Done():
		return c.apiServer.Failure()
	default:
		return nil
	}
}
