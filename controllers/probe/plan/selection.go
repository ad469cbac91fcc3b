// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// DefaultMinAge is that of the API, for objects that no API server has seen.
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

// count returns a number of objects of the kind, as in "2 Services".
func (k Kind) count(n int) string {
	if k == KindIngress && n != 1 {
		return fmt.Sprintf("%d Ingresses", n)
	}
	return phrase.Count(n, string(k))
}

// Selection is what a target selects.
type Selection struct {
	Kind   Kind
	Labels labels.Selector
	Min    int
	MinAge time.Duration
}

// ReadSelection returns the selection of a target; nil if it has no selector. A
// selector that cannot be used is a failure.
func ReadSelection(target v1alpha1.ProbeTarget) (*Selection, *Failure) {
	kind, selector := selectorOf(target)
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

func selectorOf(target v1alpha1.ProbeTarget) (Kind, *v1alpha1.TargetSelector) {
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

// Selected is what a selection comes to.
type Selected struct {
	Kind Kind
	// Matching is how many objects match.
	Matching int
	// Names of the objects to probe, in order.
	Names []string
	// TooFew is set if fewer objects match than the spec asks for. It fails the probe
	// as a whole.
	TooFew *Failure
	// RecheckAfter is when to select again, because the next object will be old
	// enough; zero if a watch is enough.
	RecheckAfter time.Duration
}

// ObjectMeta is what a selection depends on of an object.
type ObjectMeta struct {
	Name     string
	Labels   map[string]string
	Created  time.Time
	Deleting bool
}

// Select chooses the targets among the objects of a namespace: those that match and
// are old enough, and of these the first by name, as many as a probe may have.
func Select(namespace string, selection Selection, objects []ObjectMeta, now time.Time) Selected {
	out := Selected{Kind: selection.Kind}
	for _, object := range objects {
		if object.Deleting || !selection.Labels.Matches(labels.Set(object.Labels)) {
			continue
		}
		out.Matching++
		if wait := selection.MinAge - now.Sub(object.Created); wait > 0 {
			out.RecheckAfter = cmp.Or(min(wait, out.RecheckAfter), wait)
			continue
		}
		out.Names = append(out.Names, object.Name)
	}
	slices.Sort(out.Names)
	out.Names = out.Names[:min(len(out.Names), v1alpha1.MaxSelectedTargets)]
	if out.Matching < selection.Min {
		out.TooFew = notFound("the selector matches %s in namespace %s, and its min is %d",
			selection.Kind.count(out.Matching), namespace, selection.Min)
	}
	return out
}

// NotServed is what a selection comes to if the cluster does not serve the kind.
func NotServed(kind Kind, recheck time.Duration) Selected {
	return Selected{Kind: kind, TooFew: notFound("the cluster does not serve the kind %s", kind),
		RecheckAfter: recheck}
}

// Targets are the names of the endpoints to run. The failure of a probe as a whole
// has the empty name, as the only endpoint of a probe without a selector has.
func (s Selected) Targets() []string {
	if s.TooFew == nil {
		return s.Names
	}
	return append([]string{""}, s.Names...)
}
