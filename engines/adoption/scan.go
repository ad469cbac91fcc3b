// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// MaxScanBytes is the maximum size of a status as JSON.
const MaxScanBytes = 64 << 10

// NextScan returns the status to write, or nil if the hub already has it. reported is the status on the hub, and
// found is what the agent found. failure is why the cluster could not be read, or nil; after a failure, found is
// ignored, and the reported operators and their time stay.
func NextScan(reported v1alpha1.OperatorScanStatus, found v1alpha1.OperatorScanStatus, failure error,
	now time.Time) *v1alpha1.OperatorScanStatus {
	next := reported.DeepCopy()
	if failure != nil {
		next.NotRead = phrase.Truncate(phrase.OneLine(failure.Error()), 512)
	} else {
		keepReportedTexts(&found, reported)
		next = LimitScan(found)
		next.ObservedAt = reported.ObservedAt
	}
	if reported.ObservedAt != nil && equality.Semantic.DeepEqual(*next, reported) {
		return nil
	}
	if failure == nil || reported.ObservedAt == nil {
		next.ObservedAt = &metav1.Time{Time: now.UTC().Truncate(time.Second)}
	}
	return next
}

// keepReportedTexts replaces the messages of found by the reported messages if both are about the same state, because
// OLM's text for the same state differs each time (olm.md, fact 18).
func keepReportedTexts(found *v1alpha1.OperatorScanStatus, reported v1alpha1.OperatorScanStatus) {
	reportedByKey := map[string]*v1alpha1.FoundOperator{}
	for i := range reported.Operators {
		reportedByKey[formatKey(&reported.Operators[i])] = &reported.Operators[i]
	}
	found.Operators = slices.Clone(found.Operators)
	for i := range found.Operators {
		o := &found.Operators[i]
		previous := reportedByKey[formatKey(o)]
		if previous == nil {
			continue
		}
		if o.Subscription != nil && previous.Subscription != nil && o.Subscription.NotResolved != "" &&
			previous.Subscription.NotResolved != "" {
			sub := *o.Subscription
			sub.NotResolved = previous.Subscription.NotResolved
			o.Subscription = &sub
		}
		if o.CSV != nil && previous.CSV != nil && o.CSV.Phase == previous.CSV.Phase &&
			o.CSV.Reason == previous.CSV.Reason &&
			o.CSV.Message != "" && previous.CSV.Message != "" {
			csv := *o.CSV
			csv.Message = previous.CSV.Message
			o.CSV = &csv
		}
	}
}

// formatKey returns a key for an operator that stays the same between scans.
func formatKey(o *v1alpha1.FoundOperator) string {
	switch {
	case o.Subscription != nil:
		return "s/" + o.Namespace + "/" + o.Subscription.Name
	case o.CSV != nil:
		return "c/" + o.Namespace + "/" + o.CSV.Name
	}
	return o.Namespace
}

// The limits of the API for lists.
const (
	maxOperators, maxNamespaces, maxSources, maxDefinitions = 200, 200, 100, 100
	// spareBytes is reserved for the parts that are added after the lists.
	spareBytes = 1 << 10
)

// LimitScan cuts the texts and lists of a scan to the limits of the API, and the whole scan to MaxScanBytes. It
// counts what it leaves out. It leaves out operators that Bellwether manages first, because the hub has other data
// about them.
func LimitScan(found v1alpha1.OperatorScanStatus) *v1alpha1.OperatorScanStatus {
	c := &limiter{bytesLeft: MaxScanBytes - spareBytes}
	out := &v1alpha1.OperatorScanStatus{OLM: found.OLM, NotRead: found.NotRead, Counts: found.Counts}
	var missing v1alpha1.ScanTruncation
	out.Operators, missing.Operators = fitOperators(c, found.Operators)
	isReported := map[string]bool{}
	for _, o := range out.Operators {
		isReported[o.Namespace] = true
	}
	namespaces := slices.DeleteFunc(slices.Clone(found.Namespaces), func(n v1alpha1.FoundNamespace) bool {
		return !isReported[n.Name]
	})
	out.Namespaces, missing.Namespaces = fitItems(c, namespaces, maxNamespaces, c.limitNamespace)
	out.CatalogSources, missing.CatalogSources = fitItems(c, found.CatalogSources, maxSources, c.limitCatalogSource)
	out.OwnerlessDefinitions, missing.OwnerlessDefinitions = fitItems(c, found.OwnerlessDefinitions, maxDefinitions,
		func(name string) string { return c.cutText(name, 253) })
	missing.Details = c.cutCount
	if missing != (v1alpha1.ScanTruncation{}) {
		out.Truncated = &missing
	}
	return out
}

// operatorBytes is how many bytes the operators may take at most, so that some bytes remain for the other lists.
const operatorBytes = MaxScanBytes * 3 / 4

// fitOperators returns as many operators as fit, sorted by namespace and name, and how many are left out.
func fitOperators(c *limiter, all []v1alpha1.FoundOperator) ([]v1alpha1.FoundOperator, int32) {
	unmanagedFirst := slices.Clone(all)
	slices.SortStableFunc(unmanagedFirst, func(a, b v1alpha1.FoundOperator) int {
		return cmp.Compare(rankManaged(a), rankManaged(b))
	})
	otherBytes := c.bytesLeft - operatorBytes
	c.bytesLeft = operatorBytes
	kept, missing := fitItems(c, unmanagedFirst, maxOperators, c.limitOperator)
	c.bytesLeft += otherBytes
	slices.SortStableFunc(kept, func(a, b v1alpha1.FoundOperator) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(getSortName(a), getSortName(b)))
	})
	return kept, missing
}

// rankManaged returns the sort order that puts managed operators last.
func rankManaged(o v1alpha1.FoundOperator) int {
	if o.Managed {
		return 1
	}
	return 0
}

// getSortName returns the name by which operators of a namespace are sorted.
func getSortName(o v1alpha1.FoundOperator) string {
	switch {
	case o.Subscription != nil:
		return o.Subscription.Name
	case o.CSV != nil:
		return o.CSV.Name
	}
	return ""
}

// fitItems returns as many limited items as fit, and how many are left out. It stops at the first item that does not
// fit.
func fitItems[T any](c *limiter, all []T, maxCount int, limit func(T) T) ([]T, int32) {
	var kept []T
	for i, item := range all {
		if i == maxCount {
			return kept, int32(len(all) - i)
		}
		previousCutCount := c.cutCount
		item = limit(item)
		if n := measureJSON(item); n <= c.bytesLeft {
			c.bytesLeft -= n
			kept = append(kept, item)
			continue
		}
		c.cutCount = previousCutCount // cuts in an item that is left out do not count
		return kept, int32(len(all) - i)
	}
	return kept, 0
}

// measureJSON returns the size of an item in a JSON list, in bytes.
func measureJSON(item any) int {
	text, err := json.Marshal(item)
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal %T: %v", item, err))
	}
	return len(text) + 1
}
