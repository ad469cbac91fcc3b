// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
	"github.com/bellwether-dev/bellwether/phrase"
)

// crdHistoryRules judge what a CustomResourceDefinition takes away from users
// of any version published before, not only of the last: clusters skip
// versions, and objects stay stored as they were written years ago.
func crdHistoryRules() []Rule {
	breaks := remember(findBreaks)
	of := func(kinds ...crd.Kind) func(*Input) []Finding {
		return func(in *Input) []Finding { return breakFindings(in, breaks(in), kinds) }
	}
	return slices.Concat([]Rule{{
		ID: "crd-removed", Title: "A CustomResourceDefinition of an earlier version is gone", Severity: Error,
		Check: checkRemoved,
		Why: "OLM v0 leaves the definition and its objects on the cluster, without an operator that reconciles them; " +
			"OLM v1 deletes the definition, and with it every object that users made.",
		Fix: "Keep the definition in the bundle, with its version marked `deprecated`, until no cluster has such " +
			"objects any more.",
	}, {
		ID: "crd-changed-identity", Title: "A CustomResourceDefinition changes its scope or kind", Severity: Error,
		Check: of(crd.ChangedIdentity),
		Why: "The API server refuses to change either on a definition that is in use, so the upgrade fails on every " +
			"cluster that has it.",
		Fix: "Undo the change. A kind with another scope is another kind: give it another name, and let the " +
			"operator convert existing objects.",
	}, {
		ID: "crd-storage-moved", Title: "Objects are stored as another version", Severity: Info,
		Check: of(crd.StorageMoved),
		Why: "Objects stay stored as the earlier version until each of them is written again, so that version cannot " +
			"be removed for a long time. " +
			"A rollback is impossible to an earlier version of the operator whose definition does not have the new " +
			"version.",
		Fix: "Nothing, if this is intended. Serve the new version for one release before you store it, so that a " +
			"rollback " +
			"stays possible; migrate stored objects (StorageVersionMigration) before you remove the old one.",
	}, {
		ID: "crd-new-default", Title: "Fields have a new default", Severity: Info,
		Check: of(crd.AddedDefault),
		Why: "The API server puts a default into every object that lacks the field, those that were stored long ago " +
			"included. An operator that distinguishes an absent field from one with the default value then behaves " +
			"differently for them.",
		Fix: "Nothing, if the default is what the operator did without the field.",
	}}, fieldRules(of), versionRules(of))
}

