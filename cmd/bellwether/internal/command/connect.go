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
	"github.com/bellwether-dev/bellwether/phrase"
)

// dial connects to the hub. It does not talk to it yet.
func (a *Env) dial() (client.WithWatch, error) {
	config, err := a.restConfig()
	if err != nil {
		return nil, BadKubeconfig(err)
	}
	if config.Host == nowhere {
		return nil, errNoKubeconfig
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: hub.Scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	return c, nil
}

// ClusterConfig is how to reach the cluster of --kubeconfig and --context, for commands
// to which that is not the hub.
func (a *Env) ClusterConfig() (*rest.Config, error) {
	config, err := a.restConfig()
	switch {
	case clientcmd.IsEmptyConfig(err), err == nil && config.Host == nowhere:
		return nil, exit.Hintf("set --kubeconfig or KUBECONFIG", "no kubeconfig for the cluster")
	case err != nil:
		return nil, BadKubeconfig(err)
	}
	return config, nil
}

// restConfig reads the kubeconfig, and what the flags change of it.
func (a *Env) restConfig() (*rest.Config, error) {
	if timeout := *a.Flags.Timeout; timeout != "" {
		if _, err := clientcmd.ParseTimeout(timeout); err != nil {
			return nil, exit.Hintf("use a duration such as 30s", "invalid value %q of --request-timeout", timeout)
		}
	}
	return a.Flags.ToRESTConfig()
}

// Reach returns an error if the cluster does not answer, or does not accept the user's credentials. It is for a command
// that otherwise learns it after it has begun to work.
func Reach(ctx context.Context, config *rest.Config) error {
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return BadKubeconfig(err)
	}
	err = c.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	var address *url.Error
	switch {
	case apierrors.IsUnauthorized(err):
		return exit.Hintf("log in again, or select another --context",
			"the cluster at %s does not accept your credentials", config.Host)
	case errors.As(err, &address):
		return exit.Hintf("check --kubeconfig and --context, and that the cluster is running",
			"cannot reach the cluster at %s: %w", config.Host, cause(address))
	}
	return ctx.Err()
}

// cause is why a request had no answer.
func cause(err *url.Error) error {
	if err.Timeout() {
		return errNoAnswer
	}
	return err.Err
}

var errNoAnswer = errors.New("no answer in time")

// nowhere is what client-go makes of a kubeconfig that is not there.
const nowhere = "http://localhost:8080"

var errNoKubeconfig = exit.Hint(errors.New("no kubeconfig for the hub"),
	"set --kubeconfig or KUBECONFIG")

// BadKubeconfig adds to an error of a kubeconfig what to do about it.
func BadKubeconfig(err error) error {
	var hinted *exit.HintError
	switch {
	case clientcmd.IsEmptyConfig(err):
		return errNoKubeconfig
	case errors.As(err, &hinted):
		return err
	}
	return exit.Hintf("check --kubeconfig and --context", "read the kubeconfig: %w", err)
}

// Namespace is the one of -n, or of the kubeconfig's context.
func (a *Env) Namespace() (string, error) {
	namespace, _, err := a.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", BadKubeconfig(err)
	}
	return namespace, nil
}

// Hub connects to the hub, once for each run of the program.
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

// TellOfFreezes says on stderr what has stopped changes, for whoever looks at the fleet. Where that cannot be read, it
// says nothing.
func (a *Env) TellOfFreezes(ctx context.Context, h *hub.Client) {
	list, _ := h.Freezes(ctx)
	for _, f := range list {
		a.Warn("Frozen since %s: %s stops all changes on %s: %s\n", term.Instant(f.CreationTimestamp.Time),
			f.Name, FrozenClusters(&f), phrase.OneLine(f.Spec.Reason))
	}
}

// FrozenClusters names what a freeze is about.
func FrozenClusters(f *v1alpha1.FleetFreeze) string {
	if slices.Contains(f.Spec.Clusters, "*") {
		return "the whole fleet"
	}
	return "clusters " + phrase.First(f.Spec.Clusters, 5)
}
