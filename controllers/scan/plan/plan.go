// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what an agent reports of the operators that it found: what fits within the bounds of an
// OperatorScan, and whether it differs from what the hub has. It is pure.
package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// MaxBytes is how many bytes a status may have as JSON.
const MaxBytes = 64 << 10

// Next returns the status to write, or nil where the hub has it already. Failure is why the cluster could not be read;
// what is known of it stays then.
func Next(known v1alpha1.OperatorScanStatus, found v1alpha1.OperatorScanStatus, failure error,
	now time.Time) *v1alpha1.OperatorScanStatus {
	next := known.DeepCopy()
	if failure != nil {
		next.NotRead = phrase.Truncate(phrase.OneLine(failure.Error()), 512)
	} else {
		settle(&found, known)
		next = Bound(found)
		next.ObservedAt = known.ObservedAt
	}
	if known.ObservedAt != nil && equality.Semantic.DeepEqual(*next, known) {
		return nil
	}
	if failure == nil || known.ObservedAt == nil {
		next.ObservedAt = &metav1.Time{Time: now.UTC().Truncate(time.Second)}
	}
	return next
}

// settle keeps texts that OLM words differently each time, as long as they are about the same state (olm.md, fact 18).
func settle(found *v1alpha1.OperatorScanStatus, known v1alpha1.OperatorScanStatus) {
	before := map[string]*v1alpha1.FoundOperator{}
	for i := range known.Operators {
		before[keyOf(&known.Operators[i])] = &known.Operators[i]
	}
	found.Operators = slices.Clone(found.Operators)
	for i := range found.Operators {
		o := &found.Operators[i]
		was := before[keyOf(o)]
		if was == nil {
			continue
		}
		if o.Subscription != nil && was.Subscription != nil && o.Subscription.NotResolved != "" &&
			was.Subscription.NotResolved != "" {
			sub := *o.Subscription
			sub.NotResolved = was.Subscription.NotResolved
			o.Subscription = &sub
		}
		if o.CSV != nil && was.CSV != nil && o.CSV.Phase == was.CSV.Phase && o.CSV.Reason == was.CSV.Reason &&
			o.CSV.Message != "" && was.CSV.Message != "" {
			csv := *o.CSV
			csv.Message = was.CSV.Message
			o.CSV = &csv
		}
	}
}

func keyOf(o *v1alpha1.FoundOperator) string {
	switch {
	case o.Subscription != nil:
		return "s/" + o.Namespace + "/" + o.Subscription.Name
	case o.CSV != nil:
		return "c/" + o.Namespace + "/" + o.CSV.Name
	}
	return o.Namespace
}

// The API's limits of lists.
const (
	maxOperators, maxNamespaces, maxSources, maxDefinitions = 200, 200, 100, 100
	// spare is for what is counted and named after the lists were filled.
	spare = 1 << 10
)

// Bound returns what fits of what was found: texts and lists within the API's limits, and all together within MaxBytes.
// What is left out is counted. What Bellwether manages is left out first, since the hub knows it from elsewhere.
func Bound(found v1alpha1.OperatorScanStatus) *v1alpha1.OperatorScanStatus {
	c := &cutter{left: MaxBytes - spare}
	out := &v1alpha1.OperatorScanStatus{OLM: found.OLM, NotRead: found.NotRead, Counts: found.Counts}
	var missing v1alpha1.ScanTruncation
	out.Operators, missing.Operators = fitOperators(c, found.Operators)
	here := map[string]bool{}
	for _, o := range out.Operators {
		here[o.Namespace] = true
	}
	namespaces := slices.DeleteFunc(slices.Clone(found.Namespaces), func(n v1alpha1.FoundNamespace) bool {
		return !here[n.Name]
	})
	out.Namespaces, missing.Namespaces = fit(c, namespaces, maxNamespaces, c.namespace)
	out.CatalogSources, missing.CatalogSources = fit(c, found.CatalogSources, maxSources, c.catalogSource)
	out.OwnerlessDefinitions, missing.OwnerlessDefinitions = fit(c, found.OwnerlessDefinitions, maxDefinitions,
		func(name string) string { return c.text(name, 253) })
	missing.Details = c.cut
	if missing != (v1alpha1.ScanTruncation{}) {
		out.Truncated = &missing
	}
	return out
}

// share is how much of the room operators may take, so that some is left for what is around them.
const share = MaxBytes * 3 / 4

func fitOperators(c *cutter, all []v1alpha1.FoundOperator) ([]v1alpha1.FoundOperator, int32) {
	unmanagedFirst := slices.Clone(all)
	slices.SortStableFunc(unmanagedFirst, func(a, b v1alpha1.FoundOperator) int {
		return cmp.Compare(rank(a), rank(b))
	})
	rest := c.left - share
	c.left = share
	kept, missing := fit(c, unmanagedFirst, maxOperators, c.operator)
	c.left += rest
	slices.SortStableFunc(kept, func(a, b v1alpha1.FoundOperator) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(nameOf(a), nameOf(b)))
	})
	return kept, missing
}

func rank(o v1alpha1.FoundOperator) int {
	if o.Managed {
		return 1
	}
	return 0
}

func nameOf(o v1alpha1.FoundOperator) string {
	switch {
	case o.Subscription != nil:
		return o.Subscription.Name
	case o.CSV != nil:
		return o.CSV.Name
	}
	return ""
}

// fit returns as many items, cut, as there is room for, and counts the others.
func fit[T any](c *cutter, all []T, most int, cut func(T) T) ([]T, int32) {
	var kept []T
	for i, item := range all {
		if i == most {
			return kept, int32(len(all) - i)
		}
		before := c.cut
		item = cut(item)
		if n := sizeOf(item); n <= c.left {
			c.left -= n
			kept = append(kept, item)
			continue
		}
		c.cut = before
		return kept, int32(len(all) - i)
	}
	return kept, 0
}

// sizeOf is the size of an item in a list of JSON.
func sizeOf(item any) int {
	text, err := json.Marshal(item)
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal %T: %v", item, err))
	}
	return len(text) + 1
}
