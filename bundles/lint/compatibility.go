// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/constraints"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/pkg/registry"

	"github.com/bellwether-dev/bellwether/bundles"
)

const (
	annotationsFile  = bundles.MetadataDir + "/annotations.yaml"
	dependenciesFile = bundles.MetadataDir + "/dependencies.yaml"
)

// listCompatibilityRules returns the rules about OLM's treatment of a bundle, and about its changes since
// earlier versions.
func listCompatibilityRules() []Rule {
	return slices.Concat(listFormatRules(), listObjectRules(), listReleaseRules(), listOLMV0Rules(), listOLMV1Rules())
}

// listFormatRules returns the rules about the files and metadata of a bundle.
func listFormatRules() []Rule {
	return []Rule{{
		ID: "bundle-annotations", Title: "The annotations of the bundle are incomplete", Severity: Error,
		Check: checkAnnotations,
		Why: "The annotations become the labels of the bundle's image, by which OLM finds the manifests. opm refuses " +
			"bundles without them, and a default channel without a version leaves the package without a default. " +
			"A version need not be in the default channel itself. If the history lacks versions or their channels, " +
			"a missing version may be in the default channel, and the finding is a warning.",
		Fix: "Complete `metadata/annotations.yaml` as the message says.",
	}, {
		ID: "bundle-stray-file", Title: "The manifests folder contains something else", Severity: Error,
		Check: checkStrayFiles,
		Why: "OLM v1 refuses a bundle with a folder among the manifests, or with a file that is not a manifest; " +
			"OLM v0 " +
			"ignores folders, so that what is in them is never installed.",
		Fix: "Keep `manifests/` flat, with `.yaml`, `.yml` and `.json` files only.",
	}, {
		ID: "csv-api-version", Title: "The ClusterServiceVersion has another apiVersion than OLM's", Severity: Warning,
		Check: checkCSVAPIVersion,
		Why: "OLM and opm find the ClusterServiceVersion by its kind and install it all the same. Other tools do " +
			"not: " +
			"`kubectl apply` refuses it, and validators and editors do not check it.",
		Fix: "Set `apiVersion: operators.coreos.com/v1alpha1`.",
	}, {
		ID: "history-unreadable", Title: "A published version cannot be read", Severity: Warning,
		Check: checkUnreadable,
		Why: "The bundle could not be compared with the published version, so incompatible changes since that " +
			"version are not reported.",
		Fix: "Correct the published bundle if it is in your hands, or leave it out of `--history`.",
	}, {
		ID: "dependency-invalid", Title: "A dependency cannot be resolved", Severity: Error,
		Check: checkDependencies,
		Why: "OLM's resolver fails on a dependency that it cannot read, and then resolves nothing else in the " +
			"namespace either.",
		Fix: "Use the types `olm.package` (with packageName and a semver range as version), `olm.gvk` (with group, " +
			"version and kind) or `olm.constraint`.",
	}}
}

// newFileFinding returns a finding in a metadata file, on the first line that contains the text mentions. The line is 1
// if the text is empty or not found, or if the file cannot be read.
func newFileFinding(in *Input, file, mentions, message string, path ...any) Finding {
	f := Finding{File: file, Line: 1, Path: bundles.FieldPath(path...), Message: message}
	if in.Files == nil {
		return f
	}
	text, err := readFile(in.Files, file)
	if err != nil {
		return f
	}
	if textBefore, _, ok := strings.Cut(string(text), mentions); ok && mentions != "" {
		f.Line = 1 + strings.Count(textBefore, "\n")
	}
	return f
}

