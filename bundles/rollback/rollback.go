// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollback determines whether an operator can be rolled back from one version to an older version, with the
// custom resources as the newer version left them.
//
// Its input is both bundles and the bundles that were published between them. It has no side effects and reads only
// CustomResourceDefinitions, because a bundle does not show how an operator's program uses its resources. Before a
// rollback, status.storedVersions and the existing objects must still be checked.
//
// A rollback in place installs the older operator over the newer operator. A view of the catalog can serve each
// definition in one of two ways: the older definition is put back, or the newer definition is kept.
//
//	in the newer one   put back                       keep
//	new field          what users stored is dropped   the older operator ignores it
//	new value          stored objects are invalid     the older operator does not know it
//	narrower           nothing happens                the older operator's writes are refused
//	field removed      the content is already lost in both cases
//	new version that   refused by the API server      the older operator uses the version
//	objects are                                       that it knows, if that is served and
//	stored as                                         has the same fields
//
// So a rollback is in place if each definition can be put back or kept without harm.
//
// Every object is assumed to be written under each of the bundles, and therefore stored in each of their storage
// versions that the newer bundle still has. A migration of the stored objects changes no class, because the operator
// itself rewrites all objects over time.
package rollback

import (
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// Classify returns what is needed to roll back from the bundle to to the older bundle from. history are all published
// bundles, in any order; bundles between the two matter, because a cluster may have stored objects under each of
// them. The reason is one sentence without a full stop, which names the definition and field that decide. The class
// is never empty.
//
// stored are the versions that the objects of a cluster may be stored as, as the cluster reports; nil if they are not
// known. They can come from bundles that are newer than to.
func Classify(from, to *bundles.Bundle, history []*bundles.Bundle, stored Stored) bundles.Rollback {
	worst := verdict{class: bundles.RollbackInPlace}
	consider := func(v verdict) {
		if v.computeRank() > worst.computeRank() {
			worst = v
		}
	}
	installed := listBetween(from, to, history)
	for _, older := range crd.Definitions(from) {
		consider(classifyDefinition(transition{from: from, to: to, older: older, newer: crd.Definition(to, older.Name),
			installed: installed, stored: stored[older.Name]}))
	}
	consider(findIncomparable(from, to))
	consider(findAdded(from, to))
	if worst.reason == "" {
		worst.reason = "both versions define the same custom resources"
	}
	return bundles.Rollback{From: from.Name, Class: worst.class, Reason: worst.reason}
}

// ListKeptDefinitions returns the names of the definitions that must stay as in the newer bundle if the class is
// in-place, because putting the older definitions back would drop data of users. If the older bundle is served to OLM,
// it must have these definitions. They are in the order of the older bundle.
func ListKeptDefinitions(from, to *bundles.Bundle, history []*bundles.Bundle, stored Stored) []string {
	var names []string
	installed := listBetween(from, to, history)
	for _, older := range crd.Definitions(from) {
		v := classifyDefinition(transition{from: from, to: to, older: older, newer: crd.Definition(to, older.Name),
			installed: installed, stored: stored[older.Name]})
		if v.keep {
			names = append(names, older.Name)
		}
	}
	return names
}

// verdict is the result for one definition.
type verdict struct {
	class  bundles.RollbackClass
	reason string
	// keep is true if the definition must stay as in the newer bundle.
	keep bool
}

// newInPlace returns a verdict with a reason for a rollback in place.
func newInPlace(format string, args ...any) verdict {
	return verdict{class: bundles.RollbackInPlace, reason: fmt.Sprintf(format, args...)}
}

// newNeedsBackup returns a verdict for a rollback that needs a backup.
func newNeedsBackup(format string, args ...any) verdict {
	return verdict{class: bundles.RollbackNeedsBackup, reason: fmt.Sprintf(format, args...)}
}

// newOneWay returns a verdict for an impossible rollback.
func newOneWay(format string, args ...any) verdict {
	return verdict{class: bundles.RollbackOneWay, reason: fmt.Sprintf(format, args...)}
}

// computeRank returns the order of verdicts, the best first. A verdict with a reason ranks after one without.
func (v verdict) computeRank() int {
	rank := 2 * slices.Index([]bundles.RollbackClass{bundles.RollbackInPlace, bundles.RollbackNeedsBackup,
		bundles.RollbackOneWay}, v.class)
	if v.reason != "" { // a class has two ranks: without and with a reason
		rank++
	}
	return rank
}

// transition is the rollback of one definition.
type transition struct {
	from, to *bundles.Bundle
	older    *apiextensionsv1.CustomResourceDefinition
	// newer is nil if the newer bundle does not have the definition.
	newer *apiextensionsv1.CustomResourceDefinition
	// installed are the bundles that a cluster may have run since the older bundle, including the newer bundle.
	installed []*bundles.Bundle
	// stored are the versions that the objects of a cluster may be stored as; empty if they are not known.
	stored []string
}

// classifyDefinition returns the verdict for one definition. It checks the worst results first: whether a rollback is
// impossible, whether data is already lost, and whether the definition can be put back or kept. An unchanged definition
// is a rollback in place without a reason.
func classifyDefinition(e transition) verdict {
	if e.newer == nil {
		return newNeedsBackup("%s is not in %s, and what becomes of its objects meanwhile is not certain", e.older.Name,
			e.to.Name)
	}
	if e.isUnchanged() && e.findUnknownVersion().version == "" {
		return verdict{class: bundles.RollbackInPlace}
	}
	forward, backward := crd.Compare(e.older, e.newer), crd.Compare(e.newer, e.older)
	if v := findBarrier(e.newer.Name, forward); v.reason != "" {
		return v
	}
	if s := e.findUnknownVersion(); s.version != "" {
		return e.classifyUnknownVersion(s, forward, backward)
	}
	if v := e.classifyConversion(); v.reason != "" {
		return v
	}
	if c, ok := findFirst(forward, crd.RemovedField); ok {
		return newNeedsBackup("in %s, %s", e.newer.Name, c)
	}
	if v := e.classifyMovedStorage(); v.reason != "" {
		return v
	}
	dropped, isDropped := findFirst(backward, crd.RemovedField)
	refused, isRefused := findFirst(backward, refusalKinds...)
	if !isDropped && !isRefused {
		return e.classifyRestore(forward)
	}
	harm, isHarm := findFirst(forward, append([]crd.Kind{crd.RemovedVersion, crd.Unserved}, refusalKinds...)...)
	switch {
	case isHarm && harm.Kind == crd.ChangedType:
		return newOneWay("in %s, %s, so that neither version's objects suit the other", e.newer.Name, harm)
	case isRefused:
		return newNeedsBackup("in %s, %s accepts what %s does not: going back, %s", e.newer.Name, e.to.Name,
			e.from.Name, refused)
	case isHarm:
		return newNeedsBackup("%s can neither be put back, since %s of %s would be dropped, nor kept: %s", e.newer.Name,
			dropped.Field, dropped.Version, harm)
	case e.isConverted() && !crd.IsConverted(e.from, e.older):
		return newNeedsBackup("%s can neither be put back, since %s of %s would be dropped, nor kept: %s does not "+
			"have its conversion webhook", e.newer.Name, dropped.Field, dropped.Version, e.from.Name)
	case e.isConverted():
		return newNeedsBackup("in %s, the conversion webhook of %s does not know field %s of %s", e.newer.Name,
			e.from.Name, dropped.Field, dropped.Version)
	}
	result := newInPlace("%s stays as in %s: field %s of %s is new, and the older operator leaves it alone",
		e.newer.Name, e.to.Name, dropped.Field, dropped.Version)
	result.keep = true
	return result
}

// isUnchanged reports whether no bundle since the older bundle has changed the definition, which is the usual case.
func (e transition) isUnchanged() bool {
	oldObject := e.from.CRDObject(e.older.Name)
	for _, b := range e.installed {
		newObject := b.CRDObject(e.older.Name)
		if oldObject == nil || newObject == nil || !oldObject.SameText(newObject) {
			return false
		}
	}
	return crd.IsConverted(e.from, e.older) == crd.IsConverted(e.to, e.newer)
}

// refusalKinds are the kinds of changes that make objects invalid.
var refusalKinds = []crd.Kind{
	crd.ChangedType, crd.NarrowedEnum, crd.NarrowedRange, crd.NarrowedFormat, crd.NewRequired, crd.NewRule, crd.Other,
}

// classifyRestore returns the verdict for a definition that can be put back, which is always a rollback in place.
// forward are the changes from older to newer. The reason describes the most important difference; it is empty if
// there is none.
func (e transition) classifyRestore(forward []crd.Change) verdict {
	if c, ok := findFirst(forward, append([]crd.Kind{crd.RemovedVersion, crd.Unserved}, refusalKinds...)...); ok {
		return newInPlace("%s is put back as in %s, which accepts all that may be stored: %s", e.older.Name,
			e.from.Name, c)
	}
	if e.isConverted() && !crd.IsConverted(e.from, e.older) {
		return newInPlace("%s is put back as in %s, without the conversion webhook: all objects are stored as %s",
			e.older.Name, e.from.Name, crd.StorageVersion(e.older))
	}
	if i := slices.IndexFunc(crd.Versions(e.newer), func(v string) bool {
		return !slices.Contains(crd.Versions(e.older), v)
	}); i >= 0 {
		return newInPlace("%s is put back as in %s, which does not have version %s: no object is stored as it",
			e.older.Name, e.from.Name, crd.Versions(e.newer)[i])
	}
	return verdict{class: bundles.RollbackInPlace}
}

// findBarrier returns a verdict with a reason if the API server refuses the older definition; the zero value otherwise.
// forward are the changes from older to newer.
func findBarrier(name string, forward []crd.Change) verdict {
	for _, c := range forward {
		switch c.Kind {
		case crd.ChangedIdentity:
			return newOneWay("in %s, %s, and the API server refuses to change that back", name, c)
		case crd.RemovedStored:
			return newOneWay("in %s, %s", name, c)
		}
	}
	return verdict{}
}

// classifyConversion returns a verdict with a reason if only one of the bundles has a conversion webhook and a rollback
// would need the missing webhook; the zero value otherwise.
func (e transition) classifyConversion() verdict {
	isOldConverted, isNewConverted := crd.IsConverted(e.from, e.older), crd.IsConverted(e.to, e.newer)
	switch {
	case e.isConverted() && !isOldConverted && len(e.listStoredVersions()) > 0:
		return newOneWay("%s converts %s by a webhook that %s does not have", e.to.Name, e.newer.Name, e.from.Name)
	case isOldConverted && !isNewConverted && len(e.older.Spec.Versions) > 1:
		return newNeedsBackup("%s converts %s by a webhook, and what %s wrote never went through it", e.from.Name,
			e.newer.Name, e.to.Name)
	}
	return verdict{}
}

// findFirst returns the first change of the first kind that occurs, and whether there is one.
func findFirst(changes []crd.Change, kinds ...crd.Kind) (crd.Change, bool) {
	for _, kind := range kinds {
		for _, c := range changes {
			if c.Kind == kind {
				return c, true
			}
		}
	}
	return crd.Change{}, false
}

// listBetween returns the bundles that were published after from, up to and including to.
func listBetween(from, to *bundles.Bundle, history []*bundles.Bundle) []*bundles.Bundle {
	installed := slices.DeleteFunc(slices.Clone(history), func(b *bundles.Bundle) bool {
		return b.Name == to.Name || b.Version.LTE(from.Version) || b.Version.GT(to.Version)
	})
	slices.SortStableFunc(installed, func(a, b *bundles.Bundle) int { return a.Version.Compare(b.Version) })
	return append(installed, to)
}

// findIncomparable returns a verdict with a reason if a definition of the older bundle cannot be decoded and is not
// equal in the newer bundle. Such definitions cannot be compared in another way. Otherwise the verdict has no reason.
func findIncomparable(from, to *bundles.Bundle) verdict {
	for _, o := range from.Objects {
		if o.GetKind() != "CustomResourceDefinition" || crd.Definition(from, o.GetName()) != nil {
			continue
		}
		if newer := to.CRDObject(o.GetName()); newer == nil || !reflect.DeepEqual(o.Object, newer.Object) {
			return newNeedsBackup("%s of %s (%s) cannot be read, so that the definitions cannot be compared",
				o.GetName(), from.Name, o.GetAPIVersion())
		}
	}
	return verdict{class: bundles.RollbackInPlace}
}

// findAdded returns a verdict with a reason if the newer bundle has an additional definition. Otherwise the verdict
// has no reason.
func findAdded(from, to *bundles.Bundle) verdict {
	for _, d := range crd.Definitions(to) {
		if from.CRDObject(d.Name) == nil {
			return newInPlace("%s is new in %s; its objects stay, and the older operator does not look after them",
				d.Name, to.Name)
		}
	}
	return verdict{class: bundles.RollbackInPlace}
}