func fieldRules(of func(...crd.Kind) func(*Input) []Finding) []Rule {
	return []Rule{{
		ID: "crd-removed-field", Title: "A field of an earlier version is gone", Severity: Error,
		Check: of(crd.RemovedField),
		Why: "The API server drops fields that the schema does not name, from every object, the next time that it is " +
			"written. What users had stored there is lost, without an error, and cannot be restored. A field of " +
			"`.status` is a warning, here and about narrower fields: the operator writes it again.",
		Fix: "Keep the field, say in its description that it is deprecated, and have the operator ignore it. Remove " +
			"it with a new version of the API and a conversion.",
	}, {
		ID: "crd-changed-type", Title: "A field has another type", Severity: Error, Check: of(crd.ChangedType),
		Why: "Objects that users stored are invalid now: OLM validates them against the new schema and fails the " +
			"InstallPlan, or else every later write of them is refused.",
		Fix: "Leave the field as it is, and add one with the new type under another name.",
	}, {
		ID: "crd-narrowed-enum", Title: "A field allows fewer values", Severity: Error, Check: of(crd.NarrowedEnum),
		Why: "Objects that hold one of the other values are invalid now: OLM validates them against the new schema " +
			"and fails the InstallPlan.",
		Fix: "Keep the value in the enumeration, and let the operator treat it as one of the others.",
	}, {
		ID: "crd-narrowed-range", Title: "A field allows a smaller range", Severity: Error,
		Check: of(crd.NarrowedRange),
		Why: "Objects beyond the new bound are invalid now: OLM validates them against the new schema and fails the " +
			"InstallPlan.",
		Fix: "Keep the earlier bound, or refuse new objects beyond the new one by a validation rule that lets old " +
			"values be (`self == oldSelf || self <= 5`).",
	}, {
		ID: "crd-narrowed-format", Title: "A field has another pattern or format", Severity: Error,
		Check: of(crd.NarrowedFormat),
		Why: "Objects that do not match are invalid now: OLM validates them against the new schema and fails the " +
			"InstallPlan. In general it cannot be decided whether one pattern allows everything that another " +
			"did; if there was a pattern before, or the new one is that of Kubernetes' quantities, which newer " +
			"generators write for a field that an operator could never read otherwise, this is a warning.",
		Fix: "Keep the earlier pattern, or make sure that the new one allows everything that the earlier one did, " +
			"and waive this finding.",
	}, {
		ID: "crd-new-required-field", Title: "An optional field is now required", Severity: Error,
		Check: of(crd.NewRequired),
		Why: "Objects without the field are invalid now: OLM validates them against the new schema and fails the " +
			"InstallPlan. Manifests that users keep in Git are refused.",
		Fix: "Give the field a default, or leave it optional and let the operator choose.",
	}, {
		ID: "crd-new-validation-rule", Title: "A field has a new validation rule", Severity: Warning,
		Check: of(crd.NewRule),
		Why: "Objects that violate the rule can be read but no longer written, not even by the operator to report " +
			"this. The rule does not show whether such objects exist. A rule about changes (with `oldSelf`) " +
			"affects only new changes, and is Info.",
		Fix: "Allow what is stored already, for instance by `self == oldSelf ||` before the rule; waive this finding " +
			"if the operator has always refused such objects.",
	}, {
		ID: "crd-changed-default", Title: "A default changed", Severity: Warning, Check: of(crd.ChangedDefault),
		Why: "The same manifest without the field now means something else. Stored objects keep the " +
			"earlier value, so two clusters with the same manifest differ, depending on when it was applied.",
		Fix: "Keep the default. Change it with a new version of the API.",
	}, {
		ID: "crd-changed-schema", Title: "A schema changes in a way that cannot be judged", Severity: Warning,
		Check: of(crd.Other),
		Why: "Objects that the new anyOf, allOf, oneOf or not refuses are invalid now, so OLM fails the " +
			"InstallPlan. In general it cannot be decided what such a schema allows.",
		Fix: "Make sure that the new schema allows everything that the earlier one did, and waive this finding.",
	}}
}

func versionRules(of func(...crd.Kind) func(*Input) []Finding) []Rule {
	return []Rule{{
		ID: "crd-removed-version", Title: "A version of an API is gone", Severity: Error,
		Check: of(crd.RemovedStored, crd.RemovedVersion),
		Why: "Objects that were stored as this version are in `status.storedVersions` of every cluster that ever had " +
			"it, and the API server " +
			"refuses a definition without it: the upgrade fails. Clients that use the version fail in any case. A " +
			"comparison with the last version only does not find this.",
		Fix: "Keep the version, with `served: false` once clients have moved. Remove it when every cluster has " +
			"migrated its stored objects and taken it out of `status.storedVersions`; then waive this finding.",
	}, {
		ID: "crd-unserved-version", Title: "A version of an API is no longer served", Severity: Error,
		Check: of(crd.Unserved),
		Why: "Every client that uses the version fails from the moment of the upgrade: manifests in Git, dashboards, " +
			"other operators.",
		Fix: "Keep serving the version for some releases, marked `deprecated: true`, which warns its users. Once a " +
			"published version did so, this is a warning.",
	}}
}

// remember keeps the result for the last input, because several rules need the
// same one. Inputs are the same if their bundles are; bundles are not changed.
func remember[T any](find func(*Input) T) func(*Input) T {
	var (
		mutex   sync.Mutex
		bundle  *bundles.Bundle
		history []*bundles.Bundle
		found   T
	)
	return func(in *Input) T {
		mutex.Lock()
		defer mutex.Unlock()
		if bundle != in.Bundle || !slices.Equal(history, in.History) {
			bundle, history, found = in.Bundle, slices.Clone(in.History), find(in)
		}
		return found
	}
}

