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
	"github.com/bellwether-dev/bellwether/internal/version"
)

// target is the cluster of the demo.
type target struct {
	client.Client
	discovery       discovery.DiscoveryInterface
	context, server string
}

// connect returns the cluster of the selected context. It sends no request to the cluster.
func (a *app) connect() (*target, error) {
	config, err := a.ClusterConfig()
	if err != nil {
		return nil, err
	}
	raw, err := a.Flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, command.AddKubeconfigHint(err)
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

// observeCluster reads the state of the cluster and of the images from which the demo is planned.
func (a *app) observeCluster(ctx context.Context, t *target, o *options) (plan.Observation, error) {
	observation := plan.Observation{Context: t.context, Server: t.server, Namespaces: map[string]plan.Presence{}}
	server, err := t.discovery.ServerVersion()
	if err != nil {
		return observation, fmt.Errorf("get the version of the cluster: %w", err)
	}
	observation.Kubernetes = server.GitVersion
	chart, err := charts.Load()
	if err != nil {
		return observation, err
	}
	observation.Required = chart.Metadata.KubeVersion
	if observation.OLM, err = t.servesAPI("operators.coreos.com/v1alpha1"); err != nil {
		return observation, err
	}
	if observation.Installed, err = t.servesAPI(v1alpha1.SchemeGroupVersion.String()); err != nil {
		return observation, err
	}
	if observation.Administrator, err = t.isAdministrator(ctx); err != nil {
		return observation, err
	}
	if err := t.observeNamespaces(ctx, &observation); err != nil {
		return observation, err
	}
	if observation.Installed {
		if err := t.observeHub(ctx, &observation); err != nil {
			return observation, err
		}
	}
	if o.remove {
		return observation, nil
	}
	repository, err := chartutil.Values(chart.Values).PathValue("hub.image.repository")
	if err != nil {
		return observation, fmt.Errorf("read the chart's values: %w", err)
	}
	observation.Images = o.readImages(ctx, fmt.Sprint(repository), chart.AppVersion())
	return observation, nil
}

// servesAPI reports whether the API server serves a version of a group.
func (t *target) servesAPI(groupVersion string) (bool, error) {
	_, err := t.discovery.ServerResourcesForGroupVersion(groupVersion)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the API %s: %w", groupVersion, err)
	}
	return true, nil
}

// isAdministrator reports whether the user has all permissions on the cluster.
func (t *target) isAdministrator(ctx context.Context) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "*", Resource: "*", Verb: "*"}}}
	if err := t.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask the cluster what you may do: %w", err)
	}
	return review.Status.Allowed, nil
}

// observeNamespaces adds the demo's namespaces that exist to the observation.
func (t *target) observeNamespaces(ctx context.Context, observation *plan.Observation) error {
	for _, name := range plan.Namespaces() {
		n := &corev1.Namespace{}
		err := t.Get(ctx, client.ObjectKey{Name: name}, n)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			continue // a user who cannot read it is not an administrator, which the plan reports
		}
		if err != nil {
			return fmt.Errorf("get namespace %s: %w", name, err)
		}
		observation.Namespaces[name] = plan.Presence{Exists: true, Marked: n.Labels[plan.Label] == "true",
			Terminating: n.DeletionTimestamp != nil}
	}
	return nil
}

// observeHub adds the clusters and ManagedOperators of an installed hub to the observation.
func (t *target) observeHub(ctx context.Context, observation *plan.Observation) error {
	clusters := &v1alpha1.FleetClusterList{}
	operators := &v1alpha1.ManagedOperatorList{}
	for _, list := range []client.ObjectList{clusters, operators} {
		// A cluster with only an agent does not have all CRDs of Bellwether.
		if err := t.List(ctx, list); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) &&
			!meta.IsNoMatchError(err) {
			return fmt.Errorf("list what the hub has: %w", err)
		}
	}
	for i := range clusters.Items {
		observation.Clusters = append(observation.Clusters, clusters.Items[i].Name)
	}
	for i := range operators.Items {
		m := &operators.Items[i]
		name := m.Namespace + "/" + m.Name
		observation.Operators = append(observation.Operators, name)
		if name == plan.Namespace+"/"+plan.Operator {
			observation.Version = m.Spec.Version
		}
	}
	return nil
}

// readImages returns the images that the demo runs. hub is the repository of the hub's image, and release the version
// of the chart. Unless the user skips the check, it queries the registry for the digests of their tags; an image that
// cannot be read has a Problem.
func (o *options) readImages(ctx context.Context, hub, release string) plan.Images {
	parent := strings.TrimSuffix(hub, "/hub")
	tag := release
	if o.registry != "" {
		parent = strings.TrimSuffix(o.registry, "/")
		if _, isRelease := version.Release(); !isRelease {
			tag = strings.ReplaceAll(version.Get().Version, "+", "-") // make images creates this tag
		}
	}
	c := oci.NewClient(oci.Options{})
	readImage := func(name string) plan.Image {
		i := plan.Image{Repository: parent + "/" + name, Tag: cmp.Or(o.tag, tag)}
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
	return plan.Images{Hub: readImage("hub"), Agent: readImage("agent"), Bellwether: readImage("bellwether")}
}
