// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// DefaultMinAge is the default of the API, for objects that were not stored in an API server.
const DefaultMinAge = 2 * time.Minute

// Kind is a kind of objects that can be a target.
type Kind string

// The kinds of targets.
const (
	KindService   Kind = "Service"
	KindRoute     Kind = "Route"
	KindIngress   Kind = "Ingress"
	KindHTTPRoute Kind = "HTTPRoute"
)

// formatCount returns a number of objects of the kind, as in "2 Services".
func (k Kind) formatCount(n int) string {
	if k == KindIngress && n != 1 {
		return fmt.Sprintf("%d Ingresses", n)
	}
	return phrase.Count(n, string(k))
}

// Selection defines the objects that a target selects.
type Selection struct {
	Kind   Kind
	Labels labels.Selector
	Min    int
	MinAge time.Duration
}

// ReadSelection returns the selection of a target, or nil if
// the target has no selector. An invalid selector is a failure.
func ReadSelection(target v1alpha1.ProbeTarget) (*Selection, *Failure) {
	kind, selector := findSelector(target)
	if selector == nil {
		return nil, nil
	}
	matching, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{
		MatchLabels: selector.MatchLabels, MatchExpressions: selector.MatchExpressions})
	if err != nil {
		return nil, &Failure{Reason: v1alpha1.ReasonInvalidSpec,
			Message: fmt.Sprintf("the selector in spec.target cannot be used: %v", err)}
	}
	selection := &Selection{Kind: kind, Labels: matching, Min: 1, MinAge: DurationOr(selector.MinAge, DefaultMinAge)}
	if selector.Min != nil {
		selection.Min = int(*selector.Min)
	}
	return selection, nil
}

// findSelector returns the kind and the selector of a target. The selector is nil if the target names an object.
func findSelector(target v1alpha1.ProbeTarget) (Kind, *v1alpha1.TargetSelector) {
	switch {
	case target.Service != nil:
		return KindService, target.Service.Selector
	case target.Route != nil:
		return KindRoute, target.Route.Selector
	case target.Ingress != nil:
		return KindIngress, target.Ingress.Selector
	case target.HTTPRoute != nil:
		return KindHTTPRoute, target.HTTPRoute.Selector
	}
	return "", nil
}

// NameTarget returns a target that names one of the selected objects.
func NameTarget(target v1alpha1.ProbeTarget, name string) v1alpha1.ProbeTarget {
	named := *target.DeepCopy()
	for _, host := range []*v1alpha1.HostTarget{named.Route, named.Ingress, named.HTTPRoute} {
		if host != nil {
			host.Name, host.Selector = name, nil
		}
	}
	if named.Service != nil {
		named.Service.Name, named.Service.Selector = name, nil
	}
	return named
}

// Selected is the result of a selection.
type Selected struct {
	Kind Kind
	// Matching is how many objects match.
	Matching int
	// Names are the objects to probe, sorted.
	Names []string
	// TooFew is set if fewer objects match than the spec requires. It fails the probe as a whole.
	TooFew *Failure
	// RecheckAfter is when to select again, because the next object will be old enough. Zero: a watch is enough.
	RecheckAfter time.Duration
}

// ObjectMeta contains the properties of an object that a selection depends on.
type ObjectMeta struct {
	Name     string
	Labels   map[string]string
	Created  time.Time
	Deleting bool
}

// Select chooses the targets among the objects of a namespace: objects that
// match and are old enough, sorted by name, up to the maximum number of a probe.
func Select(namespace string, selection Selection, objects []ObjectMeta, now time.Time) Selected {
	out := Selected{Kind: selection.Kind}
	for _, object := range objects {
		if object.Deleting || !selection.Labels.Matches(labels.Set(object.Labels)) {
			continue
		}
		out.Matching++
		if wait := selection.MinAge - now.Sub(object.Created); wait > 0 {
			out.RecheckAfter = cmp.Or(min(wait, out.RecheckAfter), wait) // 0 means that none is set
			continue
		}
		out.Names = append(out.Names, object.Name)
	}
	slices.Sort(out.Names)
	out.Names = out.Names[:min(len(out.Names), v1alpha1.MaxSelectedTargets)]
	if out.Matching < selection.Min {
		out.TooFew = newNotFound("the selector matches %s in namespace %s, and its min is %d",
			selection.Kind.formatCount(out.Matching), namespace, selection.Min)
	}
	return out
}

// NotServed returns the result of a selection if the cluster does not serve the kind.
func NotServed(kind Kind, recheck time.Duration) Selected {
	return Selected{Kind: kind, TooFew: newNotFound("the cluster does not serve the kind %s", kind),
		RecheckAfter: recheck}
}

// Targets returns the names of the endpoints to run. The empty name is the failure
// of a probe as a whole, and the only endpoint of a probe without a selector.
func (s Selected) Targets() []string {
	if s.TooFew == nil {
		return s.Names
	}
	return append([]string{""}, s.Names...)
}
