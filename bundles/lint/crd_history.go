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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// listCRDHistoryRules returns the rules about changes of CustomResourceDefinitions that affect users of any published
// version, not only the last version: clusters skip versions, and stored objects can be years old.
func listCRDHistoryRules() []Rule {
	breaks := cacheResult(findBreaks)
	reportKinds := func(kinds ...crd.Kind) func(*Input) []Finding {
		return func(in *Input) []Finding { return reportBreaks(in, breaks(in), kinds) }
	}
	return slices.Concat([]Rule{{
		ID: "crd-removed", Title: "A CustomResourceDefinition of an earlier version is gone", Severity: Error,
		Check: checkRemoved,
		Why: "OLM v0 leaves the definition and its objects on the cluster, without an operator that reconciles them; " +
			"OLM v1 deletes the definition, and with it every object that users made.",
		Fix: "Keep the definition in the bundle, with its version marked `deprecated`, until all clusters have " +
			"deleted such objects.",
	}, {
		ID: "crd-changed-identity", Title: "A CustomResourceDefinition changes its scope or kind", Severity: Error,
		Check: reportKinds(crd.ChangedIdentity),
		Why: "The API server refuses to change either on a definition that is in use, so the upgrade fails on every " +
			"cluster that has it.",
		Fix: "Undo the change. A kind with another scope is another kind: give it another name, and let the " +
			"operator convert existing objects.",
	}, {
		ID: "crd-storage-moved", Title: "Objects are stored as another version", Severity: Info,
		Check: reportKinds(crd.StorageMoved),
		Why: "Objects stay stored as the earlier version until each of them is written again, so that version cannot " +
			"be removed for a long time. " +
			"A rollback is impossible to an earlier version of the operator whose definition does not have the new " +
			"version.",
		Fix: "Nothing, if this is intended. Serve the new version for one release before you store it, so that a " +
			"rollback " +
			"stays possible; migrate stored objects (StorageVersionMigration) before you remove the old one.",
	}, {
		ID: "crd-new-default", Title: "Fields have a new default", Severity: Info,
		Check: reportKinds(crd.AddedDefault),
		Why: "The API server puts a default into every object that lacks the field, those that were stored long ago " +
			"included. An operator that distinguishes an absent field from one with the default value then behaves " +
			"differently for them.",
		Fix: "Nothing, if the default is what the operator did without the field.",
	}}, listFieldRules(reportKinds), listVersionRules(reportKinds))
}

// listFieldRules returns the rules about changes of fields. reportKinds returns a check for the given kinds of changes.
func listFieldRules(reportKinds func(...crd.Kind) func(*Input) []Finding) []Rule {
	return slices.Concat([]Rule{{
		ID: "crd-removed-field", Title: "A field of an earlier version is gone", Severity: Error,
		Check: reportKinds(crd.RemovedField),
		Why: "The API server drops fields that the schema does not name, from every object, the next time that it is " +
			"written. What users had stored there is lost, without an error, and cannot be restored. A field of " +
			"`.status` is a warning, here and about narrower fields: the operator writes it again.",
		Fix: "Keep the field, say in its description that it is deprecated, and have the operator ignore it. Remove " +
			"it with a new version of the API and a conversion.",
	}, {
		ID: "crd-changed-type", Title: "A field has another type", Severity: Error, Check: reportKinds(crd.ChangedType),
		Why: "Objects that users stored are invalid now: OLM validates them against the new schema and fails the " +
			"InstallPlan, or else every later write of them is refused.",
		Fix: "Leave the field as it is, and add one with the new type under another name.",
	}}, listNarrowedRules(reportKinds), []Rule{{
		ID: "crd-new-required-field", Title: "An optional field is now required", Severity: Error,
		Check: reportKinds(crd.NewRequired),
		Why: "Objects without the field are invalid now: OLM validates them against the new schema and fails the " +
			"InstallPlan. Manifests that users keep in Git are refused.",
		Fix: "Give the field a default, or leave it optional and let the operator choose.",
	}, {
		ID: "crd-new-validation-rule", Title: "A field has a new validation rule", Severity: Warning,
		Check: reportKinds(crd.NewRule),
		Why: "Objects that violate the rule can be read but no longer written, not even by the operator to report " +
			"this. The rule does not show whether such objects exist. A rule about changes (with `oldSelf`) " +
			"affects only new changes, and is Info.",
		Fix: "Allow what is stored already, for instance by `self == oldSelf ||` before the rule; waive this finding " +
			"if the operator has always refused such objects.",
	}, {
		ID: "crd-changed-default", Title: "A default changed", Severity: Warning,
		Check: reportKinds(crd.ChangedDefault),
		Why: "The same manifest without the field now means something else. Stored objects keep the " +
			"earlier value, so two clusters with the same manifest differ, depending on when it was applied.",
		Fix: "Keep the default. Change it with a new version of the API.",
	}, {
		ID: "crd-changed-schema", Title: "A schema changes in a way that cannot be judged", Severity: Warning,
		Check: reportKinds(crd.Other),
		Why: "Objects that the new anyOf, allOf, oneOf or not refuses are invalid now, so OLM fails the " +
			"InstallPlan. In general it cannot be decided what such a schema allows.",
		Fix: "Make sure that the new schema allows everything that the earlier one did, and waive this finding.",
	}})
}

