// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollback says whether one version of an operator may be taken back to
// an older one, with the custom resources as the newer one left them.
//
// Its input is both bundles and those published between them. It is pure, and
// it looks at CustomResourceDefinitions only: what the operators' programs do
// with their resources is in no bundle. Whoever rolls back still has to check
// status.storedVersions and the objects that there are.
//
// A rollback in place installs the older operator over the newer one. Each
// definition is then either the older one, put back, or the newer one, kept,
// which is what a view of the catalog can serve:
//
//	in the newer one   put back                       keep
//	new field          what users stored is dropped   the older operator ignores it
//	new value          stored objects are invalid     the older operator does not know it
//	narrower           nothing happens                the older operator's writes are refused
//	field gone         its content is gone already, whichever it is
//	new version that   refused by the API server      the older operator uses the version
//	objects are                                       that it knows, if that is served and
//	stored as                                         has the same fields
//
// So a rollback is in place if each definition can be put back or kept without
// harm.
//
// Every object counts as written under each of the bundles, and so as stored in
// each of their storage versions that the newer one still has. A migration of the
// stored objects therefore changes no class: it only does at once what the
// operator does with time.
package rollback

import (
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

// Classify says what it takes to go back from the bundle to the older bundle
// from. The history is every published bundle, in any order: those between the
// two matter, because a cluster may have stored objects under each of them. The
// reason is one sentence without a full stop, and names the definition and
// field that decide. The class is never empty.
//
// Stored is what a cluster says that its objects may be stored as; nil where that is
// not known. A cluster may have run still newer versions before.
func Classify(from, to *bundles.Bundle, history []*bundles.Bundle, stored Stored) registryv1.Rollback {
	worst := verdict{class: registryv1.RollbackInPlace}
	consider := func(v verdict) {
		if v.rank() > worst.rank() {
			worst = v
		}
	}
	passed := between(from, to, history)
	for _, older := range crd.Definitions(from) {
		consider(judge(edge{from: from, to: to, older: older, newer: crd.Definition(to, older.Name), passed: passed,
			stored: stored[older.Name]}))
	}
	consider(incomparable(from, to))
	consider(added(from, to))
	if worst.reason == "" {
		worst.reason = "both versions define the same custom resources"
	}
	return registryv1.Rollback{From: from.Name, Class: worst.class, Reason: worst.reason}
}

// Kept returns the names of the definitions that have to stay as the newer
// bundle has them when Classify says in-place: putting the older bundle's back
// would drop what users stored. Whoever serves the older bundle to OLM has to
// serve it with these. They are in the older bundle's order.
func Kept(from, to *bundles.Bundle, history []*bundles.Bundle, stored Stored) []string {
	var names []string
	passed := between(from, to, history)
	for _, older := range crd.Definitions(from) {
		v := judge(edge{from: from, to: to, older: older, newer: crd.Definition(to, older.Name), passed: passed,
			stored: stored[older.Name]})
		if v.keep {
			names = append(names, older.Name)
		}
	}
	return names
}

// verdict is what one definition says.
type verdict struct {
	class  registryv1.RollbackClass
	reason string
	// keep says that the newer definition has to stay.
	keep bool
}

func inPlace(format string, args ...any) verdict {
	return verdict{class: registryv1.RollbackInPlace, reason: fmt.Sprintf(format, args...)}
}

func needsBackup(format string, args ...any) verdict {
	return verdict{class: registryv1.RollbackNeedsBackup, reason: fmt.Sprintf(format, args...)}
}

func oneWay(format string, args ...any) verdict {
	return verdict{class: registryv1.RollbackOneWay, reason: fmt.Sprintf(format, args...)}
}

// rank orders verdicts from the best to the worst; one with a reason tells more than one without.
func (v verdict) rank() int {
	rank := 2 * slices.Index([]registryv1.RollbackClass{registryv1.RollbackInPlace, registryv1.RollbackNeedsBackup,
		registryv1.RollbackOneWay}, v.class)
	if v.reason != "" {
		rank++
	}
	return rank
}

// edge is one definition in a rollback.
type edge struct {
	from, to *bundles.Bundle
	older    *apiextensionsv1.CustomResourceDefinition
	// newer is nil where the newer bundle has no such definition.
	newer *apiextensionsv1.CustomResourceDefinition
	// passed are the bundles that a cluster may have run since the older one.
	passed []*bundles.Bundle
	// stored are the versions that the objects of a cluster may be stored as; empty
	// where that is not known.
	stored []string
}

// judge asks from the worst to the best: what makes the way back impossible,
// what has been lost, and whether the definition can be put back or kept.
func judge(e edge) verdict {
	if e.newer == nil {
		return needsBackup("%s is not in %s, and what becomes of its objects meanwhile is not certain", e.older.Name,
			e.to.Name)
	}
	if e.unchanged() && e.unknown().version == "" {
		return verdict{class: registryv1.RollbackInPlace}
	}
	there, back := crd.Compare(e.older, e.newer), crd.Compare(e.newer, e.older)
	if v := barred(e.newer.Name, there); v.reason != "" {
		return v
	}
	if s := e.unknown(); s.version != "" {
		return e.keepUnknown(s, there, back)
	}
	if v := e.converted(); v.reason != "" {
		return v
	}
	if c, ok := first(there, crd.RemovedField); ok {
		return needsBackup("in %s, %s", e.newer.Name, c)
	}
	if v := e.moved(); v.reason != "" {
		return v
	}
	dropped, isDropped := first(back, crd.RemovedField)
	refused, isRefused := first(back, refusals...)
	if !isDropped && !isRefused {
		return e.putBack(there)
	}
	harm, isHarm := first(there, append([]crd.Kind{crd.RemovedVersion, crd.Unserved}, refusals...)...)
	switch {
	case isHarm && harm.Kind == crd.ChangedType:
		return oneWay("in %s, %s, so that neither version's objects suit the other", e.newer.Name, harm)
	case isRefused:
		return needsBackup("in %s, %s accepts what %s does not: going back, %s", e.newer.Name, e.to.Name, e.from.Name,
			refused)
	case isHarm:
		return needsBackup("%s can neither be put back, since %s of %s would be dropped, nor kept: %s", e.newer.Name,
			dropped.Field, dropped.Version, harm)
	case e.isConverted() && !crd.Converted(e.from, e.older):
		return needsBackup("%s can neither be put back, since %s of %s would be dropped, nor kept: %s does not have "+
			"its conversion webhook", e.newer.Name, dropped.Field, dropped.Version, e.from.Name)
	case e.isConverted():
		return needsBackup("in %s, the conversion webhook of %s does not know field %s of %s", e.newer.Name,
			e.from.Name, dropped.Field, dropped.Version)
	}
	stays := inPlace("%s stays as in %s: field %s of %s is new, and the older operator leaves it alone", e.newer.Name,
		e.to.Name, dropped.Field, dropped.Version)
	stays.keep = true
	return stays
}

// unchanged reports whether nothing has touched the definition since the older bundle, as is most often so.
func (e edge) unchanged() bool {
	was := e.from.CRDObject(e.older.Name)
	for _, b := range e.passed {
		if is := b.CRDObject(e.older.Name); was == nil || is == nil || !was.SameText(is) {
			return false
		}
	}
	return crd.Converted(e.from, e.older) == crd.Converted(e.to, e.newer)
}

// refusals are changes that make objects invalid.
var refusals = []crd.Kind{
	crd.ChangedType, crd.NarrowedEnum, crd.NarrowedRange, crd.NarrowedFormat, crd.NewRequired, crd.NewRule, crd.Other,
}

func (e edge) putBack(there []crd.Change) verdict {
	if c, ok := first(there, append([]crd.Kind{crd.RemovedVersion, crd.Unserved}, refusals...)...); ok {
		return inPlace("%s is put back as in %s, which accepts all that may be stored: %s", e.older.Name, e.from.Name,
			c)
	}
	if e.isConverted() && !crd.Converted(e.from, e.older) {
		return inPlace("%s is put back as in %s, without the conversion webhook: all objects are stored as %s",
			e.older.Name, e.from.Name, crd.StorageVersion(e.older))
	}
	if i := slices.IndexFunc(crd.Versions(e.newer), func(v string) bool {
		return !slices.Contains(crd.Versions(e.older), v)
	}); i >= 0 {
		return inPlace("%s is put back as in %s, which does not have version %s: no object is stored as it",
			e.older.Name, e.from.Name, crd.Versions(e.newer)[i])
	}
	return verdict{class: registryv1.RollbackInPlace}
}

// barred says why the API server would not let the older operator have its objects; there is what the newer definition
// changed.
func barred(name string, there []crd.Change) verdict {
	for _, c := range there {
		switch c.Kind {
		case crd.ChangedIdentity:
			return oneWay("in %s, %s, and the API server refuses to change that back", name, c)
		case crd.RemovedStored:
			return oneWay("in %s, %s", name, c)
		}
	}
	return verdict{}
}

// converted says what a conversion webhook that only one of the bundles has means.
func (e edge) converted() verdict {
	was, is := crd.Converted(e.from, e.older), crd.Converted(e.to, e.newer)
	switch {
	case e.isConverted() && !was && len(e.storages()) > 0:
		return oneWay("%s converts %s by a webhook that %s does not have", e.to.Name, e.newer.Name, e.from.Name)
	case was && !is && len(e.older.Spec.Versions) > 1:
		return needsBackup("%s converts %s by a webhook, and what %s wrote never went through it", e.from.Name,
			e.newer.Name, e.to.Name)
	}
	return verdict{}
}

func first(changes []crd.Change, kinds ...crd.Kind) (crd.Change, bool) {
	for _, kind := range kinds {
		for _, c := range changes {
			if c.Kind == kind {
				return c, true
			}
		}
	}
	return crd.Change{}, false
}

// between are the bundles that were published after from, up to and including to.
func between(from, to *bundles.Bundle, history []*bundles.Bundle) []*bundles.Bundle {
	passed := slices.DeleteFunc(slices.Clone(history), func(b *bundles.Bundle) bool {
		return b.Name == to.Name || b.Version.LTE(from.Version) || b.Version.GT(to.Version)
	})
	slices.SortStableFunc(passed, func(a, b *bundles.Bundle) int { return a.Version.Compare(b.Version) })
	return append(passed, to)
}

// incomparable finds definitions that cannot be read and can only be compared
// for equality.
func incomparable(from, to *bundles.Bundle) verdict {
	for _, o := range from.Objects {
		if o.GetKind() != "CustomResourceDefinition" || crd.Definition(from, o.GetName()) != nil {
			continue
		}
		if other := to.CRDObject(o.GetName()); other == nil || !reflect.DeepEqual(o.Object, other.Object) {
			return needsBackup("%s of %s (%s) cannot be read, so that the definitions cannot be compared", o.GetName(),
				from.Name, o.GetAPIVersion())
		}
	}
	return verdict{class: registryv1.RollbackInPlace}
}

// added finds a definition that the older bundle does not have.
func added(from, to *bundles.Bundle) verdict {
	for _, d := range crd.Definitions(to) {
		if from.CRDObject(d.Name) == nil {
			return inPlace("%s is new in %s; its objects stay, and the older operator does not look after them", d.Name,
				to.Name)
		}
	}
	return verdict{class: registryv1.RollbackInPlace}
}
