// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
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

// lookDownstream reads an install's objects on its cluster. A cluster that
// cannot be read is part of the answer, not an error.
func lookDownstream(ctx context.Context, target *hub.ClusterFlags,
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
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list EndpointProbes: %w", err)
	}
	return &explain.Downstream{Links: objects.Links(), Probes: probes.Items}, nil
}

func readObjects(ctx context.Context, c client.Reader, install *v1alpha1.OperatorInstall) (*olmv0.Objects, error) {
	objects := install.Status.OLMDetails()
	d := &olmv0.Objects{Namespace: install.Spec.Admission.Release.TargetNamespace()}
	var err error
	if d.Terminating, err = findTerminating(ctx, c, d.Namespace); err != nil {
		return nil, err
	}
	if d.CatalogSource, err = find(ctx, c, d.Namespace, objects.CatalogSource,
		&operatorsv1alpha1.CatalogSource{}); err != nil {
		return nil, err
	}
	if d.Subscription, err = find(ctx, c, d.Namespace, objects.Subscription,
		&operatorsv1alpha1.Subscription{}); err != nil {
		return nil, err
	}
	plan, csv := objects.InstallPlan, ""
	if s := d.Subscription; s != nil {
		csv = cmp.Or(s.Status.CurrentCSV, s.Status.InstalledCSV)
		if s.Status.InstallPlanRef != nil {
			plan = cmp.Or(s.Status.InstallPlanRef.Name, plan)
		}
	}
	if d.InstallPlan, err = find(ctx, c, d.Namespace, plan, &operatorsv1alpha1.InstallPlan{}); err != nil {
		return nil, err
	}
	if d.CSV, err = findCSV(ctx, c, d.Namespace, csv, install); err != nil || d.CSV == nil {
		return d, err
	}
	d.Deployments, err = findDeployments(ctx, c, d.CSV)
	return d, err
}

// findTerminating returns a namespace if it is being deleted. Not everybody may read namespaces.
func findTerminating(ctx context.Context, c client.Reader, name string) (*corev1.Namespace, error) {
	ns, err := find(ctx, c, "", name, &corev1.Namespace{})
	if apierrors.IsForbidden(err) || err == nil && (ns == nil || ns.DeletionTimestamp == nil) {
		return nil, nil
	}
	return ns, err
}

// find gets an object; it is the zero value, nil, where there is none.
func find[T client.Object](ctx context.Context, c client.Reader, namespace, name string, into T) (T, error) {
	var none T
	if name == "" {
		return none, nil
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("get %s: %w", name, err)
	}
	return into, nil
}

// findCSV returns the CSV that is on its way, or else the one that runs.
func findCSV(ctx context.Context, c client.Reader, namespace, current string,
	install *v1alpha1.OperatorInstall) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	installed := ""
	if install.Status.Installed != nil {
		installed = install.Status.Installed.Bundle
	}
	for _, name := range []string{current, installed} {
		csv, err := find(ctx, c, namespace, name, &operatorsv1alpha1.ClusterServiceVersion{})
		if err != nil || csv != nil {
			return csv, err
		}
	}
	return nil, nil
}

func findDeployments(ctx context.Context, c client.Reader,
	csv *operatorsv1alpha1.ClusterServiceVersion) ([]explain.Deployment, error) {
	var out []explain.Deployment
	for _, spec := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		d := explain.Deployment{Name: spec.Name, Want: spec.Spec.Replicas}
		var err error
		if d.Deployment, err = find(ctx, c, csv.Namespace, spec.Name, &appsv1.Deployment{}); err != nil {
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