// before are the published versions that a cluster may come from. A fix of an
// old version is no successor of the newer ones.
func before(in *Input) []*bundles.Bundle {
	return slices.DeleteFunc(slices.Clone(in.History),
		func(b *bundles.Bundle) bool { return b.Version.GT(in.Bundle.Version) })
}

func findBreaks(in *Input) []crd.Break {
	var out []crd.Break
	history := before(in)
	for _, d := range in.Bundle.CRDs {
		out = append(out, crd.Breaks(crd.Find(history, d.Name), in.Archive.Definition(d))...)
	}
	return out
}

// milder are the severities of changes that may be harmless; the rule's
// severity applies to the others.
var milder = map[crd.Kind]Severity{crd.NarrowedFormat: Warning, crd.Unserved: Warning, crd.NewRule: Info}

// rewritten are the changes that concern a field of .status until the operator writes the status again, which loses
// nothing that users wrote.
var rewritten = []crd.Kind{crd.RemovedField, crd.NarrowedEnum, crd.NarrowedRange, crd.NarrowedFormat, crd.NewRequired}

func breakFindings(in *Input, breaks []crd.Break, kinds []crd.Kind) []Finding {
	direct := directVersions(in)
	var out []Finding
	for _, b := range mergeAlike(breaks) {
		if !slices.Contains(kinds, b.Kind) {
			continue
		}
		f := at(in.Bundle.CRDObject(b.CRD), clip(b.String())+published(b.Versions), b.Path...)
		// Objects stay stored as a version until they are migrated, whatever came in between.
		f.earlier = b.Kind != crd.RemovedStored && !slices.ContainsFunc(b.Versions, direct)
		switch {
		case b.Doubtful:
			f.Severity = milder[b.Kind]
		case b.InStatus() && slices.Contains(rewritten, b.Kind):
			f.Severity = Warning
		}
		out = append(out, f)
	}
	return out
}

// merged are the kinds of changes of which one finding is made for each API version. A newer generator adds dozens of
// them, and each alone says little.
func merged(b crd.Break) (suffix string, ok bool) {
	switch {
	case b.Kind == crd.AddedDefault:
		return ", and so have %s", true
	case b.Kind == crd.NarrowedFormat && b.Detail == crd.MustBeQuantity:
		return ", and so must %s", true
	}
	return "", false
}

// mergeAlike makes one of all changes of a merged kind of an API version.
func mergeAlike(breaks []crd.Break) []crd.Break {
	type key struct {
		crd, version string
		kind         crd.Kind
	}
	first, count := map[key]int{}, map[key]int{}
	var out []crd.Break
	for _, b := range breaks {
		if _, ok := merged(b); ok {
			k := key{b.CRD, b.Version, b.Kind}
			count[k]++
			if count[k] > 1 {
				continue
			}
			first[k] = len(out)
		}
		out = append(out, b)
	}
	for k, i := range first {
		if more := count[k] - 1; more > 0 {
			suffix, _ := merged(out[i])
			out[i].Detail += fmt.Sprintf(suffix, phrase.Count(more, "other"))
		}
	}
	return out
}

// directVersions tells the published versions that upgrade to the bundle directly, by their version. Where the bundle
// does not say what it replaces, all earlier ones may.
func directVersions(in *Input) func(version string) bool {
	csv := in.Bundle.CSV
	if csv.Spec.Replaces == "" && len(csv.Spec.Skips) == 0 &&
		csv.Annotations[operatorsv1alpha1.SkipRangeAnnotationKey] == "" {
		return func(string) bool { return true }
	}
	direct := map[string]bool{}
	upgrades := upgradesFrom(in.Bundle)
	for _, old := range in.History {
		if old == in.Predecessor || upgrades(old) {
			direct[old.Version.String()] = true
		}
	}
	return func(version string) bool { return direct[version] }
}

// publishedIn begins the list of versions in a message.
const publishedIn = " (published in "

