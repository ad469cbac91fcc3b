// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub reads and writes the hub's objects for the commands. It also connects to a cluster of the fleet if the
// user sets a kubeconfig for it.
package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Scheme has the kinds that the command line reads and writes.
var Scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	utilruntime.Must(operatorsv1.AddToScheme(s))
	utilruntime.Must(operatorsv1alpha1.AddToScheme(s))
	return s
}()

// Client is a client for the hub with the user's namespace.
type Client struct {
	client.WithWatch
	Namespace string
	Self      string
}

// UserName returns the name of the user on the API server.
func (h *Client) UserName(ctx context.Context) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := h.Create(ctx, review); err != nil {
		return "", fmt.Errorf("read your user name from the hub: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}

// Key returns the key of the object that an argument names: NAME in the user's namespace, or NAMESPACE/NAME.
func (h *Client) Key(name string) client.ObjectKey {
	if namespace, objectName, ok := strings.Cut(name, "/"); ok {
		return client.ObjectKey{Namespace: namespace, Name: objectName}
	}
	return client.ObjectKey{Namespace: h.Namespace, Name: name}
}

// Operator reads the operator that an argument names. If the user's namespace has no operator NAME, it searches all
// namespaces for this name, which must be unique there.
func (h *Client) Operator(ctx context.Context, name string) (*v1alpha1.ManagedOperator, error) {
	o := &v1alpha1.ManagedOperator{}
	key := h.Key(name)
	err := h.Get(ctx, key, o)
	if apierrors.IsNotFound(err) {
		if key.Name == name { // the argument has no namespace
			return h.searchAllNamespaces(ctx, name)
		}
		return nil, h.newNoOperatorError(ctx, key)
	}
	if err != nil {
		return nil, fmt.Errorf("get operator: %w", err)
	}
	return o, nil
}

// OperatorIn reads a ManagedOperator, and does not search other namespaces.
func (h *Client) OperatorIn(ctx context.Context, key client.ObjectKey) (*v1alpha1.ManagedOperator, error) {
	o := &v1alpha1.ManagedOperator{}
	return o, h.readObject(ctx, "operator", key, o, &v1alpha1.ManagedOperatorList{}, adviceOperators)
}

// searchAllNamespaces returns the only operator with this name in all namespaces. It returns an
// error if there are none or several.
func (h *Client) searchAllNamespaces(ctx context.Context, name string) (*v1alpha1.ManagedOperator, error) {
	list := &v1alpha1.ManagedOperatorList{}
	_ = h.List(ctx, list) // the user may lack the permission to list all namespaces
	var found []v1alpha1.ManagedOperator
	var keys []string
	for _, o := range list.Items {
		if o.Name == name {
			found, keys = append(found, o), append(keys, o.Namespace+"/"+o.Name)
		}
	}
	switch len(found) {
	case 0:
		return nil, h.newNoOperatorError(ctx, h.Key(name))
	case 1:
		return &found[0], nil
	}
	slices.Sort(keys)
	return nil, exit.Hint(fmt.Errorf("%w: operators of %d namespaces have the name %q", errAmbiguous, len(keys), name),
		"name one of "+strings.Join(keys, ", "))
}

// errAmbiguous means that operators of several namespaces have the same name.
var errAmbiguous = errors.New("ambiguous name")

func (h *Client) newNoOperatorError(ctx context.Context, key client.ObjectKey) error {
	return h.newNotFoundError(ctx, "operator", key, &v1alpha1.ManagedOperatorList{}, adviceOperators)
}

const adviceOperators = "create a ManagedOperator"

// FormatAvailable returns a hint that lists the first available names, or the fallback if there are no names. It
// sorts names.
func FormatAvailable(names []string, fallback string) string {
	if len(names) == 0 {
		return fallback
	}
	slices.Sort(names)
	return "available: " + phrase.First(names, 6)
}

// ListFreezes returns the FleetFreezes that are in force, the oldest first. The hub may be of an older version without
// the kind FleetFreeze; then there are none.
func (h *Client) ListFreezes(ctx context.Context) ([]v1alpha1.FleetFreeze, error) {
	list := &v1alpha1.FleetFreezeList{}
	if err := h.List(ctx, list); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list FleetFreezes: %w", err)
	}
	out := slices.DeleteFunc(list.Items, func(f v1alpha1.FleetFreeze) bool { return !f.DeletionTimestamp.IsZero() })
	slices.SortFunc(out, func(a, b v1alpha1.FleetFreeze) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// LastSeen returns when a replica of the hub last renewed the leader election Lease; zero if there is no Lease.
func (h *Client) LastSeen(ctx context.Context) (time.Time, error) {
	list := &coordinationv1.LeaseList{}
	if err := h.List(ctx, list, client.MatchingFields{"metadata.name": v1alpha1.HubLeaseName}); err != nil {
		return time.Time{}, fmt.Errorf("list the Leases of the hub: %w", err)
	}
	var newest time.Time
	for i := range list.Items {
		if renewTime := list.Items[i].Spec.RenewTime; renewTime != nil && renewTime.After(newest) {
			newest = renewTime.Time
		}
	}
	return newest, nil
}

// Catalog reads an OperatorCatalog.
func (h *Client) Catalog(ctx context.Context, name string) (*v1alpha1.OperatorCatalog, error) {
	c := &v1alpha1.OperatorCatalog{}
	return c, h.readObject(ctx, "catalog", h.Key(name), c, &v1alpha1.OperatorCatalogList{}, "create an OperatorCatalog")
}

// Cluster reads a FleetCluster.
func (h *Client) Cluster(ctx context.Context, name string) (*v1alpha1.FleetCluster, error) {
	c := &v1alpha1.FleetCluster{}
	return c, h.readObject(ctx, "cluster", client.ObjectKey{Name: name}, c, &v1alpha1.FleetClusterList{},
		"the fleet has no clusters; add one with `"+h.Self+" fleet join`")
}

// readObject reads an object. If the object does not exist, the hint of the error has the names of the existing
// objects, or the advice if there are none.
func (h *Client) readObject(ctx context.Context, noun string, key client.ObjectKey, object client.Object,
	list client.ObjectList, advice string) error {
	err := h.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return h.newNotFoundError(ctx, noun, key, list, advice)
	}
	if err != nil {
		return fmt.Errorf("get %s: %w", noun, err)
	}
	return nil
}

// newNotFoundError returns the error for an object that does not exist, with the existing objects as the hint.
func (h *Client) newNotFoundError(ctx context.Context, noun string, key client.ObjectKey, list client.ObjectList,
	advice string) error {
	where := "the fleet"
	if key.Namespace != "" {
		where = fmt.Sprintf("namespace %q", key.Namespace)
	}
	return exit.Hintf(h.listAvailable(ctx, list, advice), "there is no %s %q in %s", noun, key.Name, where)
}

// listAvailable returns a hint with the names of the existing objects, or the advice if there are none. It ignores
// errors, because the result is only a hint.
func (h *Client) listAvailable(ctx context.Context, list client.ObjectList, advice string) string {
	_ = h.List(ctx, list)
	var names []string
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		o := item.(client.Object)
		if o.GetNamespace() == "" || o.GetNamespace() == h.Namespace {
			names = append(names, o.GetName())
		} else {
			names = append(names, o.GetNamespace()+"/"+o.GetName())
		}
		return nil
	})
	return FormatAvailable(names, advice)
}

