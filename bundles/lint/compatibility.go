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
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

const (
	annotationsFile  = bundles.MetadataDir + "/annotations.yaml"
	dependenciesFile = bundles.MetadataDir + "/dependencies.yaml"
)

// compatibilityRules are about what OLM makes of a bundle, and of a version
// beside those before it.
func compatibilityRules() []Rule {
	return slices.Concat(formatRules(), objectRules(), releaseRules(), olmV0Rules(), olmV1Rules())
}

func formatRules() []Rule {
	return []Rule{{
		ID: "bundle-annotations", Title: "The annotations of the bundle are incomplete", Severity: Error,
		Check: checkAnnotations,
		Why: "The annotations become the labels of the bundle's image, by which OLM finds the manifests. opm refuses " +
			"bundles without them, " +
			"and a default channel that no version is in leaves the package without a default. A version need not be " +
			"in the default channel itself: where the history lacks versions (one of it replaces none that it has), " +
			"or their channels, another one may be in it, and this is a warning.",
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
		Why: "This version could not be compared with what that one offered, so what is lost in an upgrade from it " +
			"is " +
			"not reported.",
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

// inFile is a finding in a file of metadata, on the line that mentions a text.
func inFile(in *Input, file, mentions, message string, path ...any) Finding {
	f := Finding{File: file, Line: 1, Path: bundles.FieldPath(path...), Message: message}
	if in.Files == nil {
		return f
	}
	text, err := readFile(in.Files, file)
	if err != nil {
		return f
	}
	if before, _, ok := strings.Cut(string(text), mentions); ok && mentions != "" {
		f.Line = 1 + strings.Count(before, "\n")
	}
	return f
}

// readFile reads a regular file.
func readFile(files fs.FS, name string) ([]byte, error) {
	f, err := bundles.Open(files, name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}

func checkAnnotations(in *Input) []Finding {
	b := in.Bundle
	if b.Annotations == nil { // it does not come from a folder or image
		return nil
	}
	var out []Finding
	for _, name := range []string{registryv1.AnnotationMediaType, registryv1.AnnotationManifests,
		registryv1.AnnotationMetadata,
		registryv1.AnnotationPackage, registryv1.AnnotationChannels} {
		if strings.TrimSpace(b.Annotations[name]) == "" {
			out = append(out, inFile(in, annotationsFile, "annotations:", "the annotation "+name+" is missing",
				"annotations", name))
		}
	}
	for name, want := range map[string]string{registryv1.AnnotationManifests: bundles.ManifestsDir,
		registryv1.AnnotationMetadata: bundles.MetadataDir} {
		if have := b.Annotations[name]; have != "" && path.Clean(have) != want {
			f := inFile(in, annotationsFile, name,
				fmt.Sprintf("%s is %q; many tools look in %s/ only", name, have, want), "annotations", name)
			f.Severity = Warning
			out = append(out, f)
		}
	}
	return append(out, checkDefaultChannel(in)...)
}

// checkDefaultChannel looks for a version in the default channel. Whether there is one cannot be said without the whole
// history, with its channels.
func checkDefaultChannel(in *Input) []Finding {
	name := in.Bundle.DefaultChannel
	provides := func(b *bundles.Bundle) bool { return slices.Contains(b.Channels, name) }
	if name == "" || provides(in.Bundle) || slices.ContainsFunc(in.History, provides) {
		return nil
	}
	own := strings.Join(in.Bundle.Channels, ", ")
	f := inFile(in, annotationsFile, registryv1.AnnotationDefaultChannel,
		fmt.Sprintf("no version is in the default channel %q; this one is in %s", name, own),
		"annotations", registryv1.AnnotationDefaultChannel)
	if isPartialHistory(in) {
		f.Severity = Warning
		f.Message = fmt.Sprintf("the default channel %q is not one of the version's own channels (%s): another "+
			"version must be in it", name, own)
	}
	return []Finding{f}
}

// isPartialHistory says whether versions may have been published that the history lacks, or whose channels are not
// known. A history is whole only if each version but the oldest replaces one of it, and none names another version.
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
		case b == oldest:
			return replaces != "" || b.CSV.Annotations[operatorsv1alpha1.SkipRangeAnnotationKey] != ""
		}
		return isMissing(replaces)
	})
}

