// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/explain/olmv0"
)

// tryReadDownstream reads an install's objects on its cluster. If the cluster cannot be read, the error is in the
// result, because it is a part of the explanation.
func tryReadDownstream(ctx context.Context, target *hub.ClusterFlags,
	install *v1alpha1.OperatorInstall) *explain.Downstream {
	c, err := target.Connect()
	if err != nil {
		return &explain.Downstream{Err: err}
	}
	d, err := readDownstream(ctx, c, install)
	if err != nil {
		return &explain.Downstream{Err: err}
	}
	return d
}

// readDownstream reads the OLM objects and the EndpointProbes of an install. Without an admission there are none.
func readDownstream(ctx context.Context, c client.Reader,
	install *v1alpha1.OperatorInstall) (*explain.Downstream, error) {
	if install.Spec.Admission == nil {
		return &explain.Downstream{}, nil
	}
	objects, err := readObjects(ctx, c, install)
	if err != nil {
		return nil, err
	}
	probes := &v1alpha1.EndpointProbeList{}
	err = c.List(ctx, probes, client.InNamespace(objects.Namespace),
		client.MatchingLabels(install.Spec.Operator.Labels()))
	// The cluster might not have the CRD of EndpointProbes.
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list EndpointProbes: %w", err)
	}
	return &explain.Downstream{Links: objects.Links(), Probes: probes.Items}, nil
}

// readObjects reads the OLM objects of an install and its Deployments. Objects that do not exist are nil.
func readObjects(ctx context.Context, c client.Reader, install *v1alpha1.OperatorInstall) (*olmv0.Objects, error) {
	details := install.Status.OLMDetails()
	objects := &olmv0.Objects{Namespace: install.Spec.Admission.Release.TargetNamespace()}
	var err error
	if objects.Terminating, err = findTerminating(ctx, c, objects.Namespace); err != nil {
		return nil, err
	}
	if objects.CatalogSource, err = getObject(ctx, c, objects.Namespace, details.CatalogSource,
		&operatorsv1alpha1.CatalogSource{}); err != nil {
		return nil, err
	}
	if objects.Subscription, err = getObject(ctx, c, objects.Namespace, details.Subscription,
		&operatorsv1alpha1.Subscription{}); err != nil {
		return nil, err
	}
	plan, csvs := olmv0.SelectNames(install, objects.Subscription)
	if objects.InstallPlan, err = getObject(ctx, c, objects.Namespace, plan,
		&operatorsv1alpha1.InstallPlan{}); err != nil {
		return nil, err
	}
	if objects.CSV, err = findCSV(ctx, c, objects.Namespace, csvs); err != nil || objects.CSV == nil {
		return objects, err
	}
	objects.Deployments, err = findDeployments(ctx, c, objects.CSV)
	return objects, err
}

// findTerminating returns a namespace if it is being deleted; otherwise nil. It also returns nil if the user is
// not permitted to read namespaces.
func findTerminating(ctx context.Context, c client.Reader, name string) (*corev1.Namespace, error) {
	ns, err := getObject(ctx, c, "", name, &corev1.Namespace{})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err == nil && ns != nil && ns.DeletionTimestamp == nil {
		return nil, nil
	}
	return ns, err
}

// getObject reads an object into the given value; it returns nil if the name is empty or the object does not exist.
func getObject[T client.Object](ctx context.Context, c client.Reader, namespace, name string, object T) (T, error) {
	var zero T
	if name == "" {
		return zero, nil
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return zero, nil
	}
	if err != nil {
		return zero, fmt.Errorf("get %s: %w", name, err)
	}
	return object, nil
}

// findCSV returns the first ClusterServiceVersion that exists; nil if there is none.
func findCSV(ctx context.Context, c client.Reader, namespace string,
	names []string) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	for _, name := range names {
		csv, err := getObject(ctx, c, namespace, name, &operatorsv1alpha1.ClusterServiceVersion{})
		if err != nil || csv != nil {
			return csv, err
		}
	}
	return nil, nil
}

// findDeployments returns the Deployments of a ClusterServiceVersion with their pods.
func findDeployments(ctx context.Context, c client.Reader,
	csv *operatorsv1alpha1.ClusterServiceVersion) ([]explain.Deployment, error) {
	var out []explain.Deployment
	for _, spec := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		d := explain.Deployment{Name: spec.Name, Want: spec.Spec.Replicas}
		var err error
		if d.Deployment, err = getObject(ctx, c, csv.Namespace, spec.Name, &appsv1.Deployment{}); err != nil {
			return nil, err
		}
		if d.Deployment != nil {
			if d.Pods, err = findPods(ctx, c, d.Deployment); err != nil {
				return nil, err
			}
		}
		out = append(out, d)
	}
	return out, nil
}

// findPods returns the pods that the selector of a Deployment matches.
func findPods(ctx context.Context, c client.Reader, d *appsv1.Deployment) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("read the selector of Deployment %s: %w", d.Name, err)
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(d.Namespace),
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return pods.Items, nil
}
