// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/demo/plan"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/helm"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/phrase"
)

// fieldOwner owns the fields of the demo's objects. It is not that of the other commands, which would give up the marks
// of namespaces that they apply without them.
const fieldOwner = client.FieldOwner("bellwether-demo")

// execution carries out a plan.
type execution struct {
	*app
	target  *target
	timeout time.Duration
	plan    func(plan.Options) []plan.Step
}

// all carries out all steps. Those that name the address of the catalog are planned again when its Service has one.
func (e *execution) all(ctx context.Context, w plan.Options) error {
	steps := e.plan(w)
	for i := range steps {
		a := e.app
		a.Say("\n%d/%d %s\n", i+1, len(steps), steps[i].Title)
		if err := e.step(ctx, w, steps[i]); err != nil {
			e.tellPodProblems(ctx)
			return err
		}
		if w.CatalogAddress != "" {
			continue
		}
		var err error
		if w.CatalogAddress, err = e.catalogAddress(ctx); err != nil {
			return err
		}
		steps = e.plan(w)
	}
	return nil
}

func (e *execution) step(ctx context.Context, w plan.Options, s plan.Step) error {
	for _, object := range s.Apply {
		if err := e.target.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), fieldOwner,
			client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s: %w", plan.Name(object), err)
		}
		e.Step("applied %s", plan.Name(object))
		if err := e.wait(ctx, object); err != nil {
			return err
		}
	}
	if len(s.Run) > 0 {
		e.Say("$ %s\n", w.CommandLine(s.Run))
		if err := e.run(ctx, s.Run...); err != nil {
			return err
		}
	}
	return e.remove(ctx, s)
}

// remove does what a step removes.
func (e *execution) remove(ctx context.Context, s plan.Step) error {
	if s.Uninstall != "" {
		if err := e.uninstall(s.Uninstall); err != nil {
			return err
		}
	}
	for _, namespace := range s.Delete {
		if err := e.deleteNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	for _, object := range s.Remove {
		err := e.target.Delete(ctx, object.DeepCopy())
		if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("delete %s: %w", plan.Name(object), err)
		}
		e.Step("%s is deleted", plan.Name(object))
	}
	return nil
}

// wait waits until a Deployment runs as it was applied, and until the hub has read a catalog. Other objects are
// complete when they exist.
func (e *execution) wait(ctx context.Context, object *unstructured.Unstructured) error {
	var ready func() (bool, error)
	switch object.GetKind() {
	case "Deployment":
		ready = func() (bool, error) { return e.runs(ctx, client.ObjectKeyFromObject(object)) }
	case "OperatorCatalog":
		ready = func() (bool, error) { return e.isRead(ctx, client.ObjectKeyFromObject(object)) }
	default:
		return nil
	}
	if err := hub.Poll(ctx, e.timeout, ready); err != nil {
		return fmt.Errorf("wait for %s: %w", plan.Name(object), err)
	}
	e.Step("%s is ready", plan.Name(object))
	return nil
}

func (e *execution) runs(ctx context.Context, key client.ObjectKey) (bool, error) {
	d := &appsv1.Deployment{}
	if err := e.target.Get(ctx, key, d); err != nil {
		return false, fmt.Errorf("get Deployment: %w", err)
	}
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas > 0 && s.AvailableReplicas > 0 &&
		s.Replicas == s.UpdatedReplicas, nil
}

func (e *execution) isRead(ctx context.Context, key client.ObjectKey) (bool, error) {
	c := &v1alpha1.OperatorCatalog{}
	if err := e.target.Get(ctx, key, c); err != nil {
		return false, fmt.Errorf("get OperatorCatalog: %w", err)
	}
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || c.Status.ObservedGeneration < c.Generation {
		return false, nil
	}
	if ready.Status != metav1.ConditionTrue {
		return false, fmt.Errorf("%w: %s", errNotRead, ready.Message)
	}
	return true, nil
}

// errNotRead says that the hub cannot read the catalog, which it may be able to a moment later.
var errNotRead = errors.New("the hub cannot read it")

// catalogAddress is where pods reach the sample catalog; empty while it has no Service. It is no name: the cluster need
// not have DNS.
func (e *execution) catalogAddress(ctx context.Context) (string, error) {
	service := &corev1.Service{}
	err := e.target.Get(ctx, client.ObjectKey{Namespace: plan.Namespace, Name: plan.Catalog}, service)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("get the Service of the catalog: %w", err)
	}
	return net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(plan.CatalogPort)), nil
}

func (e *execution) uninstall(release string) error {
	r := helm.Release{Name: release, Namespace: plan.SystemNamespace, Cluster: e.Flags}
	removed, err := r.Remove(e.timeout)
	if err != nil {
		return err
	}
	if removed {
		e.Step("uninstalled release %s", release)
	} else {
		e.Step("release %s is not installed", release)
	}
	return nil
}

// deleteNamespace deletes a namespace of the demo and waits until it is gone.
func (e *execution) deleteNamespace(ctx context.Context, name string) error {
	n := &corev1.Namespace{}
	err := hub.Poll(ctx, e.timeout, func() (bool, error) {
		switch err := e.target.Get(ctx, client.ObjectKey{Name: name}, n); {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("get namespace %s: %w", name, err)
		case n.DeletionTimestamp != nil || n.Labels[plan.Label] != "true":
			return n.Labels[plan.Label] != "true", nil // it is somebody else's
		}
		err := e.target.Delete(ctx, n, client.Preconditions{UID: &n.UID})
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("delete namespace %s: %w", name, err)
		}
		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("namespace %s is not gone within %s: %s", name, e.timeout, remaining(n))
	}
	if err != nil {
		return err
	}
	e.Step("namespace %s is gone", name)
	return nil
}

// remaining is what the API server says of a namespace that is being deleted.
func remaining(n *corev1.Namespace) string {
	for _, c := range n.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return "it does not say why"
}

// tellPodProblems says why pods of the demo do not run, as far as that can be seen: often that is why a step failed.
func (e *execution) tellPodProblems(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	var all []corev1.Pod
	for _, namespace := range []string{plan.SystemNamespace, plan.Namespace, plan.Package} {
		pods := &corev1.PodList{}
		if err := e.target.List(ctx, pods, client.InNamespace(namespace)); err == nil {
			all = append(all, pods.Items...)
		}
	}
	for _, problem := range PodProblems(all) {
		e.Warn("%s %s\n", e.Style().Paint(term.Bad, "✗"), problem)
	}
}

// PodProblems says of each pod that does not run why it does not.
func PodProblems(pods []corev1.Pod) []string {
	var out []string
	for i := range pods {
		p := &pods[i]
		if c := podCondition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
			out = append(out, fmt.Sprintf("pod %s/%s is not scheduled: %s", p.Namespace, p.Name, c.Message))
		}
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			// That a container is being created is no problem.
			if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
				out = append(out, fmt.Sprintf("pod %s/%s does not run (%s): %s", p.Namespace, p.Name, w.Reason,
					phrase.OneLine(cmp.Or(w.Message, "no message"))))
			}
		}
	}
	return out
}

func podCondition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &p.Status.Conditions[i]
}
