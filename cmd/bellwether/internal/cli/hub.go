// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	utilruntime.Must(operatorsv1.AddToScheme(s))
	utilruntime.Must(operatorsv1alpha1.AddToScheme(s))
	return s
}()

// dial connects to the hub. It does not talk to it yet.
func (a *app) dial() (client.WithWatch, error) {
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, badKubeconfig(err)
	}
	if config.Host == nowhere {
		return nil, errNoKubeconfig
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	return c, nil
}

// nowhere is what client-go makes of a kubeconfig that is not there.
const nowhere = "http://localhost:8080"

var errNoKubeconfig = hint(errors.New("there is no kubeconfig that names the hub"),
	"give --kubeconfig FILE, or set KUBECONFIG")

func badKubeconfig(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return errNoKubeconfig
	}
	return hintf("check --kubeconfig and --context", "read the kubeconfig: %w", err)
}

// namespace is the one of -n, or of the kubeconfig's context.
func (a *app) namespace() (string, error) {
	namespace, _, err := a.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", badKubeconfig(err)
	}
	return namespace, nil
}

// hub is a client of the hub with the namespace that the user works in.
type hub struct {
	client.WithWatch
	namespace string
	self      string
}

func (a *app) hub() (*hub, error) {
	c, err := a.connect()
	if err != nil {
		return nil, err
	}
	namespace, err := a.namespace()
	if err != nil {
		return nil, err
	}
	return &hub{WithWatch: c, namespace: namespace, self: a.self}, nil
}

func (h *hub) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: h.namespace, Name: name}
}

func (h *hub) operator(ctx context.Context, name string) (*v1alpha1.ManagedOperator, error) {
	o := &v1alpha1.ManagedOperator{}
	err := h.Get(ctx, h.key(name), o)
	if apierrors.IsNotFound(err) {
		return nil, hintf(h.offerOperators(ctx), "there is no operator %q in namespace %q", name, h.namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("get operator: %w", err)
	}
	return o, nil
}

// offerOperators says which operators exist instead; it is only a hint, so an
// error of its own is left out.
func (h *hub) offerOperators(ctx context.Context) string {
	list := &v1alpha1.ManagedOperatorList{}
	_ = h.List(ctx, list)
	var names []string
	for _, o := range list.Items {
		if o.Namespace == h.namespace {
			names = append(names, o.Name)
		} else {
			names = append(names, o.Name+" (-n "+o.Namespace+")")
		}
	}
	return offer(names, "there are none: create a ManagedOperator")
}

func offer(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	slices.Sort(names)
	const most = 6
	text := "there is "
	for i, name := range names[:min(len(names), most)] {
		if i > 0 {
			text += ", "
		}
		text += name
	}
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

func (h *hub) cluster(ctx context.Context, name string) (*v1alpha1.FleetCluster, error) {
	c := &v1alpha1.FleetCluster{}
	err := h.Get(ctx, client.ObjectKey{Name: name}, c)
	if apierrors.IsNotFound(err) {
		return nil, hintf(h.offerClusters(ctx), "there is no cluster %q in the fleet", name)
	}
	if err != nil {
		return nil, fmt.Errorf("get cluster: %w", err)
	}
	return c, nil
}

func (h *hub) offerClusters(ctx context.Context) string {
	list := &v1alpha1.FleetClusterList{}
	_ = h.List(ctx, list)
	var names []string
	for _, c := range list.Items {
		names = append(names, c.Name)
	}
	return offer(names, "the fleet is empty: add one with `"+h.self+" fleet join`")
}

// rollout finds a rollout by its own name, or the newest one of the operator
// with that name.
func (h *hub) rollout(ctx context.Context, name string) (*v1alpha1.OperatorRollout, error) {
	r := &v1alpha1.OperatorRollout{}
	err := h.Get(ctx, h.key(name), r)
	if err == nil {
		return r, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get rollout: %w", err)
	}
	list, err := h.rolloutsOf(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		return &list[0], nil
	}
	o, err := h.operator(ctx, name)
	if err != nil {
		return nil, hintf(h.offerOperators(ctx), "there is no rollout and no operator %q in namespace %q", name,
			h.namespace)
	}
	return nil, hintf("see why with `"+h.self+" operator get "+o.Name+"`", "operator %q has no rollout yet", name)
}

// rolloutsOf returns an operator's rollouts, the newest first.
func (h *hub) rolloutsOf(ctx context.Context, operator string) ([]v1alpha1.OperatorRollout, error) {
	list := &v1alpha1.OperatorRolloutList{}
	if err := h.List(ctx, list, client.InNamespace(h.namespace)); err != nil {
		return nil, fmt.Errorf("list rollouts: %w", err)
	}
	items := slices.DeleteFunc(list.Items,
		func(r v1alpha1.OperatorRollout) bool { return r.Spec.Operator.Name != operator })
	slices.SortFunc(items, func(a, b v1alpha1.OperatorRollout) int {
		return cmp.Compare(b.Spec.Revision,
			a.Spec.Revision)
	})
	return items, nil
}

// members returns the installs that carry a rollout's label.
func members(ctx context.Context, r client.Reader, rollout *v1alpha1.OperatorRollout) ([]v1alpha1.OperatorInstall,
	error) {
	list := &v1alpha1.OperatorInstallList{}
	if err := r.List(ctx, list, client.MatchingLabels{
		v1alpha1.LabelRollout: rollout.Name, v1alpha1.LabelOperatorNamespace: rollout.Namespace,
	}); err != nil {
		return nil, fmt.Errorf("list installs: %w", err)
	}
	return list.Items, nil
}

// installsOf returns an operator's installs on all clusters.
func installsOf(ctx context.Context, r client.Reader, operator client.ObjectKey) ([]v1alpha1.OperatorInstall, error) {
	list := &v1alpha1.OperatorInstallList{}
	if err := r.List(ctx, list, client.MatchingLabels(v1alpha1.OperatorReference(operator).Labels())); err != nil {
		return nil, fmt.Errorf("list installs: %w", err)
	}
	return list.Items, nil
}

func clusters(ctx context.Context, r client.Reader) ([]v1alpha1.FleetCluster, error) {
	list := &v1alpha1.FleetClusterList{}
	if err := r.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	return list.Items, nil
}