// listNarrowedRules returns the rules about fields that allow less than before. reportKinds is described at
// listFieldRules.
func listNarrowedRules(reportKinds func(...crd.Kind) func(*Input) []Finding) []Rule {
	return []Rule{{
		ID: "crd-narrowed-enum", Title: "A field allows fewer values", Severity: Error,
		Check: reportKinds(crd.NarrowedEnum),
		Why: "Objects that hold one of the other values are invalid now: OLM validates them against the new schema " +
			"and fails the InstallPlan.",
		Fix: "Keep the value in the enumeration, and let the operator treat it as one of the others.",
	}, {
		ID: "crd-narrowed-range", Title: "A field allows a smaller range", Severity: Error,
		Check: reportKinds(crd.NarrowedRange),
		Why: "Objects beyond the new bound are invalid now: OLM validates them against the new schema and fails the " +
			"InstallPlan.",
		Fix: "Keep the earlier bound, or refuse new objects beyond the new one by a validation rule that lets old " +
			"values be (`self == oldSelf || self <= 5`).",
	}, {
		ID: "crd-narrowed-format", Title: "A field has another pattern or format", Severity: Error,
		Check: reportKinds(crd.NarrowedFormat),
		Why: "Objects that do not match are invalid now: OLM validates them against the new schema and fails the " +
			"InstallPlan. In general it cannot be decided whether one pattern allows everything that another " +
			"did; if there was a pattern before, or the new one is that of Kubernetes' quantities, which newer " +
			"generators write for a field that an operator could never read otherwise, this is a warning.",
		Fix: "Keep the earlier pattern, or make sure that the new one allows everything that the earlier one did, " +
			"and waive this finding.",
	}}
}

// listVersionRules returns the rules about removed versions of an API. reportKinds is described at listFieldRules.
func listVersionRules(reportKinds func(...crd.Kind) func(*Input) []Finding) []Rule {
	return []Rule{{
		ID: "crd-removed-version", Title: "A version of an API is gone", Severity: Error,
		Check: reportKinds(crd.RemovedStored, crd.RemovedVersion),
		Why: "Objects that were stored as this version are in `status.storedVersions` of every cluster that ever had " +
			"it, and the API server " +
			"refuses a definition without it: the upgrade fails. Clients that use the version fail in any case. A " +
			"comparison with the last version only does not find this.",
		Fix: "Keep the version, with `served: false` once clients have moved. Remove it when every cluster has " +
			"migrated its stored objects and taken it out of `status.storedVersions`; then waive this finding.",
	}, {
		ID: "crd-unserved-version", Title: "A version of an API is no longer served", Severity: Error,
		Check: reportKinds(crd.Unserved),
		Why: "Every client that uses the version fails from the moment of the upgrade: manifests in Git, dashboards, " +
			"other operators.",
		Fix: "Keep serving the version for some releases, marked `deprecated: true`, which warns its users. Once a " +
			"published version did so, this is a warning.",
	}}
}