// readFile reads a regular file of the bundle.
func readFile(files fs.FS, name string) ([]byte, error) {
	f, err := bundles.Open(files, name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}

// checkAnnotations reports missing annotations, unusual folder names, and a default channel without a version.
func checkAnnotations(in *Input) []Finding {
	b := in.Bundle
	if b.Annotations == nil { // the bundle does not come from a folder or image
		return nil
	}
	var out []Finding
	for _, name := range []string{bundles.AnnotationMediaType, bundles.AnnotationManifests,
		bundles.AnnotationMetadata,
		bundles.AnnotationPackage, bundles.AnnotationChannels} {
		if strings.TrimSpace(b.Annotations[name]) == "" {
			out = append(out, newFileFinding(in, annotationsFile, "annotations:", "the annotation "+name+" is missing",
				"annotations", name))
		}
	}
	for name, want := range map[string]string{bundles.AnnotationManifests: bundles.ManifestsDir,
		bundles.AnnotationMetadata: bundles.MetadataDir} {
		if have := b.Annotations[name]; have != "" && path.Clean(have) != want {
			f := newFileFinding(in, annotationsFile, name,
				fmt.Sprintf("%s is %q; many tools look in %s/ only", name, have, want), "annotations", name)
			f.Severity = Warning
			out = append(out, f)
		}
	}
	return append(out, checkDefaultChannel(in)...)
}

// checkDefaultChannel reports a default channel that contains no version; nothing if the bundle names no default
// channel. The finding is only a warning if the history is incomplete, because a missing version may be in the channel.
func checkDefaultChannel(in *Input) []Finding {
	name := in.Bundle.DefaultChannel
	provides := func(b *bundles.Bundle) bool { return slices.Contains(b.Channels, name) }
	if name == "" || provides(in.Bundle) || slices.ContainsFunc(in.History, provides) {
		return nil
	}
	own := strings.Join(in.Bundle.Channels, ", ")
	f := newFileFinding(in, annotationsFile, bundles.AnnotationDefaultChannel,
		fmt.Sprintf("no version is in the default channel %q; this one is in %s", name, own),
		"annotations", bundles.AnnotationDefaultChannel)
	if isPartialHistory(in) {
		f.Severity = Warning
		f.Message = fmt.Sprintf("the default channel %q is not one of the version's own channels (%s): another "+
			"version must be in it", name, own)
	}
	return []Finding{f}
}

// isPartialHistory reports whether published versions may be missing from the history, or have unknown channels. A
// history is complete only if each version except the oldest replaces another version of the history, and no version
// refers to a version outside the history.
func isPartialHistory(in *Input) bool {
	if len(in.History) == 0 || len(in.Unreadable) > 0 {
		return true
	}
	all := append(slices.Clone(in.History), in.Bundle)
	oldest := slices.MinFunc(all, func(a, b *bundles.Bundle) int { return a.Version.Compare(b.Version) })
	isMissing := func(name string) bool {
		return !slices.ContainsFunc(all, func(b *bundles.Bundle) bool { return b.Name == name })
	}
	return slices.ContainsFunc(all, func(b *bundles.Bundle) bool {
		replaces, skips := b.CSV.Spec.Replaces, b.CSV.Spec.Skips
		switch {
		case len(b.Channels) == 0 || slices.ContainsFunc(skips, isMissing):
			return true
		case b == oldest: // in a complete history, the oldest version upgrades from no other version
			return replaces != "" || b.CSV.Annotations[operatorsv1alpha1.SkipRangeAnnotationKey] != ""
		}
		return isMissing(replaces)
	})
}

// checkCSVAPIVersion reports a ClusterServiceVersion whose apiVersion is not OLM's.
func checkCSVAPIVersion(in *Input) []Finding {
	have := in.Bundle.CSVObject().GetAPIVersion()
	if have == operatorsv1alpha1.ClusterServiceVersionAPIVersion {
		return nil
	}
	return newCSVFinding(in, fmt.Sprintf("the apiVersion is %q, not %q", have,
		operatorsv1alpha1.ClusterServiceVersionAPIVersion), "apiVersion")
}

// checkUnreadable reports published versions that could not be read.
func checkUnreadable(in *Input) []Finding {
	var out []Finding
	for _, u := range in.Unreadable {
		out = append(out, Finding{Message: fmt.Sprintf("%s was left out of the comparison: %s", u.Name,
			clip(u.Err.Error()))})
	}
	return out
}

// checkStrayFiles reports entries in the manifests folder that are not manifest files.
func checkStrayFiles(in *Input) []Finding {
	if in.Files == nil {
		return nil
	}
	folder := bundles.ManifestsFolder(in.Bundle.Annotations)
	entries, err := fs.ReadDir(in.Files, folder)
	if err != nil {
		return nil // the bundle cannot be read either, which is another error
	}
	var out []Finding
	for _, e := range entries {
		file := path.Join(folder, e.Name())
		switch {
		case e.IsDir():
			out = append(out, Finding{File: file, Line: 1, Message: "a folder among the manifests"})
		case !e.Type().IsRegular():
			out = append(out, Finding{File: file, Line: 1, Message: "not a regular file"})
		case strings.HasPrefix(e.Name(), "."):
			out = append(out, Finding{File: file, Line: 1,
				Message: "a hidden file, which `bundle push` leaves out and OLM does not"})
		case !bundles.IsManifest(e.Name()):
			out = append(out, Finding{File: file, Line: 1,
				Message: "no manifest: its name does not end in .yaml, .yml or .json"})
		}
	}
	return out
}

// checkDependencies reports dependencies that OLM's resolver cannot read.
func checkDependencies(in *Input) []Finding {
	var out []Finding
	for i, d := range in.Bundle.Dependencies {
		for _, err := range validateDependency(d) {
			out = append(out, newFileFinding(in, dependenciesFile, d.Type,
				fmt.Sprintf("dependency %d (%s): %s", i+1, d.Type, clip(err.Error())), "dependencies", i))
		}
	}
	return out
}

// validateDependency returns the errors of OLM's resolver for a dependency; nil if the dependency is valid.
func validateDependency(d bundles.Property) []error {
	var decoded interface{ Validate() []error }
	switch d.Type {
	case registry.GVKType:
		decoded = &registry.GVKDependency{}
	case registry.PackageType:
		decoded = &registry.PackageDependency{}
	case registry.LabelType:
		decoded = &registry.LabelDependency{}
	case registry.ConstraintType:
		if _, err := constraints.Parse(d.Value); err != nil {
			return []error{err}
		}
		return nil
	default:
		return []error{errors.New("OLM knows no dependency of this type")}
	}
	if err := json.Unmarshal(d.Value, decoded); err != nil {
		return []error{err}
	}
	return decoded.Validate()
}

// listReleaseRules returns the rules about the version and its upgrade path.
func listReleaseRules() []Rule {
	return []Rule{{
		ID: "version-format", Title: "The version is not of the form X.Y.Z", Severity: Error, Check: checkVersionFormat,
		Why: "A pre-release sorts below the version itself, and most ranges do not include it (`>=1.0.0` does not " +
			"include `1.2.0-rc1` everywhere), so clusters skip it or cannot leave it. Comparisons of semantic " +
			"versions ignore build metadata, so OLM v0 treats two builds as the same version, while OLM v1 orders " +
			"them.",
		Fix: "Increase `spec.version`, and put commit hashes and build numbers into an annotation.",
	}, {
		ID: "version-name", Title: "The bundle's name and version differ", Severity: Warning,
		Check: checkVersionName,
		Why: "People read the version in a name such as `echo-operator.v1.2.0`. Bellwether reads it there if a " +
			"catalog no longer contains the bundle. A name with an old version leads to the wrong upgrade path.",
		Fix: "Make `metadata.name` end in `.v` and the version.",
	}, {
		ID: "version-taken", Title: "The version was published before, with other content", Severity: Error,
		Check: checkVersionTaken,
		Why: "Clusters that have the version already will never get the new content: for OLM nothing changed. A " +
			"catalog with two bundles of one version is refused.",
		Fix: "Publish the content as a new version.",
	}, {
		ID: "package-changed", Title: "The package has another name than before", Severity: Error,
		Check: checkPackageChanged,
		Why: "For OLM this is another operator: no cluster is ever upgraded to it, and where both are installed they " +
			"fight over the same CustomResourceDefinitions.",
		Fix: "Keep the package's name in `metadata/annotations.yaml`.",
	}, {
		ID: "replaces-invalid", Title: "spec.replaces names something that the bundle cannot replace", Severity: Error,
		Check: checkReplaces,
		Why: "A bundle that replaces itself, or a newer version, makes a cycle or a downgrade, and opm refuses the " +
			"catalog. One that replaces " +
			"a version that was never published leaves the clusters with the version before it without an " +
			"upgrade path.",
		Fix: "Leave `spec.replaces` out: `bellwether catalog compile` computes the upgrade graph. Otherwise name the " +
			"version before.",
	}, {
		ID: "replaces-strands", Title: "spec.replaces leaves a published version without an upgrade path",
		Severity: Warning, Check: checkStranded,
		Why: "Catalogs that take the upgrade graph from `spec.replaces` offer no upgrade to clusters with that " +
			"version, and opm refuses a channel with two heads. `bellwether catalog compile` is not affected: it " +
			"computes the graph from versions.",
		Fix: "Replace the previous version, or list the versions in between in `spec.skips`, or in the " +
			"annotation `olm.skipRange`.",
	}, {
		ID: "skip-range-invalid", Title: "The skip range is wrong", Severity: Error, Check: checkSkipRange,
		Why: "With a range that does not parse OLM fails to resolve the package. A range that takes in the bundle " +
			"itself makes it an upgrade of itself.",
		Fix: "Leave the annotation `olm.skipRange` out: `bellwether catalog compile` computes it. Otherwise end it " +
			"below the version, as in `>=1.0.0 <1.2.0`.",
	}, {
		ID: "min-kube-raised", Title: "The version needs a newer Kubernetes than the one before", Severity: Warning,
		Check: checkMinKube,
		Why: "On clusters with an older Kubernetes OLM replaces the operator and then leaves the new version in " +
			"Pending, with nothing running. In a fleet those clusters stop the rollout.",
		Fix: "Upgrade the clusters first, and then waive this with the day by which that is done; or keep supporting " +
			"the older Kubernetes.",
	}}
}

// newCSVFinding returns one finding at a field of the ClusterServiceVersion.
func newCSVFinding(in *Input, message string, path ...any) []Finding {
	return []Finding{newObjectFinding(in.Bundle.CSVObject(), message, path...)}
}

// checkVersionFormat reports a version that is missing or has build metadata, and warns about a pre-release.
func checkVersionFormat(in *Input) []Finding {
	v := in.Bundle.Version
	switch {
	case v.EQ(semver.Version{}) && len(v.Build) == 0: // EQ ignores build metadata
		return newCSVFinding(in, "spec.version is missing, or 0.0.0", "spec", "version")
	case len(v.Build) > 0:
		return newCSVFinding(in, fmt.Sprintf("version %s has build metadata", v), "spec", "version")
	case len(v.Pre) > 0:
		found := newCSVFinding(in, fmt.Sprintf("version %s is a pre-release", v), "spec", "version")
		found[0].Severity = Warning
		return found
	}
	return nil
}

// checkVersionName reports a bundle name that contains a different version than spec.version.
func checkVersionName(in *Input) []Finding {
	named, ok := bundles.VersionInName(in.Bundle.Name)
	if !ok || named.EQ(in.Bundle.Version) {
		return nil
	}
	return newCSVFinding(in, fmt.Sprintf("the name is %s, and spec.version %s", in.Bundle.Name, in.Bundle.Version),
		"metadata", "name")
}

// checkVersionTaken reports a published version with the same name or version but different content. The history
// does not contain the bundle itself, so the content need not be compared.
func checkVersionTaken(in *Input) []Finding {
	var out []Finding
	for _, old := range in.History {
		switch {
		case old.Name == in.Bundle.Name:
			out = append(out, newCSVFinding(in,
				fmt.Sprintf("a bundle called %s was published before, with other content",
					old.Name), "metadata", "name")...)
		case old.Version.EQ(in.Bundle.Version):
			out = append(out, newCSVFinding(in, fmt.Sprintf("version %s was published before, as %s", old.Version,
				old.Name), "spec", "version")...)
		}
	}
	return out
}

// checkPackageChanged reports a package name that differs from the predecessor's.
func checkPackageChanged(in *Input) []Finding {
	if in.Predecessor == nil || in.Predecessor.Package == "" || in.Bundle.Package == "" ||
		in.Predecessor.Package == in.Bundle.Package {
		return nil
	}
	return []Finding{newFileFinding(in, annotationsFile, bundles.AnnotationPackage,
		fmt.Sprintf("the package is %s, and was %s in version %s",
			in.Bundle.Package, in.Predecessor.Package, in.Predecessor.Version), "annotations",
		bundles.AnnotationPackage)}
}

// checkReplaces reports a spec.replaces that names the bundle itself or a version that is not older. It warns about a
// name that is not in the history; without a history it cannot.
func checkReplaces(in *Input) []Finding {
	replaces := in.Bundle.CSV.Spec.Replaces
	if replaces == "" {
		return nil
	}
	if replaces == in.Bundle.Name {
		return newCSVFinding(in, "it replaces itself", "spec", "replaces")
	}
	i := slices.IndexFunc(in.History, func(old *bundles.Bundle) bool { return old.Name == replaces })
	version, isKnown := bundles.VersionInName(replaces)
	if i >= 0 {
		version, isKnown = in.History[i].Version, true
	}
	switch {
	case isKnown && version.GTE(in.Bundle.Version):
		return newCSVFinding(in, fmt.Sprintf("version %s replaces %s, which is not older", in.Bundle.Version, replaces),
			"spec", "replaces")
	case i < 0 && len(in.History) > 0:
		found := newCSVFinding(in, fmt.Sprintf("it replaces %s, which is not among the published versions", replaces),
			"spec", "replaces")
		found[0].Severity = Warning
		return found
	}
	return nil
}

// checkStranded reports published versions between the replaced version and this version that no version replaces or
// skips. It reports nothing if the replaced version is not in the history.
func checkStranded(in *Input) []Finding {
	i := slices.IndexFunc(in.History, func(old *bundles.Bundle) bool { return old.Name == in.Bundle.CSV.Spec.Replaces })
	if i < 0 {
		return nil
	}
	var out []Finding
	var upgradeChecks []func(*bundles.Bundle) bool
	for _, b := range slices.Concat([]*bundles.Bundle{in.Bundle}, in.History) {
		upgradeChecks = append(upgradeChecks, newUpgradeCheck(b))
	}
	for _, old := range in.History {
		isBetween := old.Version.GT(in.History[i].Version) && old.Version.LT(in.Bundle.Version)
		if !isBetween || !hasCommonChannel(in.Bundle, old) ||
			slices.ContainsFunc(upgradeChecks,
				func(canUpgrade func(*bundles.Bundle) bool) bool { return canUpgrade(old) }) {
			continue
		}
		out = append(out, newCSVFinding(in,
			fmt.Sprintf("version %s has no upgrade path: %s replaces %s, and no version "+
				"replaces or skips it", old.Version, in.Bundle.Version, in.History[i].Version), "spec", "replaces")...)
	}
	return out
}

// newUpgradeCheck returns a function that reports whether OLM upgrades from the bundle old to the bundle b directly:
// b replaces or skips old, or old is in the skip range of b. An invalid skip range includes no version.
func newUpgradeCheck(b *bundles.Bundle) func(old *bundles.Bundle) bool {
	inRange, err := semver.ParseRange(b.CSV.Annotations[operatorsv1alpha1.SkipRangeAnnotationKey])
	return func(old *bundles.Bundle) bool {
		switch {
		case b == old:
			return false
		case b.CSV.Spec.Replaces == old.Name || slices.Contains(b.CSV.Spec.Skips, old.Name):
			return true
		}
		return err == nil && inRange(old.Version) && old.Version.LT(b.Version)
	}
}

// hasCommonChannel reports whether two bundles share a channel. It returns true if the channels of a bundle
// are unknown.
func hasCommonChannel(a, b *bundles.Bundle) bool {
	return len(a.Channels) == 0 || len(b.Channels) == 0 ||
		slices.ContainsFunc(a.Channels, func(c string) bool { return slices.Contains(b.Channels, c) })
}

// checkSkipRange reports a skip range that does not parse, or that includes the version itself.
func checkSkipRange(in *Input) []Finding {
	text, ok := in.Bundle.CSV.Annotations[operatorsv1alpha1.SkipRangeAnnotationKey]
	if !ok {
		return nil
	}
	place := []any{"metadata", "annotations", operatorsv1alpha1.SkipRangeAnnotationKey}
	inRange, err := semver.ParseRange(text)
	switch {
	case err != nil:
		return newCSVFinding(in, fmt.Sprintf("%q is no range of versions: %s", text, clip(err.Error())), place...)
	case inRange(in.Bundle.Version):
		return newCSVFinding(in, fmt.Sprintf("the range %q takes in version %s itself", text, in.Bundle.Version),
			place...)
	}
	return nil
}

// checkMinKube reports a minKubeVersion that is higher than the predecessor's.
func checkMinKube(in *Input) []Finding {
	if in.Predecessor == nil {
		return nil
	}
	minimum, err := semver.ParseTolerant(in.Bundle.CSV.Spec.MinKubeVersion)
	if err != nil {
		return nil // rule of-csv reports this
	}
	oldMinimum, err := semver.ParseTolerant(in.Predecessor.CSV.Spec.MinKubeVersion)
	if err == nil && minimum.LTE(oldMinimum) {
		return nil
	}
	oldText := "none"
	if err == nil {
		oldText = oldMinimum.String()
	}
	return newCSVFinding(in, fmt.Sprintf("minKubeVersion is %s, and was %s in version %s", minimum, oldText,
		in.Predecessor.Version), "spec", "minKubeVersion")
}