func published(versions []string) string { return publishedIn + versionList(versions) + ")" }

// versionList names versions, the oldest first, and not all of very many.
func versionList(versions []string) string {
	if n := len(versions); n > 4 {
		return fmt.Sprintf("%s to %s, %d versions", versions[0], versions[n-1], n)
	}
	return strings.Join(versions, ", ")
}

func checkRemoved(in *Input) []Finding {
	var names []string
	by := map[string][]string{}
	for _, b := range before(in) {
		for _, o := range b.Objects {
			if o.GetKind() != "CustomResourceDefinition" || in.Bundle.CRDObject(o.GetName()) != nil {
				continue
			}
			if by[o.GetName()] == nil {
				names = append(names, o.GetName())
			}
			by[o.GetName()] = append(by[o.GetName()], b.Version.String())
		}
	}
	direct := directVersions(in)
	var out []Finding
	for _, name := range names {
		f := at(in.Bundle.CSVObject(), name+" is gone"+published(by[name]), "spec", "customresourcedefinitions",
			"owned")
		f.earlier = !slices.ContainsFunc(by[name], direct)
		out = append(out, f)
	}
	return out
}

func checkConversion(in *Input) []Finding {
	var out []Finding
	for _, d := range in.Bundle.CRDs {
		if crd.Converted(in.Bundle, d) {
			continue
		}
		o := in.Bundle.CRDObject(d.Name)
		divergences := crd.Divergences(d)
		for _, v := range divergences {
			out = append(out, at(o, fmt.Sprintf("%s and %s, as which objects are stored, differ in %s",
				v.Version, v.Storage, phrase.First(v.Fields, 3)), "spec", "versions", v.Index))
		}
		out = append(out, refusalFindings(in, o, d)...)
		if by := convertedBefore(in, d.Name); len(divergences) == 0 && len(d.Spec.Versions) > 1 && len(by) > 0 {
			out = append(out, at(o,
				fmt.Sprintf("the conversion webhook is gone although %s are still defined%s",
					strings.Join(crd.Versions(d), " and "), published(by)), "spec", "conversion"))
		}
	}
	return out
}

// refusalFindings are about versions that refuse what another version of the definition allows. What the operator
// writes itself it can write again.
func refusalFindings(in *Input, o *bundles.Object, d *apiextensionsv1.CustomResourceDefinition) []Finding {
	if len(d.Spec.Versions) < 2 {
		return nil
	}
	var stored []string
	for _, p := range crd.Find(before(in), d.Name) {
		stored = append(stored, crd.StorageVersion(p.Definition))
	}
	var out []Finding
	for _, r := range crd.Refusals(d, stored...) {
		changes := slices.DeleteFunc(slices.Clone(r.Changes), isMild)
		severity := Error
		if len(changes) == 0 {
			changes, severity = r.Changes, Warning
		}
		var texts []string
		for _, c := range changes {
			texts = append(texts, c.Field+" "+refused[c.Kind])
		}
		f := at(o, fmt.Sprintf("%s refuses what %s allows: %s", r.Version, r.Of,
			phrase.First(slices.Compact(texts), 3)), changes[0].Path...)
		f.Severity = severity
		out = append(out, f)
	}
	return out
}

// isMild says whether a change may be harmless, or is of a field that the operator writes itself.
func isMild(c crd.Change) bool { return c.Doubtful || c.InStatus() }

// refused say why a version refuses an object, after the name of a field.
var refused = map[crd.Kind]string{
	crd.NewRequired:    "is required",
	crd.NarrowedEnum:   "allows fewer values",
	crd.NarrowedRange:  "allows a smaller range",
	crd.NarrowedFormat: "has another pattern or format",
}

// convertedBefore are the published versions that had a conversion webhook for a definition.
func convertedBefore(in *Input, name string) []string {
	var by []string
	for _, p := range crd.Find(before(in), name) {
		if crd.Converted(p.Bundle, p.Definition) {
			by = append(by, p.By)
		}
	}
	return by
}