// cacheResult returns a function that caches the result of find for the last input, because several rules need the same
// result. Inputs are equal if they have the same bundles; bundles are never changed.
func cacheResult[T any](find func(*Input) T) func(*Input) T {
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

// listEarlierVersions returns the published versions that a cluster can upgrade from. Newer versions are excluded,
// because a fix release of an old version is not an upgrade of them.
func listEarlierVersions(in *Input) []*bundles.Bundle {
	return slices.DeleteFunc(slices.Clone(in.History),
		func(b *bundles.Bundle) bool { return b.Version.GT(in.Bundle.Version) })
}

// findBreaks returns the incompatible changes of all CustomResourceDefinitions since the published versions.
func findBreaks(in *Input) []crd.Break {
	var out []crd.Break
	history := listEarlierVersions(in)
	for _, d := range in.Bundle.CRDs {
		out = append(out, crd.ListBreaks(crd.FindPublished(history, d.Name), in.Archive.Definition(d))...)
	}
	return out
}

// doubtfulSeverities are the severities of changes that may be harmless. For other kinds, the severity of the
// rule applies.
var doubtfulSeverities = map[crd.Kind]Severity{crd.NarrowedFormat: Warning, crd.Unserved: Warning, crd.NewRule: Info}

// recoverableKinds are the kinds of changes that affect a field of .status only until the operator writes the status
// again. No data of users is lost.
var recoverableKinds = []crd.Kind{crd.RemovedField, crd.NarrowedEnum, crd.NarrowedRange, crd.NarrowedFormat,
	crd.NewRequired}

// reportBreaks returns findings for the changes of the given kinds. Changes that may be harmless get the severity of
// doubtfulSeverities, and recoverable changes of .status are warnings. A finding is marked as earlier if none of its
// versions upgrades to the bundle directly.
func reportBreaks(in *Input, breaks []crd.Break, kinds []crd.Kind) []Finding {
	isDirect := newDirectVersionCheck(in)
	var out []Finding
	for _, b := range mergeBreaks(breaks) {
		if !slices.Contains(kinds, b.Kind) {
			continue
		}
		f := newObjectFinding(in.Bundle.CRDObject(b.CRD), clip(b.String())+formatPublished(b.Versions), b.Path...)
		// Objects remain stored as a version until they are migrated, also if later versions were installed in between.
		f.earlier = b.Kind != crd.RemovedStored && !slices.ContainsFunc(b.Versions, isDirect)
		switch {
		case b.Doubtful:
			f.Severity = doubtfulSeverities[b.Kind]
		case b.InStatus() && slices.Contains(recoverableKinds, b.Kind):
			f.Severity = Warning
		}
		out = append(out, f)
	}
	return out
}

// findMergedSuffix returns true if all changes of the kind of b in an API version are merged into one finding, and a
// format for the number of the other changes. A newer generator adds dozens of such changes, and each change is
// unimportant.
func findMergedSuffix(b crd.Break) (suffix string, ok bool) {
	switch {
	case b.Kind == crd.AddedDefault:
		return ", and so have %s", true
	case b.Kind == crd.NarrowedFormat && b.Detail == crd.MustBeQuantity:
		return ", and so must %s", true
	}
	return "", false
}

// mergeBreaks merges all changes of a merged kind (see findMergedSuffix) in an API version into the first change, whose
// detail then has the number of the other changes. It returns other changes unchanged.
func mergeBreaks(breaks []crd.Break) []crd.Break {
	type key struct {
		crd, version string
		kind         crd.Kind
	}
	firstIndex, count := map[key]int{}, map[key]int{}
	var out []crd.Break
	for _, b := range breaks {
		if _, ok := findMergedSuffix(b); ok {
			k := key{b.CRD, b.Version, b.Kind}
			count[k]++
			if count[k] > 1 {
				continue
			}
			firstIndex[k] = len(out)
		}
		out = append(out, b)
	}
	for k, i := range firstIndex {
		if more := count[k] - 1; more > 0 {
			suffix, _ := findMergedSuffix(out[i])
			out[i].Detail += fmt.Sprintf(suffix, phrase.Count(more, "other"))
		}
	}
	return out
}

// newDirectVersionCheck returns a function that reports whether a published version upgrades to the bundle directly. If
// the bundle does not declare which versions it replaces, the function always returns true.
func newDirectVersionCheck(in *Input) func(version string) bool {
	csv := in.Bundle.CSV
	if csv.Spec.Replaces == "" && len(csv.Spec.Skips) == 0 &&
		csv.Annotations[operatorsv1alpha1.SkipRangeAnnotationKey] == "" {
		return func(string) bool { return true }
	}
	direct := map[string]bool{}
	isUpgrade := newUpgradeCheck(in.Bundle)
	for _, old := range in.History {
		if old == in.Predecessor || isUpgrade(old) {
			direct[old.Version.String()] = true
		}
	}
	return func(version string) bool { return direct[version] }
}

// publishedPrefix begins the list of versions in a message.
const publishedPrefix = " (published in "

// formatPublished returns the end of a message that lists the versions in which the CRD was published.
func formatPublished(versions []string) string {
	return publishedPrefix + formatVersions(versions) + ")"
}

// formatVersions lists versions, the oldest first. More than four versions are shortened to a range.
func formatVersions(versions []string) string {
	if n := len(versions); n > 4 {
		return fmt.Sprintf("%s to %s, %d versions", versions[0], versions[n-1], n)
	}
	return strings.Join(versions, ", ")
}

// checkRemoved reports CustomResourceDefinitions that published versions have and the bundle does not.
func checkRemoved(in *Input) []Finding {
	var names []string
	versionsByName := map[string][]string{}
	for _, b := range listEarlierVersions(in) {
		for _, o := range b.Objects {
			if o.GetKind() != "CustomResourceDefinition" || in.Bundle.CRDObject(o.GetName()) != nil {
				continue
			}
			if versionsByName[o.GetName()] == nil {
				names = append(names, o.GetName())
			}
			versionsByName[o.GetName()] = append(versionsByName[o.GetName()], b.Version.String())
		}
	}
	isDirect := newDirectVersionCheck(in)
	var out []Finding
	for _, name := range names {
		f := newObjectFinding(in.Bundle.CSVObject(), name+" is gone"+formatPublished(versionsByName[name]), "spec",
			"customresourcedefinitions", "owned")
		f.earlier = !slices.ContainsFunc(versionsByName[name], isDirect)
		out = append(out, f)
	}
	return out
}

// checkConversion reports CustomResourceDefinitions that need a conversion webhook and do not have one: their versions
// have different fields, or one version refuses objects of another version, or published versions had a webhook.
func checkConversion(in *Input) []Finding {
	var out []Finding
	for _, d := range in.Bundle.CRDs {
		if crd.IsConverted(in.Bundle, d) {
			continue
		}
		o := in.Bundle.CRDObject(d.Name)
		divergences := crd.ListDivergences(d)
		for _, v := range divergences {
			out = append(out, newObjectFinding(o, fmt.Sprintf("%s and %s, as which objects are stored, differ in %s",
				v.Version, v.Storage, phrase.First(v.Fields, 3)), "spec", "versions", v.Index))
		}
		out = append(out, reportRefusals(in, o, d)...)
		// Versions with equal schemas can still need the webhook if earlier versions of the operator had one.
		converted := listConvertedVersions(in, d.Name)
		if len(divergences) == 0 && len(d.Spec.Versions) > 1 && len(converted) > 0 {
			out = append(out, newObjectFinding(o,
				fmt.Sprintf("the conversion webhook is gone although %s are still defined%s",
					strings.Join(crd.Versions(d), " and "), formatPublished(converted)), "spec", "conversion"))
		}
	}
	return out
}

// reportRefusals returns findings about versions of a definition that refuse objects which another version allows.
// Changes that may be harmless, or that concern fields which the operator itself writes, are warnings.
func reportRefusals(in *Input, o *bundles.Object, d *apiextensionsv1.CustomResourceDefinition) []Finding {
	if len(d.Spec.Versions) < 2 {
		return nil
	}
	var stored []string
	for _, p := range crd.FindPublished(listEarlierVersions(in), d.Name) {
		stored = append(stored, crd.StorageVersion(p.Definition))
	}
	var out []Finding
	for _, r := range crd.ListRefusals(d, stored...) {
		changes := slices.DeleteFunc(slices.Clone(r.Changes), isMild)
		severity := Error
		if len(changes) == 0 {
			changes, severity = r.Changes, Warning
		}
		var texts []string
		for _, c := range changes {
			texts = append(texts, c.Field+" "+refusalTexts[c.Kind])
		}
		f := newObjectFinding(o, fmt.Sprintf("%s refuses what %s allows: %s", r.Version, r.ValidVersion,
			phrase.First(slices.Compact(texts), 3)), changes[0].Path...)
		f.Severity = severity
		out = append(out, f)
	}
	return out
}

// isMild reports whether a change may be harmless, or concerns a field that the operator itself writes.
func isMild(c crd.Change) bool { return c.Doubtful || c.InStatus() }

// refusalTexts are the reasons why a version refuses an object; they follow the name of a field.
var refusalTexts = map[crd.Kind]string{
	crd.NewRequired:    "is required",
	crd.NarrowedEnum:   "allows fewer values",
	crd.NarrowedRange:  "allows a smaller range",
	crd.NarrowedFormat: "has another pattern or format",
}

// listConvertedVersions returns the published versions that had a conversion webhook for a definition.
func listConvertedVersions(in *Input, name string) []string {
	var versions []string
	for _, p := range crd.FindPublished(listEarlierVersions(in), name) {
		if crd.IsConverted(p.Bundle, p.Definition) {
			versions = append(versions, p.OperatorVersion)
		}
	}
	return versions
}
