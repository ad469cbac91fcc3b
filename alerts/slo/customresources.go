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

// ErrLimit is wrapped by errors about limits of custom resources.
var ErrLimit = errors.New("invalid limit of custom resources")

// Limit is how many custom resources of a kind an operator may have on a cluster.
type Limit struct {
	Kind string
	// Max is the maximum number. PerDay is the maximum increase within a day. 0 is no limit.
	Max, PerDay int64
}

// checkLimits returns the errors in the limits of an operator.
func (op Operator) checkLimits() []error {
	var errs []error
	for i, l := range op.Limits {
		hasNoLimit := l.Max == 0 && l.PerDay == 0
		switch {
		case !isName(l.Kind):
			errs = append(errs, fmt.Errorf("%w: kind %q: it needs 1 to %d bytes of UTF-8", ErrLimit, l.Kind, maxName))
		case l.Max < 0 || l.PerDay < 0 || hasNoLimit:
			errs = append(errs, fmt.Errorf("%w: kind %s: set a maximum, a maximum growth per day, or both, above 0",
				ErrLimit, l.Kind))
		}
		if slices.ContainsFunc(op.Limits[:i], func(other Limit) bool { return other.Kind == l.Kind }) {
			errs = append(errs, fmt.Errorf("%w: kind %s is listed twice", ErrLimit, l.Kind))
		}
	}
	return errs
}

// kindLabels are the labels of a number of custom resources, and of its limit.
const kindLabels = installLabels + ", " + series.Kind

// customResources is PromQL for the number of custom resources, and growth for its increase within a day.
var (
	customResources = aggregate("max", kindLabels, series.OperatorCustomResources)
	growth          = fmt.Sprintf("(%s - %s)", customResources, aggregate("max", kindLabels,
		series.OperatorCustomResources+" offset 1d"))
)

// newCustomResourcesSLI returns the SLI, which has slices for the kinds that have a limit.
func newCustomResourcesSLI() SLI {
	// Without its label, `or` would drop the growth where the number itself has a result.
	compareLimit := func(value, limit string) string {
		return fmt.Sprintf("(%s <= bool %s %s) == bool 0", value, matchOn(kindLabels), limit)
	}
	return SLI{Name: CustomResources, Target: 990_000, Ticket: true,
		expr: aggregate("max", installLabels, fmt.Sprintf("\n  %s\n  or label_replace(%s, \"of\", \"growth\", "+
			"\"\", \"\")\n", compareLimit(customResources, series.CustomResourcesLimit),
			compareLimit(growth, series.CustomResourcesGrowthLimit))),
		Bad: "the operator has more custom resources of a kind than `customResources` of its OperatorSLO permits, or " +
			"more of them were added within a day; only a ticket"}
}

// buildLimitRules returns rules that record the limits as series, so that one rule compares all of
// them. The limits are computed from the numbers that they limit, because other series of the operator
// may be missing where slices are recorded. The last rules record the numbers that exceed a limit.
func (s Set) buildLimitRules() []monitoringv1.Rule {
	type key struct {
		record, kind string
		value        int64
	}
	operatorsByKey := map[key][]types.NamespacedName{}
	for _, op := range s.Operators {
		for _, l := range op.Limits {
			for record, value := range map[string]int64{series.CustomResourcesLimit: l.Max,
				series.CustomResourcesGrowthLimit: l.PerDay} {
				if value > 0 {
					k := key{record, l.Kind, value}
					operatorsByKey[k] = append(operatorsByKey[k], op.ID())
				}
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(operatorsByKey), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.record, b.record), cmp.Compare(a.kind, b.kind), cmp.Compare(a.value, b.value))
	})
	var rules []monitoringv1.Rule
	for _, k := range keys {
		rules = append(rules, newRecord(k.record, fmt.Sprintf("%d * %s", k.value, aggregate("group", kindLabels,
			selectOperators(series.OperatorCustomResources, operatorsByKey[k],
				fmt.Sprintf("%s=%q", series.Kind, k.kind))))))
	}
	if len(rules) == 0 {
		return nil
	}
	selectAbove := func(value, limit string) string {
		return fmt.Sprintf("%s > %s %s", value, matchOn(kindLabels), limit)
	}
	return append(merge(rules),
		newRecord(series.CustomResourcesExcess, selectAbove(customResources, series.CustomResourcesLimit), series.Of,
			"number"),
		newRecord(series.CustomResourcesExcess, selectAbove(growth, series.CustomResourcesGrowthLimit), series.Of,
			"growth"))
}
