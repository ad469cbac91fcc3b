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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// fieldOwner owns the fields of the demo's objects. It differs from the field owner of the other commands: those
// commands apply the same namespaces without the demo's label, which would remove the label.
const fieldOwner = client.FieldOwner("bellwether-demo")

// executor carries out a plan.
type executor struct {
	*app
	target    *target
	timeout   time.Duration
	planSteps func(plan.Options) []plan.Step
}

// executeAll carries out all steps. When the Service of the catalog has an address, it plans the steps again, because
// later steps need the address.
func (e *executor) executeAll(ctx context.Context, planOptions plan.Options) error {
	steps := e.planSteps(planOptions)
	for i := range steps {
		a := e.app
		a.Say("\n%d/%d %s\n", i+1, len(steps), steps[i].Title)
		if err := e.executeStep(ctx, planOptions, steps[i]); err != nil {
			e.warnPodProblems(ctx)
			return err
		}
		if planOptions.CatalogAddress != "" {
			continue
		}
		var err error
		if planOptions.CatalogAddress, err = e.readCatalogAddress(ctx); err != nil {
			return err
		}
		steps = e.planSteps(planOptions)
	}
	return nil
}

// executeStep applies the objects of a step, runs its command, and removes what the step removes.
func (e *executor) executeStep(ctx context.Context, planOptions plan.Options, s plan.Step) error {
	for _, object := range s.Apply {
		if err := e.target.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), fieldOwner,
			client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s: %w", plan.FormatName(object), err)
		}
		e.Step("applied %s", plan.FormatName(object))
		if err := e.waitForObject(ctx, object); err != nil {
			return err
		}
	}
	if len(s.Run) > 0 {
		e.Say("$ %s\n", planOptions.CommandLine(s.Run))
		if err := e.run(ctx, s.Run...); err != nil {
			return err
		}
	}
	return e.executeRemovals(ctx, s)
}

// executeRemovals uninstalls the Helm release, and deletes the namespaces and objects of a step.
func (e *executor) executeRemovals(ctx context.Context, s plan.Step) error {
	if s.Uninstall != "" {
		if err := e.uninstallRelease(s.Uninstall); err != nil {
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
			return fmt.Errorf("delete %s: %w", plan.FormatName(object), err)
		}
		e.Step("%s is deleted", plan.FormatName(object))
	}
	return nil
}

// waitForObject waits until a Deployment is ready, or until the hub has read a
// catalog. Other objects are complete when they exist.
func (e *executor) waitForObject(ctx context.Context, object *unstructured.Unstructured) error {
	var ready func() (bool, error)
	switch object.GetKind() {
	case "Deployment":
		ready = func() (bool, error) { return e.isDeploymentReady(ctx, client.ObjectKeyFromObject(object)) }
	case "OperatorCatalog":
		ready = func() (bool, error) { return e.isCatalogRead(ctx, client.ObjectKeyFromObject(object)) }
	default:
		return nil
	}
	if err := hub.Poll(ctx, e.timeout, ready); err != nil {
		return fmt.Errorf("wait for %s: %w", plan.FormatName(object), err)
	}
	e.Step("%s is ready", plan.FormatName(object))
	return nil
}

// isDeploymentReady reports whether the pods of a Deployment run its current version.
func (e *executor) isDeploymentReady(ctx context.Context, key client.ObjectKey) (bool, error) {
	d := &appsv1.Deployment{}
	if err := e.target.Get(ctx, key, d); err != nil {
		return false, fmt.Errorf("get Deployment: %w", err)
	}
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas > 0 && s.AvailableReplicas > 0 &&
		s.Replicas == s.UpdatedReplicas, nil
}

// isCatalogRead reports whether the hub has read a catalog. It returns errNotRead if the hub could not read it.
func (e *executor) isCatalogRead(ctx context.Context, key client.ObjectKey) (bool, error) {
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

// errNotRead means that the hub could not read the catalog. The hub retries, so the error can be temporary.
var errNotRead = errors.New("the hub cannot read it")

// readCatalogAddress returns the address at which pods reach the sample catalog; empty if its Service does not exist.
// It is an IP address, because the cluster might not have DNS.
func (e *executor) readCatalogAddress(ctx context.Context) (string, error) {
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

// uninstallRelease uninstalls a Helm release of the demo, if it is installed.
func (e *executor) uninstallRelease(release string) error {
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

// deleteNamespace deletes a namespace of the demo and waits until it does not exist.
// It ignores a namespace without the demo's label.
func (e *executor) deleteNamespace(ctx context.Context, name string) error {
	n := &corev1.Namespace{}
	err := hub.Poll(ctx, e.timeout, func() (bool, error) {
		switch err := e.target.Get(ctx, client.ObjectKey{Name: name}, n); {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("get namespace %s: %w", name, err)
		case n.DeletionTimestamp != nil || n.Labels[plan.Label] != "true":
			// A namespace of the demo is being deleted, so the wait continues; another namespace ends the wait.
			return n.Labels[plan.Label] != "true", nil
		}
		err := e.target.Delete(ctx, n, client.Preconditions{UID: &n.UID})
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("delete namespace %s: %w", name, err)
		}
		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("namespace %s is not gone within %s: %s", name, e.timeout, readDeletionMessage(n))
	}
	if err != nil {
		return err
	}
	e.Step("namespace %s is gone", name)
	return nil
}

// readDeletionMessage returns why the API server has not deleted a namespace yet.
func readDeletionMessage(n *corev1.Namespace) string {
	for _, c := range n.Status.Conditions { // each true condition of a namespace is a problem of its deletion
		if c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return "it does not say why"
}

// warnPodProblems prints why pods of the demo do not run, because this is often why a step failed.
func (e *executor) warnPodProblems(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	var pods []corev1.Pod
	for _, namespace := range []string{plan.SystemNamespace, plan.Namespace, plan.Package} {
		list := &corev1.PodList{}
		if err := e.target.List(ctx, list, client.InNamespace(namespace)); err == nil {
			pods = append(pods, list.Items...)
		}
	}
	for _, problem := range ListPodProblems(pods) {
		e.Warn("%s %s\n", e.Style().Paint(term.Bad, "✗"), problem)
	}
}

// ListPodProblems returns for each pod that does not run the reason.
func ListPodProblems(pods []corev1.Pod) []string {
	var out []string
	for i := range pods {
		p := &pods[i]
		if c := findPodCondition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
			out = append(out, fmt.Sprintf("pod %s/%s is not scheduled: %s", p.Namespace, p.Name, c.Message))
		}
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			// A container that is being created has no problem.
			if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
				out = append(out, fmt.Sprintf("pod %s/%s does not run (%s): %s", p.Namespace, p.Name, w.Reason,
					phrase.OneLine(cmp.Or(w.Message, "no message"))))
			}
		}
	}
	return out
}

func findPodCondition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &p.Status.Conditions[i]
}
