// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// CustomResources is the SLI of the number of an operator's custom resources.
const CustomResources = "custom-resources"

// ErrLimit says what is wrong with a limit of custom resources.
var ErrLimit = errors.New("invalid limit of custom resources")

// Limit is how many custom resources of a kind an operator may have on a cluster.
type Limit struct {
	Kind string
	// Max is how many there may be; PerDay is how many there may be more than a day
	// before. 0 is no limit.
	Max, PerDay int64
}

func (op Operator) checkLimits() []error {
	var errs []error
	for i, l := range op.Limits {
		switch {
		case !isName(l.Kind):
			errs = append(errs, fmt.Errorf("%w: kind %q: it needs 1 to %d bytes of UTF-8", ErrLimit, l.Kind, maxName))
		case l.Max < 0 || l.PerDay < 0 || l.Max == 0 && l.PerDay == 0:
			errs = append(errs, fmt.Errorf("%w: kind %s: set a maximum, a maximum growth per day, or both, above 0",
				ErrLimit, l.Kind))
		}
		if slices.ContainsFunc(op.Limits[:i], func(other Limit) bool { return other.Kind == l.Kind }) {
			errs = append(errs, fmt.Errorf("%w: kind %s is listed twice", ErrLimit, l.Kind))
		}
	}
	return errs
}

// ofKind are the labels of a number of custom resources, and of its limit.
const ofKind = installLabels + ", " + series.Kind

// customResources are how many there are, and growth is how many more than a day before.
var (
	customResources = aggregate("max", ofKind, series.OperatorCustomResources)
	growth          = fmt.Sprintf("(%s - %s)", customResources, aggregate("max", ofKind,
		series.OperatorCustomResources+" offset 1d"))
)

// customResourcesSLI has slices for the kinds that have a limit.
func customResourcesSLI() SLI {
	within := func(value, limit string) string {
		return fmt.Sprintf("(%s <= bool %s %s) == bool 0", value, on(ofKind), limit)
	}
	return SLI{Name: CustomResources, Target: 990_000, Ticket: true,
		expr: aggregate("max", installLabels, fmt.Sprintf("\n  %s\n  or label_replace(%s, \"of\", \"growth\", "+
			"\"\", \"\")\n", within(customResources, series.CustomResourcesLimit),
			within(growth, series.CustomResourcesGrowthLimit))),
		Bad: "the operator has more custom resources of a kind than `customResources` of its OperatorSLO permits, or " +
			"more of them were added within a day; only a ticket"}
}

// limits records the limits as series, so that one rule compares all of them. They
// are made of the numbers that they limit: where slices are recorded, nothing else
// may be known of an operator. Then it records what is above them.
func (s Set) limits() []monitoringv1.Rule {
	type key struct {
		record, kind string
		value        int64
	}
	same := map[key][]types.NamespacedName{}
	for _, op := range s.Operators {
		for _, l := range op.Limits {
			for record, value := range map[string]int64{series.CustomResourcesLimit: l.Max,
				series.CustomResourcesGrowthLimit: l.PerDay} {
				if value > 0 {
					k := key{record, l.Kind, value}
					same[k] = append(same[k], op.ID())
				}
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(same), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.record, b.record), cmp.Compare(a.kind, b.kind), cmp.Compare(a.value, b.value))
	})
	var rules []monitoringv1.Rule
	for _, k := range keys {
		rules = append(rules, record(k.record, fmt.Sprintf("%d * %s", k.value, aggregate("group", ofKind,
			selectOperators(series.OperatorCustomResources, same[k], fmt.Sprintf("%s=%q", series.Kind, k.kind))))))
	}
	if len(rules) == 0 {
		return nil
	}
	above := func(value, limit string) string { return fmt.Sprintf("%s > %s %s", value, on(ofKind), limit) }
	return append(merge(rules),
		record(series.CustomResourcesExcess, above(customResources, series.CustomResourcesLimit), series.Of, "number"),
		record(series.CustomResourcesExcess, above(growth, series.CustomResourcesGrowthLimit), series.Of, "growth"))
}
