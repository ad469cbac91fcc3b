// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/demo/plan"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/version"
)

// target is the cluster of the demo.
type target struct {
	client.Client
	discovery       discovery.DiscoveryInterface
	context, server string
}

// connect finds the cluster. It does not talk to it yet.
func (a *app) connect() (*target, error) {
	config, err := a.ClusterConfig()
	if err != nil {
		return nil, err
	}
	raw, err := a.Flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, command.BadKubeconfig(err)
	}
	name := raw.CurrentContext
	if a.Flags.Context != nil && *a.Flags.Context != "" {
		name = *a.Flags.Context
	}
	if raw.Contexts[name] == nil {
		return nil, exit.Hintf("select the cluster with --kubeconfig and --context",
			"there is no context %q in the kubeconfig", name)
	}
	for flag, value := range map[string]*string{"server": a.Flags.APIServer, "token": a.Flags.BearerToken,
		"as": a.Flags.Impersonate} {
		if value != nil && *value != "" {
			return nil, exit.Hintf("write it to a context of the kubeconfig", "--%s cannot be used here: "+
				"the cluster is also joined to the fleet, by the same kubeconfig", flag)
		}
	}
	c, err := client.New(config, client.Options{Scheme: hub.Scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return &target{Client: c, discovery: d, context: name, server: config.Host}, nil
}

// observe reads what the plan is made of.
func (a *app) observe(ctx context.Context, t *target, o *options) (plan.Observation, error) {
	seen := plan.Observation{Context: t.context, Server: t.server, Namespaces: map[string]plan.Presence{}}
	server, err := t.discovery.ServerVersion()
	if err != nil {
		return seen, fmt.Errorf("get the version of the cluster: %w", err)
	}
	seen.Kubernetes = server.GitVersion
	chart, err := charts.Load()
	if err != nil {
		return seen, err
	}
	seen.Required = chart.Metadata.KubeVersion
	if seen.OLM, err = t.serves("operators.coreos.com/v1alpha1"); err != nil {
		return seen, err
	}
	if seen.Installed, err = t.serves(v1alpha1.SchemeGroupVersion.String()); err != nil {
		return seen, err
	}
	if seen.Administrator, err = t.administrator(ctx); err != nil {
		return seen, err
	}
	if err := t.observeNamespaces(ctx, &seen); err != nil {
		return seen, err
	}
	if seen.Installed {
		if err := t.observeHub(ctx, &seen); err != nil {
			return seen, err
		}
	}
	if o.remove {
		return seen, nil
	}
	repository, err := chartutil.Values(chart.Values).PathValue("hub.image.repository")
	if err != nil {
		return seen, fmt.Errorf("read the chart's values: %w", err)
	}
	seen.Images = o.images(ctx, fmt.Sprint(repository), chart.AppVersion())
	return seen, nil
}

// serves tells whether the API server serves a version of a group.
func (t *target) serves(groupVersion string) (bool, error) {
	_, err := t.discovery.ServerResourcesForGroupVersion(groupVersion)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the API %s: %w", groupVersion, err)
	}
	return true, nil
}

func (t *target) administrator(ctx context.Context) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "*", Resource: "*", Verb: "*"}}}
	if err := t.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask the cluster what you may do: %w", err)
	}
	return review.Status.Allowed, nil
}

func (t *target) observeNamespaces(ctx context.Context, seen *plan.Observation) error {
	for _, name := range plan.Namespaces() {
		n := &corev1.Namespace{}
		err := t.Get(ctx, client.ObjectKey{Name: name}, n)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			continue // whoever may not read it is no administrator, which the plan says
		}
		if err != nil {
			return fmt.Errorf("get namespace %s: %w", name, err)
		}
		seen.Namespaces[name] = plan.Presence{Exists: true, Marked: n.Labels[plan.Label] == "true",
			Terminating: n.DeletionTimestamp != nil}
	}
	return nil
}

func (t *target) observeHub(ctx context.Context, seen *plan.Observation) error {
	clusters := &v1alpha1.FleetClusterList{}
	operators := &v1alpha1.ManagedOperatorList{}
	for _, list := range []client.ObjectList{clusters, operators} {
		// An agent's cluster has only one of our CRDs.
		if err := t.List(ctx, list); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) &&
			!meta.IsNoMatchError(err) {
			return fmt.Errorf("list what the hub has: %w", err)
		}
	}
	for i := range clusters.Items {
		seen.Clusters = append(seen.Clusters, clusters.Items[i].Name)
	}
	for i := range operators.Items {
		m := &operators.Items[i]
		name := m.Namespace + "/" + m.Name
		seen.Operators = append(seen.Operators, name)
		if name == plan.Namespace+"/"+plan.Operator {
			seen.Version = m.Spec.Version
		}
	}
	return nil
}

// images are the images that the demo runs. The registry says what their tags stand for, and whether they are there.
func (o *options) images(ctx context.Context, hub, release string) plan.Images {
	below := strings.TrimSuffix(hub, "/hub")
	tag := release
	if o.registry != "" {
		below = strings.TrimSuffix(o.registry, "/")
		if _, is := version.Release(); !is {
			tag = strings.ReplaceAll(version.Get().Version, "+", "-") // as make images tags them
		}
	}
	c := oci.NewClient(oci.Options{})
	find := func(name string) plan.Image {
		i := plan.Image{Repository: below + "/" + name, Tag: cmp.Or(o.tag, tag)}
		if o.skipImageCheck {
			return i
		}
		digest, err := c.Resolve(ctx, oci.Source{Image: i.String(), Access: o.access.Access()})
		if err != nil {
			i.Problem = cmp.Or(oci.Detail(err), err.Error())
			return i
		}
		i.Digest = digest
		return i
	}
	return plan.Images{Hub: find("hub"), Agent: find("agent"), Bellwether: find("bellwether")}
}
