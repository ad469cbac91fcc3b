// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// dial returns a client for the hub. It sends no request.
func (a *Env) dial() (client.WithWatch, error) {
	config, err := a.restConfig()
	if err != nil {
		return nil, AddKubeconfigHint(err)
	}
	if config.Host == defaultHost {
		return nil, errNoKubeconfig
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: hub.Scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	return c, nil
}

// ClusterConfig returns the configuration for the cluster of --kubeconfig and --context. It is for commands
// whose cluster need not be the hub.
func (a *Env) ClusterConfig() (*rest.Config, error) {
	config, err := a.restConfig()
	switch {
	// Without a kubeconfig, client-go returns either an error or the default host.
	case clientcmd.IsEmptyConfig(err), err == nil && config.Host == defaultHost:
		return nil, exit.Hintf("set --kubeconfig or KUBECONFIG", "no kubeconfig for the cluster")
	case err != nil:
		return nil, AddKubeconfigHint(err)
	}
	return config, nil
}

// restConfig returns the configuration from the kubeconfig and the flags.
func (a *Env) restConfig() (*rest.Config, error) {
	if timeout := *a.Flags.Timeout; timeout != "" {
		if _, err := clientcmd.ParseTimeout(timeout); err != nil {
			return nil, exit.Hintf("use a duration such as 30s", "invalid value %q of --request-timeout", timeout)
		}
	}
	return a.Flags.ToRESTConfig()
}

// CheckReachable returns an error if the cluster does not respond, or does not accept the user's credentials. Other
// answers of the API server are no error. A command calls CheckReachable first, so that it does not fail in the middle
// of its work.
func CheckReachable(ctx context.Context, config *rest.Config) error {
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return AddKubeconfigHint(err)
	}
	err = c.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	var address *url.Error
	switch {
	case apierrors.IsUnauthorized(err):
		return exit.Hintf("log in again, or select another --context",
			"the cluster at %s does not accept your credentials", config.Host)
	case errors.As(err, &address):
		return exit.Hintf("check --kubeconfig and --context, and that the cluster is running",
			"cannot reach the cluster at %s: %w", config.Host, findCause(address))
	}
	return ctx.Err()
}

// findCause returns why a request got no response, without the URL of the request.
func findCause(err *url.Error) error {
	if err.Timeout() {
		return errNoAnswer
	}
	return err.Err
}

var errNoAnswer = errors.New("no answer in time")

// defaultHost is the host that client-go uses if there is no kubeconfig.
const defaultHost = "http://localhost:8080"

var errNoKubeconfig = exit.Hint(errors.New("no kubeconfig for the hub"),
	"set --kubeconfig or KUBECONFIG")

// AddKubeconfigHint adds to an error of the kubeconfig what the user can do.
func AddKubeconfigHint(err error) error {
	var hinted *exit.HintError
	switch {
	case clientcmd.IsEmptyConfig(err):
		return errNoKubeconfig
	case errors.As(err, &hinted):
		return err
	}
	return exit.Hintf("check --kubeconfig and --context", "read the kubeconfig: %w", err)
}

// Namespace returns the namespace of -n, or of the kubeconfig's context.
func (a *Env) Namespace() (string, error) {
	namespace, _, err := a.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", AddKubeconfigHint(err)
	}
	return namespace, nil
}

// Hub returns a client for the hub with the user's namespace.
func (a *Env) Hub() (*hub.Client, error) {
	c, err := a.Connect()
	if err != nil {
		return nil, err
	}
	namespace, err := a.Namespace()
	if err != nil {
		return nil, err
	}
	h := hub.New(c, namespace, a.Self)
	if a.connected != nil {
		a.connected(h)
	}
	return h, nil
}

// WarnOfFreezes prints on stderr each FleetFreeze that stops changes. It prints nothing if they cannot be read.
func (a *Env) WarnOfFreezes(ctx context.Context, h *hub.Client) {
	list, _ := h.ListFreezes(ctx)
	for _, f := range list {
		a.Warn("Frozen since %s: %s stops all changes on %s: %s\n", term.Instant(f.CreationTimestamp.Time),
			f.Name, DescribeFrozenClusters(&f), phrase.OneLine(f.Spec.Reason))
	}
}

// DescribeFrozenClusters returns which clusters a freeze applies to.
func DescribeFrozenClusters(f *v1alpha1.FleetFreeze) string {
	if slices.Contains(f.Spec.Clusters, "*") {
		return "the whole fleet"
	}
	return "clusters " + phrase.First(f.Spec.Clusters, 5)
}
