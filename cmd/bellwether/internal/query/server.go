// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/inventory"
)

// envServer is the environment variable with the URL of the hub's inventory. The flag --inventory has precedence.
const envServer = "BELLWETHER_INVENTORY"

const (
	// timeout limits a query. The hub ends queries before.
	timeout = 30 * time.Second
	// maxAnswer is larger than any answer of the hub.
	maxAnswer = 128 << 20
)

// serverFlags select the server.
type serverFlags struct{ address, tokenFile, caFile string }

func (f *serverFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.address, "inventory", "",
		"The `URL` of the hub's inventory, for example https://hub.example.com:8443. Default: $"+envServer+".")
	c.Flags().StringVar(&f.tokenFile, "inventory-token-file", "",
		"The `FILE` with a bearer token of the hub's API server. Default: the token of the kubeconfig.")
	c.Flags().StringVar(&f.caFile, "inventory-ca-file", "",
		"The `FILE` with the CA certificates for --inventory. Default: those of the system.")
	_ = c.MarkFlagFilename("inventory-token-file")
	_ = c.MarkFlagFilename("inventory-ca-file")
}

// server is a hub that answers queries.
type server struct {
	address string
	client  *http.Client
}

// connect returns the server of the flags or the environment. It sends no request.
func (a *app) connect(f *serverFlags) (*server, error) {
	const hint = "use a URL such as https://hub.example.com:8443; on the hub, the flags --inventory-file and " +
		"--inventory-bind-address set it up"
	address := cmp.Or(f.address, a.Getenv(envServer))
	if address == "" {
		return nil, exit.Hintf(hint, "no address of the hub's inventory: set --inventory or %s", envServer)
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return nil, exit.Hintf(hint, "invalid value %q of --inventory", address)
	}
	if host := parsed.Hostname(); parsed.Scheme == "http" && host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return nil, exit.Hintf(
			"use https, or kubectl port-forward",
			"your token must not cross a network by HTTP, to %s",
			address,
		)
	}
	config, err := a.buildConfig(f)
	if err != nil {
		return nil, err
	}
	config.Host, config.Timeout = address, timeout
	config.ServerName, config.Insecure = "", false
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &server{address: strings.TrimSuffix(address, "/"), client: client}, nil
}

// buildConfig returns the credentials for the server: a token, or what the kubeconfig has. The authorities of the
// kubeconfig sign the API server's certificate, and not that of the inventory.
func (a *app) buildConfig(f *serverFlags) (*rest.Config, error) {
	config := &rest.Config{BearerTokenFile: f.tokenFile}
	if f.tokenFile == "" {
		ofKubeconfig, err := a.ClusterConfig()
		if err != nil {
			return nil, err
		}
		config = rest.CopyConfig(ofKubeconfig)
		if config.Impersonate.UserName != "" {
			return nil, exit.Hintf("use the token of that user, with --inventory-token-file",
				"the hub's inventory does not support --as")
		}
		if config.BearerToken == "" && config.BearerTokenFile == "" && config.ExecProvider == nil &&
			config.AuthProvider == nil {
			return nil, exit.Hintf(
				"set --inventory-token-file; `kubectl create token` makes a token of a service account",
				"the kubeconfig has no token, and the hub identifies users by their tokens")
		}
	}
	config.CAData, config.CAFile = nil, f.caFile
	config.CertData, config.CertFile = nil, ""
	config.KeyData, config.KeyFile = nil, ""
	return config, nil
}

// query sends a query and returns the answer.
func (s *server) query(ctx context.Context, request inventory.Request) (*inventory.Answer, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encode query: %w", err)
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address+inventory.QueryPath, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", s.address, err)
	}
	post.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(post)
	if err != nil {
		var failure *url.Error
		if errors.As(err, &failure) {
			err = failure.Err
		}
		return nil, exit.Hintf("check --inventory and --inventory-ca-file, and that the hub is running",
			"cannot reach the hub's inventory at %s: %w", s.address, err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	decoder := json.NewDecoder(io.LimitReader(response.Body, maxAnswer))
	decoder.UseNumber()
	if response.StatusCode != http.StatusOK {
		var failure inventory.Failure
		if err := decoder.Decode(&failure); err != nil || failure.Error == "" {
			return nil, exit.Hintf(
				"check --inventory",
				"%s is no inventory of a hub: it answers %q",
				s.address,
				response.Status,
			)
		}
		return nil, errors.New(failure.Error)
	}
	answer := &inventory.Answer{}
	if err := decoder.Decode(answer); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", s.address, err)
	}
	return answer, nil
}
