// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/phrase"
)

// webhookLimit is how long the API server may take to reach a webhook of the operator.
const webhookLimit = 30 * time.Second

// createExamples creates the examples of a bundle that are not there yet. What the API
// server refuses is a problem of the bundle; the trial goes on.
func (t *trial) createExamples(ctx context.Context, r Release) (string, error) {
	all, err := examplesOf(r.Bundle)
	if err != nil {
		return "", err
	}
	var created, refused []Example
	for _, o := range all {
		e := exampleOf(o, r.Bundle.Name)
		if t.isThere(e) {
			continue
		}
		if e, err = t.createExample(ctx, o, e); err != nil {
			return "", err
		}
		t.report.Examples = append(t.report.Examples, e)
		if e.State == Refused {
			refused = append(refused, e)
			t.report.Problems = append(t.report.Problems,
				fmt.Sprintf("example %s of %s is refused: %s", e, r.Bundle.Name, e.Message))
			continue
		}
		created = append(created, e)
	}
	switch {
	case len(all) == 0:
		return r.Bundle.Name + " has no examples (annotation alm-examples)", nil
	case len(refused) > 0:
		return fmt.Sprintf("the API server refused %s", names(refused)), nil
	case len(created) == 0:
		return "every example is there already", nil
	}
	return "created " + names(created), nil
}

func exampleOf(o *unstructured.Unstructured, bundle string) Example {
	return Example{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), Of: bundle}
}

// isThere tells whether an example of another version of the bundle has the same kind
// and name.
func (t *trial) isThere(e Example) bool {
	return slices.ContainsFunc(t.report.Examples, func(have Example) bool {
		return have.Kind == e.Kind && have.Name == e.Name && have.group() == e.group() && have.State != Refused
	})
}

func (e Example) group() string { return e.gvk().Group }

func (e Example) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(e.APIVersion, e.Kind)
}

// object is what is known of it without asking the cluster.
func (e Example) object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(e.gvk())
	o.SetName(e.Name)
	o.SetNamespace(e.Namespace)
	return o
}

// createExample creates one, in the namespace of the trial if its kind has namespaces.
func (t *trial) createExample(ctx context.Context, o *unstructured.Unstructured, e Example) (Example, error) {
	mapping, err := t.RESTMapper().RESTMapping(e.gvk().GroupKind(), e.gvk().Version)
	if meta.IsNoMatchError(err) {
		e.State, e.Message = Refused, "the cluster does not serve "+e.APIVersion+" "+e.Kind
		return e, nil
	}
	if err != nil {
		return e, fmt.Errorf("find out about kind %s: %w", e.Kind, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		e.Namespace = t.namespace
	}
	o.SetNamespace(e.Namespace)
	unsetServerFields(o)
	if err := t.remember(ctx, nil, []Example{e}); err != nil {
		return e, err
	}
	var last error
	err = t.poll(ctx, min(t.Timeout, webhookLimit), func(ctx context.Context) (bool, error) {
		err := t.Create(ctx, o.DeepCopy(), fieldOwner, client.FieldValidation(metav1.FieldValidationStrict))
		if err == nil || ctx.Err() == nil || last == nil {
			last = err // a request that the deadline ended does not say why the ones before it failed
		}
		if isTransient(err) {
			return false, err // the webhook of an operator that has just started
		}
		return true, nil
	})
	switch {
	case ctx.Err() != nil:
		return e, ctx.Err()
	case last == nil && err == nil:
		return e, nil
	case apierrors.IsForbidden(last) && !strings.Contains(last.Error(), "admission"),
		apierrors.IsUnauthorized(last):
		return e, fmt.Errorf("create example %s: %w", e, last)
	case last != nil:
		e.State, e.Message = Refused, last.Error()
		err = nil
	}
	return e, err
}

// unsetServerFields removes what the API server sets.
func unsetServerFields(o *unstructured.Unstructured) {
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields",
		"ownerReferences"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
}

// lookAtPods counts the pods, and how many of them are stubs.
func (t *trial) lookAtPods(ctx context.Context) (string, error) {
	var pods corev1.PodList
	if err := t.List(ctx, &pods, client.InNamespace(t.namespace)); err != nil {
		return "", fmt.Errorf("list pods: %w", err)
	}
	for _, p := range pods.Items {
		t.report.Pods.Total++
		if p.Labels[labelStub] == "true" {
			t.report.Pods.Stubs++
		}
	}
	p := t.report.Pods
	switch {
	case p.Stub():
		return "Pods are stubs: the operator does not run on this cluster", nil
	case p.Stubs > 0:
		return fmt.Sprintf("Pods are stubs: %d of %d run nothing on this cluster", p.Stubs, p.Total), nil
	}
	return "the namespace has " + phrase.Count(p.Total, "pod"), nil
}

// awaitExamples waits until the examples are ready. Where no operator runs, they only
// have to be there still.
func (t *trial) awaitExamples(ctx context.Context) (string, error) {
	begun := t.Now()
	stubs := t.report.Pods.Stub()
	err := t.poll(ctx, t.Timeout, func(ctx context.Context) (bool, error) {
		grace := t.Now().Sub(begun) < statusGrace
		done := true
		for i := range t.report.Examples {
			e := &t.report.Examples[i]
			if e.State == Refused {
				continue
			}
			if err := t.lookAtExample(ctx, e); err != nil {
				return false, err
			}
			wait := e.State == NotReady || e.State == NoStatus && grace
			done = done && (!wait || stubs)
		}
		return done, nil
	})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return "", err
	}
	problems, message := judgeExamples(t.report.Examples, stubs)
	t.report.Problems = append(t.report.Problems, problems...)
	return message, nil
}

// lookAtExample reads how an example fares.
func (t *trial) lookAtExample(ctx context.Context, e *Example) error {
	o := e.object()
	err := t.Get(ctx, client.ObjectKeyFromObject(o), o)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		e.State, e.Message = NotReady, "it is gone"
		return nil
	case err != nil:
		return fmt.Errorf("get example %s: %w", e, err)
	}
	e.State, e.Message = stateOf(o)
	return nil
}

// stateOf is what an object says of itself. It is pure. kstatus takes an object without
// a status for one that is as wanted; here that is no evidence.
func stateOf(o *unstructured.Unstructured) (State, string) {
	if reported, found, err := unstructured.NestedMap(o.Object, "status"); err != nil || !found || len(reported) == 0 {
		return NoStatus, "nobody wrote its status"
	}
	result, err := status.Compute(o)
	switch {
	case err != nil:
		return NotReady, err.Error()
	case result.Status == status.CurrentStatus:
		return Ready, ""
	}
	return NotReady, fmt.Sprintf("%s: %s", result.Status, result.Message)
}

// judgeExamples says what is wrong with the examples, and how they are. It is pure.
// Without an operator nobody writes a status.
func judgeExamples(all []Example, stubs bool) (problems []string, message string) {
	count := map[State]int{}
	for _, e := range all {
		count[e.State]++
		gone := e.State == NotReady && e.Message == "it is gone"
		if e.State == NotReady && (!stubs || gone) {
			problems = append(problems, fmt.Sprintf("example %s of %s is not ready: %s", e, e.Of, e.Message))
		}
	}
	var parts []string
	for _, s := range []State{Ready, NotReady, NoStatus, Refused} {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], stateText[s]))
		}
	}
	if len(parts) == 0 {
		return problems, "there are no examples to wait for"
	}
	return problems, "examples: " + strings.Join(parts, ", ")
}

var stateText = map[State]string{Ready: "ready", NotReady: "not ready", NoStatus: "without a status",
	Refused: "refused"}