// Rollout reads the rollout with this name, or the newest rollout of the operator with this name.
func (h *Client) Rollout(ctx context.Context, name string) (*v1alpha1.OperatorRollout, error) {
	r := &v1alpha1.OperatorRollout{}
	err := h.Get(ctx, h.Key(name), r)
	if err == nil {
		return r, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get rollout: %w", err)
	}
	key := h.Key(name)
	o, err := h.Operator(ctx, name)
	if err == nil {
		key = client.ObjectKeyFromObject(o)
	}
	// The rollouts of a deleted operator can remain, so they are also listed if the operator does not exist.
	list, listErr := h.ListRollouts(ctx, key)
	switch {
	case errors.Is(err, errAmbiguous):
		return nil, err
	case listErr != nil:
		return nil, listErr
	case len(list) > 0:
		return &list[0], nil
	case err != nil:
		return nil, exit.Hintf(h.listAvailable(ctx, &v1alpha1.ManagedOperatorList{}, adviceOperators),
			"there is no rollout and no operator %q in namespace %q", key.Name, key.Namespace)
	}
	return nil, exit.Hintf("to see the reason, run `"+h.Self+" operator get "+o.Name+"`",
		"operator %q has no rollout yet", name)
}

// ListRollouts returns an operator's rollouts, the newest first.
func (h *Client) ListRollouts(ctx context.Context, operator client.ObjectKey) ([]v1alpha1.OperatorRollout, error) {
	list := &v1alpha1.OperatorRolloutList{}
	if err := h.List(ctx, list, client.InNamespace(operator.Namespace)); err != nil {
		return nil, fmt.Errorf("list rollouts: %w", err)
	}
	items := slices.DeleteFunc(list.Items,
		func(r v1alpha1.OperatorRollout) bool { return r.Spec.Operator.Name != operator.Name })
	slices.SortFunc(items, func(a, b v1alpha1.OperatorRollout) int {
		return cmp.Compare(b.Spec.Revision,
			a.Spec.Revision)
	})
	return items, nil
}

// ListMembers returns the installs that have the label of a rollout.
func ListMembers(ctx context.Context, r client.Reader, rollout *v1alpha1.OperatorRollout) ([]v1alpha1.OperatorInstall,
	error) {
	list := &v1alpha1.OperatorInstallList{}
	if err := r.List(ctx, list, client.MatchingLabels{
		v1alpha1.LabelRollout: rollout.Name, v1alpha1.LabelOperatorNamespace: rollout.Namespace,
	}); err != nil {
		return nil, fmt.Errorf("list installs: %w", err)
	}
	return list.Items, nil
}

// ListInstalls returns an operator's installs on all clusters.
func ListInstalls(ctx context.Context, r client.Reader, operator client.ObjectKey) ([]v1alpha1.OperatorInstall, error) {
	list := &v1alpha1.OperatorInstallList{}
	if err := r.List(ctx, list, client.MatchingLabels(v1alpha1.OperatorReference(operator).Labels())); err != nil {
		return nil, fmt.Errorf("list installs: %w", err)
	}
	return list.Items, nil
}

// ListClusters reads all FleetClusters.
func ListClusters(ctx context.Context, r client.Reader) ([]v1alpha1.FleetCluster, error) {
	list := &v1alpha1.FleetClusterList{}
	if err := r.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	return list.Items, nil
}