func checkCSVAPIVersion(in *Input) []Finding {
	have := in.Bundle.CSVObject().GetAPIVersion()
	if have == operatorsv1alpha1.ClusterServiceVersionAPIVersion {
		return nil
	}
	return csvFinding(in, fmt.Sprintf("the apiVersion is %q, not %q", have,
		operatorsv1alpha1.ClusterServiceVersionAPIVersion), "apiVersion")
}

func checkUnreadable(in *Input) []Finding {
	var out []Finding
	for _, u := range in.Unreadable {
		out = append(out, Finding{Message: fmt.Sprintf("%s was left out of the comparison: %s", u.Name,
			clip(u.Err.Error()))})
	}
	return out
}

func checkStrayFiles(in *Input) []Finding {
	if in.Files == nil {
		return nil
	}
	folder := bundles.ManifestsFolder(in.Bundle.Annotations)
	entries, err := fs.ReadDir(in.Files, folder)
	if err != nil {
		return nil // then the bundle could not be read in the first place
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

func checkDependencies(in *Input) []Finding {
	var out []Finding
	for i, d := range in.Bundle.Dependencies {
		for _, err := range dependencyErrors(d) {
			out = append(out, inFile(in, dependenciesFile, d.Type,
				fmt.Sprintf("dependency %d (%s): %s", i+1, d.Type, clip(err.Error())), "dependencies", i))
		}
	}
	return out
}

func dependencyErrors(d registryv1.Property) []error {
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

func releaseRules() []Rule {
	return []Rule{{
		ID: "version-format", Title: "The version is not of the form X.Y.Z", Severity: Error, Check: checkVersionFormat,
		Why: "A pre-release sorts below the version itself and falls out of most ranges (`>=1.0.0` does not take " +
			"`1.2.0-rc1` everywhere), so " +
			"that clusters skip it or are stuck on it. Build metadata does not count in comparisons of semantic " +
			"versions, so OLM v0 takes two builds for the same version, while OLM v1 orders by it.",
		Fix: "Count up `spec.version`, and put commit hashes and build numbers into an annotation.",
	}, {
		ID: "version-name", Title: "The bundle's name and version differ", Severity: Warning,
		Check: checkVersionName,
		Why: "People, and Bellwether where a catalog no longer has a version, take the version from a name such as " +
			"`echo-operator.v1.2.0`. A name with an old version leads to the wrong upgrade path.",
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
		Why: "Catalogs that take the upgrade graph from `spec.replaces` offer clusters with that version nothing any " +
			"more, and opm refuses a channel with two heads. `bellwether catalog compile` is not affected: it " +
			"computes the graph from versions.",
		Fix: "Replace the version right before, or list the versions in between in `spec.skips`, or in the " +
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

func csvFinding(in *Input, message string, path ...any) []Finding {
	return []Finding{at(in.Bundle.CSVObject(), message, path...)}
}

func checkVersionFormat(in *Input) []Finding {
	v := in.Bundle.Version
	switch {
	case v.EQ(semver.Version{}) && len(v.Build) == 0:
		return csvFinding(in, "spec.version is missing, or 0.0.0", "spec", "version")
	case len(v.Build) > 0:
		return csvFinding(in, fmt.Sprintf("version %s has build metadata", v), "spec", "version")
	case len(v.Pre) > 0:
		found := csvFinding(in, fmt.Sprintf("version %s is a pre-release", v), "spec", "version")
		found[0].Severity = Warning
		return found
	}
	return nil
}

func checkVersionName(in *Input) []Finding {
	named, ok := registryv1.VersionInName(in.Bundle.Name)
	if !ok || named.EQ(in.Bundle.Version) {
		return nil
	}
	return csvFinding(in, fmt.Sprintf("the name is %s, and spec.version %s", in.Bundle.Name, in.Bundle.Version),
		"metadata", "name")
}

func checkVersionTaken(in *Input) []Finding {
	var out []Finding
	for _, old := range in.History {
		switch {
		case old.Name == in.Bundle.Name:
			out = append(out, csvFinding(in, fmt.Sprintf("a bundle called %s was published before, with other content",
				old.Name), "metadata", "name")...)
		case old.Version.EQ(in.Bundle.Version):
			out = append(out, csvFinding(in, fmt.Sprintf("version %s was published before, as %s", old.Version,
				old.Name), "spec", "version")...)
		}
	}
	return out
}

func checkPackageChanged(in *Input) []Finding {
	if in.Predecessor == nil || in.Predecessor.Package == "" || in.Bundle.Package == "" ||
		in.Predecessor.Package == in.Bundle.Package {
		return nil
	}
	return []Finding{inFile(in, annotationsFile, registryv1.AnnotationPackage,
		fmt.Sprintf("the package is %s, and was %s in version %s",
			in.Bundle.Package, in.Predecessor.Package, in.Predecessor.Version), "annotations",
		registryv1.AnnotationPackage)}
}

func checkReplaces(in *Input) []Finding {
	replaces := in.Bundle.CSV.Spec.Replaces
	if replaces == "" {
		return nil
	}
	if replaces == in.Bundle.Name {
		return csvFinding(in, "it replaces itself", "spec", "replaces")
	}
	i := slices.IndexFunc(in.History, func(old *bundles.Bundle) bool { return old.Name == replaces })
	version, known := registryv1.VersionInName(replaces)
	if i >= 0 {
		version, known = in.History[i].Version, true
	}
	switch {
	case known && version.GTE(in.Bundle.Version):
		return csvFinding(in, fmt.Sprintf("version %s replaces %s, which is not older", in.Bundle.Version, replaces),
			"spec", "replaces")
	case i < 0 && len(in.History) > 0:
		found := csvFinding(in, fmt.Sprintf("it replaces %s, which is not among the published versions", replaces),
			"spec", "replaces")
		found[0].Severity = Warning
		return found
	}
	return nil
}

// checkStranded finds published versions between the replaced one and this one that nothing upgrades.
func checkStranded(in *Input) []Finding {
	i := slices.IndexFunc(in.History, func(old *bundles.Bundle) bool { return old.Name == in.Bundle.CSV.Spec.Replaces })
	if i < 0 {
		return nil
	}
	var out []Finding
	var upgrades []func(*bundles.Bundle) bool
	for _, b := range slices.Concat([]*bundles.Bundle{in.Bundle}, in.History) {
		upgrades = append(upgrades, upgradesFrom(b))
	}
	for _, old := range in.History {
		between := old.Version.GT(in.History[i].Version) && old.Version.LT(in.Bundle.Version)
		if !between || !shareChannel(in.Bundle, old) ||
			slices.ContainsFunc(upgrades, func(from func(*bundles.Bundle) bool) bool { return from(old) }) {
			continue
		}
		out = append(out, csvFinding(in, fmt.Sprintf("version %s has no upgrade path: %s replaces %s, and no version "+
			"replaces or skips it", old.Version, in.Bundle.Version, in.History[i].Version), "spec", "replaces")...)
	}
	return out
}

// upgradesFrom returns what says whether OLM upgrades from another bundle to b directly.
func upgradesFrom(b *bundles.Bundle) func(old *bundles.Bundle) bool {
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

// shareChannel says whether two bundles are in a common channel, as far as it is known.
func shareChannel(a, b *bundles.Bundle) bool {
	return len(a.Channels) == 0 || len(b.Channels) == 0 ||
		slices.ContainsFunc(a.Channels, func(c string) bool { return slices.Contains(b.Channels, c) })
}

func checkSkipRange(in *Input) []Finding {
	text, ok := in.Bundle.CSV.Annotations[operatorsv1alpha1.SkipRangeAnnotationKey]
	if !ok {
		return nil
	}
	place := []any{"metadata", "annotations", operatorsv1alpha1.SkipRangeAnnotationKey}
	inRange, err := semver.ParseRange(text)
	switch {
	case err != nil:
		return csvFinding(in, fmt.Sprintf("%q is no range of versions: %s", text, clip(err.Error())), place...)
	case inRange(in.Bundle.Version):
		return csvFinding(in, fmt.Sprintf("the range %q takes in version %s itself", text, in.Bundle.Version), place...)
	}
	return nil
}

func checkMinKube(in *Input) []Finding {
	if in.Predecessor == nil {
		return nil
	}
	now, err := semver.ParseTolerant(in.Bundle.CSV.Spec.MinKubeVersion)
	if err != nil {
		return nil // of-csv says so
	}
	before, err := semver.ParseTolerant(in.Predecessor.CSV.Spec.MinKubeVersion)
	if err == nil && now.LTE(before) {
		return nil
	}
	was := "none"
	if err == nil {
		was = before.String()
	}
	return csvFinding(in, fmt.Sprintf("minKubeVersion is %s, and was %s in version %s", now, was,
		in.Predecessor.Version), "spec", "minKubeVersion")
}
